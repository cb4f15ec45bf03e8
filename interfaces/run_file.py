"""A run file: `[run]` with where and how, `[run.millstone]` tables with what, beside lanes, providers and prices.

Several `[[run.millstone]]` tables are a sweep with a folder each. Relative paths are taken from the file's folder.
Checks all of it before anything is begun.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct

from . import values
from .configuration import Configuration, configuration_of
from .documents import Document
from .options import MILLSTONE, SENDING, MillstoneOptions, Sending, millstone_from
from .values import Kind, Text

BENCHMARKS = ("millstone",)
_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Wanted(Struct, frozen=True):
    """One run that is asked for: where, and what."""

    out: Path
    millstone: MillstoneOptions


class RunFile(Struct, frozen=True):
    """Everything a run file asks for."""

    runs: tuple[Wanted, ...]
    sending: Sending
    configuration: Configuration


@dataclass(frozen=True)
class _Several:
    """One value of a kind, or a list of them."""

    kind: Kind[Any]

    @property
    def expected(self) -> str:
        return f"{self.kind.expected}, or a list of such"

    def read(self, value: object) -> tuple[Any, ...]:
        given = value if isinstance(value, list) else [value]
        if not given or (isinstance(self.kind, values.Number) and any(isinstance(each, str) for each in given)):
            raise ValueError(value)
        return tuple(self.kind.read(each) for each in given)


@dataclass(frozen=True)
class _FolderName:
    @property
    def expected(self) -> str:
        return "a folder's name of letters, digits, dots and dashes"

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not _FOLDER.fullmatch(value):
            raise ValueError(value)
        return value


@dataclass(frozen=True)
class _Tables:
    """Left to be read by itself."""

    @property
    def expected(self) -> str:
        return "a table or a list of tables"

    def read(self, value: object) -> object:
        if not isinstance(value, dict | list) or not value:
            raise ValueError(value)
        return value


_RUN: Mapping[str, Kind[Any]] = {"out": Text("a folder"), **SENDING, **dict.fromkeys(BENCHMARKS, _Tables())}
_RUN_MILLSTONE: Mapping[str, Kind[Any]] = {
    "name": _FolderName(),
    "model": _Several(values.ModelName()),
    "temperature": _Several(values.TEMPERATURE),
    **MILLSTONE,
}


def read_run_file(path: Path, out: str | None = None) -> RunFile:
    """`out` goes before the file's."""
    document = Document(path)
    configuration = configuration_of(document)
    if "run" not in document.values:
        raise document.refusal(("run",), "expected [run] with out and [run.millstone], got none")
    run = document.table(("run",), document.values["run"], _RUN, BENCHMARKS if out else ("out", *BENCHMARKS))
    base = path.absolute().parent
    folder = Path(out).absolute() if out else (base / Path(run.pop("out")).expanduser()).absolute()
    run.pop("out", None)
    runs = _millstones(document, run.pop("millstone"), folder, base)
    if run.get("cache") is not None:
        run["cache"] = str(base / Path(run["cache"]).expanduser())
    # The file is its runs' configuration too, and `resume` reads it again as such.
    return RunFile(runs, Sending(**run, config=str(path.absolute())), configuration)


def _millstones(document: Document, given: Any, folder: Path, base: Path) -> tuple[Wanted, ...]:
    here = ("run", "millstone")
    places = [((*here, at), rows) for at, rows in enumerate(given)] if isinstance(given, list) else [(here, given)]
    runs: list[Wanted] = []
    for keys, rows in places:
        found = document.table(keys, rows, _RUN_MILLSTONE, ("model",))
        name = found.pop("name", None)
        if len(places) > 1:
            name = name or f"millstone-{len(runs) + 1}"
        out = folder / name if name else folder
        if any(out == other.out for other in runs):
            raise document.refusal((*keys, "name"), f'"{name}" is another run\'s folder: name each run differently')
        runs.append(Wanted(out, millstone_from(found, base)))
    return tuple(runs)
