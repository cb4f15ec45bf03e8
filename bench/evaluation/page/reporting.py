"""Writes a report's files from run folders: report.html, tables/*.csv, figures/*.svg and *.png.

Chooses the folder, protects files of other programs, and fixes the order of writing. Heavy imports stand in functions,
since a run prints its scores first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ....configuration.errors import UsageError
from ....engine.collector import calm_collector
from ....engine.fault import LocalFault
from ....engine.folder_file import make_folder, open_to_read, write_whole
from ....engine.runs.run_folder import MANIFEST, RECORDS, no_run_at, read_manifest
from ....format import command_text
from ....wiring import Settings
from ..door.benchmark import ItemBenchmark
from ..door.registry import benchmark_of, counts_reader, own_readings, rank_of

if TYPE_CHECKING:
    from ....report.sections import PageContents
    from ....report.standings import AnswerStatus
    from ....report.table import Figure, Table

PAGE = "report.html"
TABLES, FIGURES = "tables", "figures"
_OURS = b'<meta name="generator" content="millstream">'
# The mark stands after the page's policy, which is a few hundred characters long.
_HEAD = 4096


class BenchmarkFolder(Struct, frozen=True):
    """A run folder as read: its manifest, its benchmark and its records; or a published table of counts, which has no
    manifest."""

    path: Path
    manifest: Mapping[str, Any] | None
    benchmark: ItemBenchmark[Any]
    records: Any
    """The result of the benchmark's `read_run`, or of its `read_counts`."""


class WrittenReport(Struct, frozen=True):
    """A report that was written: its page, the page's `size` in bytes, the names of its tables' and figures' files, the
    counts of answered and failed prompts by model (`standings`), and its remarks."""

    page: Path
    size: int
    tables: tuple[str, ...]
    figures: tuple[str, ...]
    standings: tuple[AnswerStatus, ...]
    remarks: tuple[str, ...]
    unmeasured: tuple[str, ...]
    not_compared: tuple[str, ...] = ()
    """For each benchmark whose runs differ in how they were made, a sentence that says in what."""


def distinct(folders: Sequence[str]) -> list[Path]:
    """Returns the absolute paths of the folders, each once, however they were written. Raises UsageError if one can't
    be reported on, or holds the same run as another."""
    paths = {Path(folder).resolve(): Path(folder).absolute() for folder in folders}
    for path in paths.values():
        if not (path / RECORDS).is_file() and not (path / MANIFEST).is_file():
            inside = sorted({each.parent.name for each in path.glob(f"*/{RECORDS}")}) if path.is_dir() else []
            if inside:
                several = command_text("report", *(path / name for name in inside[:3]))
                raise UsageError(f"{path} holds several runs: name them, as {several}")
            expected = f"{path}: expected a folder with {RECORDS}, or one with load.json, got neither there"
            raise UsageError(no_run_at(path) or expected)
    check_hold_different_runs(paths.values())
    return list(paths.values())


def check_hold_different_runs(folders: Iterable[Path]) -> None:
    """Raises UsageError if two of these folders hold one run: copies are no repetition, and all would agree."""
    seen: dict[str, Path] = {}
    for folder in {path.resolve(): path for path in folders}.values():
        run = read_manifest(folder).get("run_id") if (folder / MANIFEST).exists() else None
        if isinstance(run, str) and (other := seen.setdefault(run, folder)) != folder:
            raise UsageError(f"{folder} holds the same run as {other} (run_id {run}): name one of them")


def place_of(folders: Sequence[Path], out: str | None) -> Path:
    """Returns the folder for the report: the given one, else the run's own, else the common parent of all runs."""
    if out is not None:
        return Path(out).absolute()
    if not folders:
        raise UsageError("--out: expected a folder for the report, since --counts alone has none, got none")
    if len(folders) == 1:
        return folders[0]
    parents = {folder.parent for folder in folders}
    if len(parents) > 1:
        raise UsageError("--out: expected a folder for the report, since these runs do not lie in one, got none")
    return parents.pop()


def read(path: Path, chosen: Mapping[str, Any] = MappingProxyType({})) -> BenchmarkFolder:
    """Reads one folder's records. A manifest is optional, but must be whole if there is one."""
    manifest = read_manifest(path) if (path / MANIFEST).exists() else None
    benchmark = benchmark_of(path)
    readings = own_readings(benchmark, chosen)
    records = benchmark.read_run(path, manifest, readings)
    if records is None:
        from .runs import read_run

        records = read_run(benchmark, path, manifest, readings)
    if manifest is not None:
        from .items import RunItems
        from .kept_items import keep

        if isinstance(items := getattr(records, "items", None), RunItems):
            keep(items, manifest, Settings().cache_folder())
    return BenchmarkFolder(path, manifest, benchmark, records)


def read_counts(path: Path, given: Mapping[str, Any]) -> BenchmarkFolder:
    """Reads a published table of counts. Raises UsageError if a given reading needs more than counts."""
    benchmark, counts = counts_reader()
    return BenchmarkFolder(path, None, benchmark, counts.read(path, given))


