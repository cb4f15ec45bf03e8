"""A run file: `[run]` with the folder and the sending, a table `[run.NAME]` for each benchmark, lanes, providers,
prices.

Several tables are a sweep with a folder each. Relative paths start at the file's folder. All of it is checked before
anything begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from ..engine.server_address import is_address
from .benchmark_options import Declaration, Known, RunOptions, listed
from .configuration import Configuration, configuration_of
from .declared_options import DeclaredOption, absolute_value
from .documents import Document, Keys
from .errors import UsageError
from .options import SENDING, SendingOptions
from .values import NAME, Parsed, Text, ValueKind

_FOLDER_NAME = Text("a folder's name of letters, digits, dots and dashes", NAME)


class PlannedRun(Struct, frozen=True):
    """One run of a run file: its folder and its benchmark's options."""

    out: Path
    options: RunOptions


class RunFile(Struct, frozen=True):
    """The runs of a file, and how they are sent."""

    runs: tuple[PlannedRun, ...]
    sending: SendingOptions
    configuration: Configuration


def _tables(value: object) -> object:
    if not isinstance(value, dict | list) or not value:
        raise ValueError(value)
    return value


# It is any table, unchecked; it is read later.
_TABLES = Parsed("a table or a list of tables", _tables)
# A file is its own configuration, and sinks belong to commands.
_RUN: Mapping[str, ValueKind[Any]] = {
    "out": Text("a folder"),
    **{option.key: option.kind_in_file for name, option in SENDING.items() if name not in ("config", "sink")},
}


def read_run_file(
    path: Path,
    benchmarks: Known,
    find: Callable[[str], Declaration | None] = lambda name: None,
    out: str | None = None,
    flags: Mapping[str, Any] = MappingProxyType({}),
) -> RunFile:
    """Returns the runs of a run file, checked. `find` returns the benchmark of an installed package, or None; `out`
    replaces the file's folder. `flags` are values from flags, by field name: each replaces the file's value in every
    table whose benchmark has the option. Raises UsageError if no table's benchmark has it."""
    document = Document(path)
    configuration = configuration_of(document)
    tables = listed([f"[run.{name}]" for name in benchmarks], "or")
    if "run" not in document.values:
        raise document.refusal(("run",), f"expected [run] with out and {tables}, got none")
    rows = document.rows(("run",), document.values["run"])
    others = {key: find(key) for key in rows if key not in (*_RUN, *benchmarks) and isinstance(rows[key], dict | list)}
    benchmarks = {**benchmarks, **{name: other for name, other in others.items() if other is not None}}
    kinds = {**_RUN, **dict.fromkeys(benchmarks, _TABLES)}
    run = document.table(("run",), rows, kinds, () if out else ("out",))
    base = path.absolute().parent
    folder = Path(out).absolute() if out else (base / _expanded(Path(run.pop("out")), document, "out")).absolute()
    run.pop("out", None)
    tables_of = {benchmarks[name]: run.pop(name.replace("-", "_")) for name in benchmarks if name in rows}
    if not tables_of:
        raise document.refusal(("run",), f"expected {tables}, got none: add one")
    _check_taken(flags, [*tables_of], benchmarks, path)
    runs = _runs(document, tables_of, folder, base, flags)
    for name in ("cache", "snapshot"):
        if run.get(name) is not None and not is_address(run[name]):
            run[name] = str(base / _expanded(Path(run[name]), document, name))
    # The file is its runs' configuration too, and `resume` reads it again as such.
    return RunFile(runs, SendingOptions(**run, config=str(path.absolute())), configuration)


def _expanded(path: Path, document: Document, name: str) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise document.refusal(
            ("run", name), f"expected a folder that there is, got one of an unknown user ({path})"
        ) from error


def _check_taken(flags: Mapping[str, Any], tables: Sequence[Declaration], benchmarks: Known, path: Path) -> None:
    taken = {option.name for each in tables for option in each.taken_by("run")}
    for name in flags:
        if name in taken:
            continue
        owners = {each.name: one for each in benchmarks.values() for one in each.taken_by("run") if one.name == name}
        raise UsageError(
            f"{next(iter(owners.values())).flag} belongs to `run {listed(list(owners), 'or')}`, and {path} has no such "
            f"table, only {listed([f'[run.{each.name}]' for each in tables], 'and')}: leave it out"
        )


def _runs(
    document: Document, tables: Mapping[Declaration, Any], folder: Path, base: Path, flags: Mapping[str, Any]
) -> tuple[PlannedRun, ...]:
    places = [(each, keys, rows) for each, entries in tables.items() for keys, rows in _places(each.name, entries)]
    runs: list[PlannedRun] = []
    counts: dict[str, int] = {}
    for each, keys, rows in places:
        counts[each.name] = counts.get(each.name, 0) + 1
        options = each.taken_by("run")
        kinds = {"name": _FOLDER_NAME, **{option.key: option.kind_in_file for option in options}}
        required = (option.key for option in options if option.is_required and option.name not in flags)
        fields = {option.key.replace("-", "_"): option.name for option in options}
        values = document.table(keys, rows, kinds, tuple(required))
        chosen = {fields.get(name, name): value for name, value in values.items()}
        chosen |= {option.name: _of_flag(option, flags[option.name]) for option in options if option.name in flags}
        name = chosen.pop("name", None)
        if len(places) > 1:
            name = name or f"{each.name}-{counts[each.name]}"
        out = folder / name if name else folder
        if any(out == other.out for other in runs):
            raise document.refusal((*keys, "name"), f'"{name}" is another run\'s folder: name each run differently')
        try:
            runs.append(PlannedRun(out, each.made_of(chosen, base)))
        except UsageError as error:
            raise document.refusal(keys, str(error)) from error
    return tuple(runs)


def _of_flag(option: DeclaredOption, value: Any) -> Any:
    """Returns a flag's value for a table of the file: checked by its benchmark's own declaration, since benchmarks may
    declare one flag differently; a relative path starts at the current folder."""
    values = value if option.is_several else [value]
    try:
        read = [absolute_value(option, option.kind.read(each), Path()) for each in values]
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{option.flag}: expected {option.kind.expected}, got {value}") from error
    return read if option.is_several else read[0]


def _places(benchmark: str, tables: Any) -> list[tuple[Keys, Any]]:
    """Returns each of a benchmark's tables with its place in the file."""
    here: Keys = ("run", benchmark)
    return [((*here, at), rows) for at, rows in enumerate(tables)] if isinstance(tables, list) else [(here, tables)]
