"""The command `millstream data NAME`, with which a benchmark builds, imports and checks its data sets.

The command line reads the options, adds those of sending and output, and prints the report. Light to import, since
`--help` needs it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from ....configuration.errors import UsageError

if TYPE_CHECKING:
    from ....configuration.options import SendingOptions
    from .watch import Watch


class DataReport(Struct, frozen=True, kw_only=True):
    """The result of a data command: exit code, text for people and fields for programs."""

    exit_code: int
    """The exit code of the process."""
    text: Callable[[int | None], str]
    """Returns the result for a person, wrapped at this many columns (None: not wrapped)."""
    fields: Mapping[str, Any]
    """The same for programs, as one JSON object."""
    error: str = ""
    """The error message, one line, of a wrong usage that only the data revealed. Empty: none."""


class DataCommand(Struct, frozen=True):
    """A benchmark's command that builds, imports or checks data sets."""

    about: str
    """A sentence that says what the command does."""
    add_arguments: Callable[[argparse.ArgumentParser], None]
    """Adds the command's own options."""
    run: Callable[[argparse.Namespace, Watch], DataReport]
    """Runs the command. Raises UsageError if options contradict each other; prints nothing."""


def from_the_cache(sending: SendingOptions, out: Path) -> SendingOptions:
    """Returns the options of a command whose result exists, in `out`: it is made again from stored answers alone.
    Raises UsageError for mode live, which has none."""
    if sending.mode == "live":
        raise UsageError(f"--out {out} exists, and mode live would ask again: choose another --out, or move it away")
    return structs.replace(sending, mode="strict")
