"""A run file: `[run]` with where and how, `[run.millstone]` and `[run.chameleon]` tables with what, beside lanes,
providers and prices.

Several tables are a sweep with a folder each. Relative paths are taken from the file's folder.
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
from .benchmark_options import KINDS, NEEDED, BenchmarkOptions, options_from
from .configuration import Configuration, configuration_of
from .documents import Document, Keys
from .options import RETRIEVAL, SENDING, Sending
from .values import Kind, Several, Text

BENCHMARKS = tuple(KINDS)
_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Wanted(Struct, frozen=True):
    """One run that is asked for: where, and what."""

    out: Path
    benchmark: BenchmarkOptions


class RunFile(Struct, frozen=True):
    """Everything a run file asks for."""

    runs: tuple[Wanted, ...]
    sending: Sending
    configuration: Configuration


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


_RUN: Mapping[str, Kind[Any]] = {
    "out": Text("a folder"),
    **SENDING,
    **RETRIEVAL,
    **dict.fromkeys(BENCHMARKS, _Tables()),
}


def _kinds_of(benchmark: str) -> Mapping[str, Kind[Any]]:
    who: dict[str, Kind[Any]] = {"model": Several(values.ModelName()), "temperature": Several(values.TEMPERATURE)}
    return {"name": _FolderName(), **who, **KINDS[benchmark]}


def read_run_file(path: Path, out: str | None = None) -> RunFile:
    """`out` goes before the file's."""
    document = Document(path)
    configuration = configuration_of(document)
    tables = " or ".join(f"[run.{name}]" for name in BENCHMARKS)
    if "run" not in document.values:
        raise document.refusal(("run",), f"expected [run] with out and {tables}, got none")
    run = document.table(("run",), document.values["run"], _RUN, () if out else ("out",))
    base = path.absolute().parent
    folder = Path(out).absolute() if out else (base / _expanded(Path(run.pop("out")), document, "out")).absolute()
    run.pop("out", None)
    asked = {name: run.pop(name) for name in BENCHMARKS if name in run}
    if not asked:
        raise document.refusal(("run",), f"expected {tables}, got none: add one")
    runs = _runs(document, asked, folder, base)
    for name in ("cache", "snapshot"):
        if run.get(name) is not None:
            run[name] = str(base / _expanded(Path(run[name]), document, name))
    # The file is its runs' configuration too, and `resume` reads it again as such.
    return RunFile(runs, Sending(**run, config=str(path.absolute())), configuration)


def _expanded(path: Path, document: Document, name: str) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise document.refusal(
            ("run", name), f"expected a folder that there is, got one of an unknown user ({path})"
        ) from error


def _runs(document: Document, asked: Mapping[str, Any], folder: Path, base: Path) -> tuple[Wanted, ...]:
    places = [(benchmark, keys, rows) for benchmark, given in asked.items() for keys, rows in _places(benchmark, given)]
    runs: list[Wanted] = []
    counts: dict[str, int] = {}
    for benchmark, keys, rows in places:
        counts[benchmark] = counts.get(benchmark, 0) + 1
        found = document.table(keys, rows, _kinds_of(benchmark), NEEDED[benchmark])
        name = found.pop("name", None)
        if len(places) > 1:
            name = name or f"{benchmark}-{counts[benchmark]}"
        out = folder / name if name else folder
        if any(out == other.out for other in runs):
            raise document.refusal((*keys, "name"), f'"{name}" is another run\'s folder: name each run differently')
        runs.append(Wanted(out, options_from(benchmark, found, base)))
    return tuple(runs)


def _places(benchmark: str, given: Any) -> list[tuple[Keys, Any]]:
    """Each table of a benchmark, and where it stands."""
    here: Keys = ("run", benchmark)
    return [((*here, at), rows) for at, rows in enumerate(given)] if isinstance(given, list) else [(here, given)]
