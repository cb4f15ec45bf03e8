"""Tasks for worker processes: what goes on for ever, takes too much, or ends its process."""

from __future__ import annotations

import errno
import os
import resource
import signal
import sys
import time
from importlib import import_module


def hang() -> None:
    while True:
        time.sleep(0.05)


def hang_in_c() -> int:
    """In one operation, which hands no signal on to Python."""
    return len(str(7 ** (1 << 26)))


def allocate(mebibytes: int) -> int:
    return len(b"x" * (mebibytes << 20))


def address_space() -> int:
    return resource.getrlimit(resource.RLIMIT_AS)[0]


def die(code: int) -> None:
    os._exit(code)


def abort() -> None:
    os.abort()


def fail(text: str) -> None:
    raise ValueError(text)


def shout() -> None:
    print("to stdout", flush=True)
    print("to stderr", file=sys.stderr, flush=True)
    os.write(2, b"from C\n")


def spin() -> None:
    while True:
        pass


def once(path: str, number: int) -> str:
    """Sends its own process a signal, but for the second time that it is called."""
    if not os.path.exists(path):
        with open(path, "w"):
            pass
        os.kill(os.getpid(), number)
    return "done"


def send_itself(number: int) -> None:
    os.kill(os.getpid(), number)


def allocate_at_second(path: str, mebibytes: int) -> int:
    """Like a process that holds what earlier tasks left: too much is asked for but for the second time."""
    if not os.path.exists(path):
        with open(path, "w"):
            pass
        return allocate(mebibytes)
    return allocate(1)


def lack_file_descriptors() -> None:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def lack_a_module() -> None:
    import_module("no_such_parser.inner")


def take_a_second() -> None:
    time.sleep(1.0)


def lack_a_part_of_lxml() -> None:
    """As lxml says it: with an error of its own in place of the one that names the module."""
    try:
        import_module("no_such_parser")
    except ImportError:
        raise ImportError("the cleaner is now a separate project") from None


def kill_itself() -> None:
    send_itself(signal.SIGKILL)


def core_dump_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_CORE)[0]
