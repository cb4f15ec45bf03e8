"""From run folders to a report's files: report.html, tables/*.csv, and figures/*.svg and *.png.

Owns which folder a report goes into, what it may overwrite, and the order in which its files are written. Everything
heavy is imported by the functions that need it: a run prints its scores first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct

from ..bench.millstone.survey import Folder
from ..engine.collector import calm_collector
from ..engine.fault import LocalFault
from ..engine.run_folder import MANIFEST, RECORDS, read_manifest, write_whole
from . import chameleon_report, millstone_report
from .batch.place import refuse_batch
from .chameleon_report import ConversationFolder
from .refusal import UsageError
from .which import benchmark_of

if TYPE_CHECKING:
    from ..metrics.intervals import Over
    from ..metrics.report.chameleon.contents import ConversationContents
    from ..metrics.report.contents import Contents, Standing
    from ..metrics.report.survey import Options
    from ..metrics.report.table import Figure, Table

AnyFolder = Folder | ConversationFolder
PAGE = "report.html"
TABLES, FIGURES = "tables", "figures"
_OURS = b'<meta name="generator" content="millstream">'
# The mark stands after the page's policy, which is a few hundred characters long.
_HEAD = 4096


class Chosen(Struct, frozen=True):
    """How records are read: MillStone's by `options`, None for the defaults, Chameleon's by the runs' own readings but
    for those in `readings`. `flags` are what said so on the command line. `over`: what MillStone's intervals are over,
    None as the runs have it."""

    options: Options | None = None
    readings: Mapping[str, str] = MappingProxyType({})
    flags: tuple[str, ...] = ()
    over: Over | None = None


PLAIN = Chosen()


class Report(Struct, frozen=True):
    """What was written, and what it says about itself."""

    page: Path
    size: int
    tables: tuple[str, ...]
    figures: tuple[str, ...]
    standings: tuple[Standing, ...]
    remarks: tuple[str, ...]
    unmeasured: tuple[str, ...]
    not_compared: tuple[str, ...] = ()
    """Of each benchmark whose runs were not made alike, in what they differ."""


def distinct(folders: Sequence[str]) -> list[Path]:
    """The folders, each once, however it was named. Raises UsageError where one can't be reported on."""
    found = {Path(folder).resolve(): Path(folder).absolute() for folder in folders}
    for path in found.values():
        if not (path / RECORDS).is_file() and not (path / MANIFEST).is_file():
            refuse_batch(path)
            inside = sorted({each.parent.name for each in path.glob(f"*/{RECORDS}")}) if path.is_dir() else []
            if inside:
                several = " ".join(f"{path}/{name}" for name in inside[:3])
                raise UsageError(f"{path} holds several runs: name them, as millstream report {several}")
            raise UsageError(f"{path}: expected a folder with {RECORDS}, or one with load.json, got neither there")
    return list(found.values())


def place_of(folders: Sequence[Path], out: str | None) -> Path:
    """The folder that a report goes into: the one named, else the run's own, else the one that holds all the runs."""
    if out is not None:
        return Path(out).absolute()
    if len(folders) == 1:
        return folders[0]
    parents = {folder.parent for folder in folders}
    if len(parents) > 1:
        raise UsageError("--out: expected a folder for the report, since these runs do not lie in one, got none")
    return parents.pop()


def read(path: Path, *, fix_orientation: bool = False) -> AnyFolder:
    """One folder. A manifest is not needed, but if there is one, it must be whole. `fix_orientation`: MillStone's
    labels are read by their wordings."""
    manifest = read_manifest(path) if (path / MANIFEST).exists() else None
    if benchmark_of(path) == "chameleon":
        return chameleon_report.read(path, manifest)
    return millstone_report.read(path, manifest, fix_orientation=fix_orientation)


def write(folders: Sequence[AnyFolder], out: Path, chosen: Chosen = PLAIN, *, has_figures: bool = True) -> Report:
    """Compute and write everything: a part of the page for each benchmark. Figures as files take a while: without
    `has_figures` only those of an earlier report are drawn again, since they would be of other records."""
    refuse_foreign(out / PAGE)
    with calm_collector():
        every = _contents(folders, chosen)
        from ..metrics.report.page import page

        whole = page(*every)
    findings = [each.findings for each in every]
    figures: tuple[str, ...] = ()
    with unless_unwritable(out):
        tables = write_tables([table for found in findings for table in found.tables], out / TABLES)
        if has_figures or (out / FIGURES).is_dir():
            figures = _write_figures([figure for found in findings for figure in found.figures], out / FIGURES)
        write_whole(out / PAGE, whole)
    standings = tuple(standing for each in every for standing in each.standings)
    remarks = tuple(remark for found in findings for remark in found.remarks)
    unmeasured = tuple(sentence for each in every for sentence in each.unmeasured)
    not_compared = tuple(found.unlike for found in findings if found.unlike)
    return Report(out / PAGE, len(whole), tables, figures, standings, remarks, unmeasured, not_compared)


def _contents(folders: Sequence[AnyFolder], chosen: Chosen) -> list[Contents | ConversationContents]:
    from ..metrics.report.survey import Options

    talks = [folder for folder in folders if isinstance(folder, ConversationFolder)]
    grids = [folder for folder in folders if isinstance(folder, Folder)]
    every: list[Contents | ConversationContents] = []
    if grids:
        every.append(millstone_report.contents_of(grids, chosen.options or Options(), chosen.flags, chosen.over))
    if talks:
        every.append(chameleon_report.contents_of(talks, chosen.readings, chosen.flags))
    return every


@contextmanager
def unless_unwritable(out: Path) -> Iterator[None]:
    """What can't be written there is a local fault, told in a line."""
    try:
        yield
    except OSError as error:
        raise LocalFault(
            f"{error.filename or out} can't be written ({error.strerror}): choose another --out"
        ) from error


def refuse_foreign(path: Path) -> None:
    """A page that is not one of ours is never written over."""
    try:
        with path.open("rb") as file:
            is_ours = _OURS in file.read(_HEAD)
    except FileNotFoundError:
        return
    except OSError as error:
        raise LocalFault(f"{path} can't be read ({error.strerror}): choose another --out") from error
    if not is_ours:
        raise UsageError(f"{path} is there already and no report of ours: move it away, or choose another --out")


def write_tables(every: Sequence[Table], folder: Path) -> tuple[str, ...]:
    from ..metrics.report.csv_files import csv_of

    folder.mkdir(parents=True, exist_ok=True)
    for table in every:
        write_whole(folder / f"{table.name}.csv", csv_of(table))
    return tuple(f"{table.name}.csv" for table in every)


def _write_figures(every: Sequence[Figure], folder: Path) -> tuple[str, ...]:
    """A figure that has become empty leaves no picture of what it was."""
    from ..metrics.report.pictures import png, svg

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in every:
        names = (f"{figure.name}.svg", f"{figure.name}.png")
        if figure.spec is None:
            for name in names:
                (folder / name).unlink(missing_ok=True)
            continue
        for name, drawn in zip(names, (svg(figure).encode(), png(figure)), strict=True):
            write_whole(folder / name, drawn)
            written.append(name)
    return tuple(written)