def write(
    runs: Sequence[BenchmarkFolder],
    out: Path,
    readings: Mapping[str, Any] = MappingProxyType({}),
    flags: Sequence[str] = (),
    *,
    has_figures: bool = True,
) -> WrittenReport:
    """Computes and writes the report, with a part for each benchmark. `readings` are those chosen, by option name;
    `flags` the same as command-line words. Without `has_figures`, only figure files that exist already are drawn again,
    since drawing is slow and the old ones would show other records."""
    check_is_our_page(out / PAGE)
    with calm_collector():
        every = _contents(runs, readings, flags)
        from ....report.page import page

        whole = page("; ".join(each.title for each in every), every, Settings().cache_folder())
    figures: tuple[str, ...] = ()
    with unless_unwritable(out):
        tables = write_tables([table for each in every for table in each.tables], out / TABLES)
        if has_figures or (out / FIGURES).is_dir():
            figures = _write_figures([figure for each in every for figure in each.figures], out / FIGURES)
        write_whole(out / PAGE, whole)
    standings = tuple(standing for each in every for standing in each.standings)
    remarks = tuple(remark for each in every for remark in each.remarks)
    unmeasured = tuple(sentence for each in every for sentence in each.unmeasured)
    not_compared = tuple(each.unlike for each in every if each.unlike)
    return WrittenReport(out / PAGE, len(whole), tables, figures, standings, remarks, unmeasured, not_compared)


def _contents(runs: Sequence[BenchmarkFolder], readings: Mapping[str, Any], flags: Sequence[str]) -> list[PageContents]:
    """Returns the parts of the page, in the order of the registry."""
    from .compared import with_compared
    from .part import general_part
    from .readers import with_readers

    every = []
    for benchmark in sorted({run.benchmark for run in runs}, key=rank_of):
        folders = [run for run in runs if run.benchmark is benchmark]
        records, chosen = [run.records for run in folders], own_readings(benchmark, readings)
        contents = benchmark.report(records, chosen, flags)
        if contents is None:
            contents = general_part(benchmark, records, chosen, flags)
        with_records = [run.path for run in folders if (run.path / RECORDS).is_file()]
        contents = with_compared(contents, benchmark, with_records, chosen)
        every.append(with_readers(contents, benchmark, {run.path: run.manifest for run in folders}))
    return every


def stale_beside(run: Path) -> str:
    """Returns the sentence that the page of several runs beside this one still has its old scores; empty if there is no
    such page."""
    from ....report.standings import command_in

    folder = run.absolute().parent
    try:
        with open_to_read(folder / PAGE) as file:
            text = file.read().decode(errors="replace")
        words = command_in(text) if _OURS.decode() in text[:_HEAD] else []
    except (OSError, ValueError):  # a page that can't be read has no scores
        return ""
    flags = next((at for at, word in enumerate(words) if word.startswith("--")), len(words))
    names = [Path(word).name for word in words[2:flags]]
    if run.absolute().name not in names or len(names) < 2:
        return ""
    again = command_text("report", *(run.parent / name for name in names), *words[flags:])
    return f"{run.parent / PAGE} still has the old scores: {again}"


@contextmanager
def unless_unwritable(out: Path) -> Iterator[None]:
    """Runs a block; an OSError in it becomes a LocalFault with a one-line message."""
    try:
        yield
    except OSError as error:
        raise LocalFault(
            f"{error.filename or out} can't be written ({error.strerror}): choose another --out"
        ) from error


def check_is_our_page(path: Path) -> None:
    """Raises UsageError if the file exists and is not one of our report pages, LocalFault if it can't be read."""
    try:
        with open_to_read(path) as file:
            is_ours = _OURS in file.read(_HEAD)
    except FileNotFoundError:
        return
    except OSError as error:
        raise LocalFault(f"{path} can't be read ({error.strerror}): choose another --out") from error
    if not is_ours:
        raise UsageError(f"{path} is there already and no report of ours: move it away, or choose another --out")


def write_tables(every: Sequence[Table], folder: Path) -> tuple[str, ...]:
    from ....report.csv_files import csv_of

    make_folder(folder)
    for table in every:
        write_whole(folder / f"{table.name}.csv", csv_of(table))
    return tuple(f"{table.name}.csv" for table in every)


def _write_figures(every: Sequence[Figure], folder: Path) -> tuple[str, ...]:
    """Draws the figures as files and returns their names; removes the file of a figure that has become empty."""
    from ....report.pictures import png, svg

    make_folder(folder)
    written = []
    for figure in every:
        names = (f"{figure.name}.svg", f"{figure.name}.png")
        if figure.spec is None:
            for name in names:
                (folder / name).unlink(missing_ok=True)
            continue
        drawn = svg(figure)
        for name, data in zip(names, (drawn.encode(), png(drawn)), strict=True):
            write_whole(folder / name, data)
            written.append(name)
    return tuple(written)
