"""`millstream data NAME`: how a benchmark builds, imports and checks its data sets.

The command line reads the options, adds those of sending and output, and prints the report. Light to import, since
`--help` needs it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from .watch import Watch


class DataReport(Struct, frozen=True, kw_only=True):
    """The result of a data command."""

    exit_code: int
    """The exit code of the process."""
    text: Callable[[int | None], str]
    """The result as a person reads it, for a terminal of so many columns; None: lines of any length."""
    fields: Mapping[str, Any]
    """The same for programs, as one JSON object."""
    error: str = ""
    """The one line of a wrong usage that only the data showed. Empty: there is none."""


class DataCommand(Struct, frozen=True):
    """A benchmark's command that builds, imports or checks data sets."""

    about: str
    """What the command does, in a sentence."""
    add_arguments: Callable[[argparse.ArgumentParser], None]
    """Adds the command's own options."""
    run: Callable[[argparse.Namespace, Watch], DataReport]
    """Carries it out. Raises UsageError where the options can't go together; prints nothing."""
