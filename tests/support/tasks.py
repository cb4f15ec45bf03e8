"""Tasks for worker processes: what goes on for ever, takes too much, or ends its process."""

from __future__ import annotations

import os
import resource
import sys
import time


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
