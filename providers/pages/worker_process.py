"""The code that runs in a worker's process: the proof that it works, and tasks within their limits.

Owns the limits of processor time and memory, and decides which errors are our own machine's. Starts no process.
"""

from __future__ import annotations

import importlib
import logging
import mmap
import os
import resource
import signal
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...engine.missing import missing_text
from ...engine.no_dumps import forbid_core_dumps

T = TypeVar("T")

# The part of a task's memory that is kept for sending its result.
_FOR_SENDING = 16 << 20
# A worker without a parent ends itself this many seconds after its task was due.
_ORPHANED_S = 30


def be_silent() -> None:
    # The process can be killed at once, even within a parser that passes no signal on to Python.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    forbid_core_dumps()
    # Parsers' messages about broken pages would mix with the progress display.
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    logging.disable(logging.CRITICAL)


def prove(modules: tuple[str, ...], check: Callable[[], None] | None) -> str:
    """Returns an empty text if this process can do its work, else one line that says what it lacks."""
    try:
        for name in modules:
            importlib.import_module(name)
        if check is not None:
            check()
    except Exception as error:  # noqa: BLE001 (whatever it is, it is why no task can be run)
        return _line_on(error)
    return ""


def _line_on(error: Exception) -> str:
    if isinstance(error, ImportError):
        return missing_text(error)
    text = " ".join(str(error).split())[:500]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def run_bounded(
    memory_max: int, within_s: float, wall_s: float, function: Callable[..., T], arguments: Sequence[Any]
) -> tuple[str, Any]:
    # Only while the function runs: a message for which there is no memory would leave its task without an end.
    limits = resource.getrlimit(resource.RLIMIT_AS)
    # Address space is never less than memory. Interpreter and parsers take some 60 MiB of it, 45 of them in use.
    most = memory_max - _FOR_SENDING
    signal.alarm(int(wall_s) + _ORPHANED_S)
    # By the processor's clock: a slow or stopped machine, or a changed clock, is no fault of the task.
    signal.setitimer(signal.ITIMER_PROF, within_s)
    try:
        resource.setrlimit(
            resource.RLIMIT_AS, (most if limits[1] == resource.RLIM_INFINITY else min(most, limits[1]), limits[1])
        )
        return "ok", function(*arguments)
    except MemoryError:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        return ("memory", None) if _can_have(memory_max) else ("fault", "this machine has no memory left for it")
    except ImportError as error:
        return "fault", _line_on(error)
    except Exception as error:  # noqa: BLE001 (nobody can list what parsers raise, and not all of it can be sent on)
        # A function that receives bytes opens no files for its caller, so an OSError is our own machine's.
        kind = "fault" if isinstance(error, OSError) and error.errno is not None else "error"
        return kind, f"{type(error).__name__}: {error}"[:500]
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)


def _can_have(memory: int) -> bool:
    try:
        mmap.mmap(-1, memory).close()
    except (OSError, ValueError, MemoryError):
        return False
    return True
