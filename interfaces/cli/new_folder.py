"""The folder of a run whose command names none: `runs/DATE-NAME`, never one that exists."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TypeVar

from ...engine.fault import LocalFault

RUNS = Path("runs")
_ODD = re.compile(r"[^A-Za-z0-9_-]+")

_Prepared = TypeVar("_Prepared")


def in_new_folder(what: str, prepare: Callable[[Path], _Prepared]) -> tuple[Path, _Prepared]:
    """Creates the folder of a run of `what`, a benchmark or `FILE:NAME`, once `prepare` has accepted it, and returns it
    with the result. Of two that begin at once, each gets a folder of its own."""
    path, _, name = Path(what).name.partition(":")
    name = _ODD.sub("-", name or path.partition(".")[0]).strip("-") or "run"
    for number in count(1):
        more = f"-{number}" if number > 1 else ""
        folder = RUNS / f"{datetime.now():%Y-%m-%d}-{name}{more}"
        if os.path.lexists(folder):
            continue
        prepared = prepare(folder)
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            if os.path.lexists(folder):
                continue
            # Its parent may be a link to a disk that is not there.
            raise LocalFault(f"{folder} can't be written ({error.strerror}): name another folder by --out") from error
        return folder, prepared
    raise AssertionError("there is always a next number")
