"""How the program says no: wrong usage as one line, and which exit code an error means.

Owns the exit codes of FAULTS. Imports the rooms that define errors only once something went wrong.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

DONE = 0
WRONG_USAGE = 2
WITH_FAILURES = 3
RESUMABLE = 4
LOCAL_FAULT = 5
SIGNAL = 128  # and the signal's number: 130, 143
INTERRUPTED = SIGNAL + 2

EXIT_CODES = (
    "exit codes: 0 all is valid; 2 wrong usage; 3 finished with failures, or without a score worth reading; 4 stopped, "
    "can be resumed; 5 a fault of this machine (folder, store, disk, library, network), or a failed verify; "
    "130 and 143 interrupted"
)


class UsageError(Exception):
    """What was asked can't be done as it was asked. One line: what was expected, what came, what to do."""


def exit_code_of(error: Exception) -> int | None:
    """The exit code of an error that a person can cause; None is a defect of ours."""
    if isinstance(error, UsageError):
        return WRONG_USAGE
    from ..bench.chameleon.records import RecordError as TurnError
    from ..bench.millstone.records import RecordError
    from ..engine.data_file import DatasetError
    from ..engine.fault import LocalFault
    from ..engine.run_folder import WrongSpecification
    from ..wiring import ConfigurationError

    if isinstance(error, ConfigurationError | DatasetError | WrongSpecification | RecordError | TurnError):
        return WRONG_USAGE
    return LOCAL_FAULT if isinstance(error, LocalFault) else None


def nearest(name: str, known: Iterable[str]) -> str:
    """` (nearest: run)`, or nothing where no known name is near."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (nearest: {close[0]})" if close else ""
