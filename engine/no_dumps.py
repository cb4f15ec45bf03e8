"""Forbids core dumps of our own processes, since the file would contain API keys and answers.

Called by the command line for itself, and by every worker process for itself. The process of a program that uses the
library is never changed.
"""

from __future__ import annotations

import contextlib
import resource


def forbid_core_dumps() -> None:
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
