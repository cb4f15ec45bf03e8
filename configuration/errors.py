"""Wrong usage as an error of one line, and the exit code of each error.

Owns the exit codes. An error that a person can cause has its code as `exit_code`.
"""

from __future__ import annotations

from ..engine.exit_codes import DONE as DONE
from ..engine.exit_codes import INTERRUPTED as INTERRUPTED
from ..engine.exit_codes import LOCAL_FAULT as LOCAL_FAULT
from ..engine.exit_codes import RESUMABLE as RESUMABLE
from ..engine.exit_codes import SIGNAL as SIGNAL
from ..engine.exit_codes import WITH_FAILURES as WITH_FAILURES
from ..engine.exit_codes import WRONG_USAGE as WRONG_USAGE
from ..engine.near_names import nearest as nearest

EXIT_CODES = (
    "exit codes: 0 all is valid; 2 wrong usage; 3 finished with failures, or not everything was measured; 4 stopped, "
    "can be resumed; 5 a fault of this machine (folder, store, disk, library, network), or a failed verify; "
    "130 and 143 interrupted"
)


class UsageError(Exception):
    """Raised for a command or file that can't be carried out. The message is one line: what was expected, what was
    given, what to do."""

    exit_code = WRONG_USAGE


class Mistakes(UsageError):
    """Raised for several mistakes in one command: the message has a line for each."""


def exit_code_of(error: BaseException) -> int | None:
    """Returns the exit code of an error that a person can cause; None: it is a defect of this program."""
    code = getattr(error, "exit_code", None)
    return code if isinstance(code, int) else None
