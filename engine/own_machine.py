"""Recognises errors that our own machine caused, such as a lack of memory or file descriptors.

Pure. Such a fault says nothing about a provider, a page or a call, and is never recorded as theirs.
"""

from __future__ import annotations

import errno
import os
import re
import socket
from typing import NamedTuple

from .endpoint import Fault
from .fault import LocalFault
from .missing import missing_text

_RUN_OUT = {
    errno.EMFILE: "file descriptors",
    errno.ENFILE: "file descriptors",
    errno.ENOBUFS: "room for network buffers",
    errno.ENOMEM: "memory",
    errno.EADDRNOTAVAIL: "local ports or addresses",
}
_NUMBER = re.compile(r"\[Errno (\d+)\]")
_NO_THREAD = "can't start new thread"
WAIT_S = 1.0


def what_ran_out(error: BaseException) -> str:
    """Returns what this machine has temporarily run out of, by the error of an attempt to connect: file descriptors,
    memory, local ports, network buffers or threads; "" for other causes, a full disk and a MemoryError among them."""
    if isinstance(error, socket.gaierror):
        if error.errno == socket.EAI_MEMORY:
            return "memory"
        # The resolver does not say that it could open no file.
        return "" if can_open_a_socket() else "file descriptors"
    if isinstance(error, OSError):
        # Several errors may arrive as one that has their numbers only in its text.
        numbers = [error.errno, *map(int, _NUMBER.findall(str(error)))] if error.errno is None else [error.errno]
        return next((_RUN_OUT[number] for number in numbers if number in _RUN_OUT), "")
    if isinstance(error, RuntimeError) and _NO_THREAD in str(error):
        return "threads"
    return ""


def can_open_a_socket() -> bool:
    try:
        socket.socket().close()
    except OSError as error:
        return error.errno not in (errno.EMFILE, errno.ENFILE)
    return True


class OwnFault(NamedTuple):
    """A fault of our own machine as an attempt's end: nothing was sent, it counts as no attempt, and the call waits.
    `is_lasting`: nothing more can be sent until somebody repairs it."""

    fault: Fault
    is_lasting: bool


def own_fault_of(error: BaseException) -> OwnFault | None:
    """Returns the fault of our own machine that an error means; None if our machine did not cause it."""
    if lasting := _lasting(error):
        return OwnFault(waiting(lasting), is_lasting=True)
    if what := what_ran_out(error):
        return OwnFault(out_of(what, error), is_lasting=False)
    return None


def out_of(what: str, error: BaseException) -> Fault:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return waiting(f"this machine is out of {what} ({' '.join(reason.split())})")


def waiting(detail: str) -> Fault:
    """Returns the fault for something that may be available again: nothing was sent, it counts as no attempt, and the
    call is repeated after WAIT_S seconds."""
    return Fault("connect", detail, "wait", quota="refund", retry_after_s=WAIT_S)


def _lasting(error: BaseException) -> str:
    if isinstance(error, LocalFault):
        return str(error)
    if isinstance(error, ImportError):
        return missing_text(error)
    if isinstance(error, MemoryError):
        return f"process {os.getpid()} has no memory left: free some, then start again"
    return ""
