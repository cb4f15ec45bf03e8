"""What the forks of one run of the tests share although none had it when they were made: the first that asks makes it,
the others read it. It is the same whoever makes it, so that no test can tell."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from fcntl import LOCK_EX, flock
from functools import wraps
from os import getpid
from pathlib import Path
from typing import ParamSpec, TypeVar

from msgspec import Struct, msgpack

_P = ParamSpec("_P")
_S = TypeVar("_S", bound=Struct)
# Made while the tests are collected, before the forks.
_FOLDER = Path(tempfile.mkdtemp(prefix="millstream-once-"))
_OWNER = getpid()


@atexit.register
def _clean() -> None:
    if getpid() == _OWNER:
        shutil.rmtree(_FOLDER, ignore_errors=True)


def once(kind: type[_S]) -> Callable[[Callable[_P, _S]], Callable[_P, _S]]:
    """Decorates a function that always makes the same struct of a kind from the same arguments: it is called once
    for each, by one fork of all."""

    def decorated(make: Callable[_P, _S]) -> Callable[_P, _S]:
        known: dict[str, _S] = {}

        @wraps(make)
        def made(*args: _P.args, **named: _P.kwargs) -> _S:
            name = f"{make.__name__} {args} {named}".replace("/", "-")
            if name not in known:
                with (_FOLDER / name).open("a+b") as file:
                    flock(file, LOCK_EX)
                    file.seek(0)
                    if not (packed := file.read()):
                        packed = msgpack.encode(make(*args, **named))
                        file.write(packed)
                known[name] = msgpack.decode(packed, type=kind)
            return known[name]

        return made

    return decorated
