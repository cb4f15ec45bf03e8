"""From run folders to a report's files: report.html, tables/*.csv, and figures/*.svg and *.png.

Owns which folder a report goes into, what it may overwrite, and the order in which its files are written. Everything
heavy is imported by the functions that need it: a run prints its scores first.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..bench.millstone.dataset import Dataset, DatasetError, load
from ..bench.millstone.survey import Folder, folder_labels, read_folder, sampled, standings, survey
from ..engine.collector import calm_collector
from ..engine.fault import LocalFault
from ..engine.journal import read_lines
from ..engine.run_folder import FAILURES, MANIFEST, RECORDS, read_manifest, write_whole
from .millstone_work import SAMPLE
from .origins import origin_of
from .record_lines import record_lines
from .refusal import UsageError

if TYPE_CHECKING:
    from ..metrics.report.contents import Contents, Standing
    from ..metrics.report.survey import Options
    from ..metrics.report.table import Findings

PAGE = "report.html"
TABLES, FIGURES = "tables", "figures"
_OURS = b'<meta name="generator" content="millstream">'
# The mark stands after the page's policy, which is a few hundred characters long.
_HEAD = 4096


class Report(Struct, frozen=True):
    """What was written, and what it says about itself."""

    page: Path
    size: int
    tables: tuple[str, ...]
    figures: tuple[str, ...]
    standings: tuple[Standing, ...]
    remarks: tuple[str, ...]


def distinct(folders: Sequence[str]) -> list[Path]:
    """The folders, each once, however it was named. Raises UsageError where one can't be reported on."""
    found = {Path(folder).resolve(): Path(folder).absolute() for folder in folders}
    for path in found.values():
        if not (path / RECORDS).is_file() and not (path / MANIFEST).is_file():
            inside = sorted({each.parent.name for each in path.glob(f"*/{RECORDS}")}) if path.is_dir() else []
            if inside:
                several = " ".join(f"{path}/{name}" for name in inside[:3])
                raise UsageError(f"{path} holds several runs: name them, as millstream report {several}")
            raise UsageError(f"{path}: expected a folder with {RECORDS}, got none there")
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


def read(path: Path) -> Folder:
    """One folder. A manifest is not needed, but if there is one, it must be whole."""
    manifest = read_manifest(path) if (path / MANIFEST).exists() else None
    if manifest is not None and manifest["specification"].get("benchmark") != "millstone":
        raise UsageError(f"{path}: expected a millstone run, got {manifest['specification'].get('benchmark')!r}")
    records = path / RECORDS
    try:
        lines = record_lines(records) if records.exists() else iter(())
        found = read_folder(records, lines, read_lines(path / FAILURES), manifest)
    except OSError as error:
        raise UsageError(f"{error.filename or path}: expected a readable file, got: {error.strerror}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: its {MANIFEST} is no MillStone run's ({error!r})") from error
    if manifest is None and not found.answers:
        raise UsageError(f"{records}: expected records, got none: nothing to report")
    return found


def write(
    folders: Sequence[Folder], out: Path, options: Options, *, flags: Sequence[str] = (), has_figures: bool = True
) -> Report:
    """Compute and write everything. `flags` are what `options` were on the command line. Figures as files take a
    while: without `has_figures` only those of an earlier report are drawn again, since they would be of other
    records."""
    _refuse_foreign(out / PAGE)
    with calm_collector():
        contents = _contents(folders, options, flags)
        from ..metrics.report.page import page

        whole = page(contents)
    try:
        tables = _write_tables(contents.findings, out / TABLES)
        figures: tuple[str, ...] = ()
        if has_figures or (out / FIGURES).is_dir():
            figures = _write_figures(contents.findings, out / FIGURES)
        write_whole(out / PAGE, whole)
    except OSError as error:
        raise LocalFault(
            f"{error.filename or out} can't be written ({error.strerror}): choose another --out"
        ) from error
    return Report(out / PAGE, len(whole), tables, figures, contents.standings, contents.findings.remarks)


def _refuse_foreign(path: Path) -> None:
    try:
        with path.open("rb") as file:
            is_ours = _OURS in file.read(_HEAD)
    except FileNotFoundError:
        return
    except OSError as error:
        raise LocalFault(f"{path} can't be read ({error.strerror}): choose another --out") from error
    if not is_ours:
        raise UsageError(f"{path} is there already and no report of ours: move it away, or choose another --out")


def _contents(folders: Sequence[Folder], options: Options, flags: Sequence[str]) -> Contents:
    from ..bench.millstone.examples import explorer
    from ..metrics.report.contents import Contents
    from ..metrics.report.findings import findings

    every = standings(folders)
    labels = folder_labels([folder.path for folder in folders])
    origins = []
    for folder in folders:
        answers = sum(ended.answered for ended in folder.ended.values())
        try:
            origins.append(origin_of(labels[folder.path], folder.manifest, answers))
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{folder.path}: its {MANIFEST} is no MillStone run's ({error!r})") from error
    asked = survey(folders, options)
    issues = len({issue for shape in asked.shapes.values() for issue in shape.issues})
    who = every[0].model if len(every) == 1 else f"{len(every)} models"
    return Contents(
        title=f"MillStone: {who} on {issues} {'issue' if issues == 1 else 'issues'}",
        standings=every,
        findings=findings(asked),
        explorer=explorer(sampled(folders, _datasets(folders)), options.reading),
        origins=tuple(origins),
        issue_set=options.issue_set,
        choices=_choices(options),
        command=shlex.join(["millstream", "report", *labels.values(), *flags]),
    )


def _choices(options: Options) -> tuple[tuple[str, str], ...]:
    readings = {
        "recorded": "as each run recorded them",
        "paper": "read from the texts by the paper's patterns",
        "careful": "read from the texts carefully",
    }
    is_whole = options.issue_set == 107
    return (
        ("Stances", readings[options.reading]),
        ("Issues", "all" if is_whole else "without the three that the published scores leave out"),
        ("Consistent, in table 2", f"a mean share above {options.consistent_percent}%"),
        (
            "Topics, in figure 4",
            f"an issue counts in {'the last' if options.last_topic_only else 'each'} of its topics",
        ),
        (
            "Arguments, in figure 6",
            "change from the same template's baseline" if options.relative_to_baseline else "by their pro share",
        ),
    )


def _datasets(folders: Sequence[Folder]) -> dict[Path, Dataset | str]:
    """Each folder's data set, or why its prompts can't be made again."""
    loaded: dict[Path, Dataset | str] = {}
    found: dict[Path, Dataset | str] = {}
    for folder in folders:
        if folder.manifest is None:
            continue
        kept = _kept_path(folder.manifest)
        if kept not in loaded:
            try:
                loaded[kept] = load(kept)
            except (DatasetError, OSError):
                loaded[kept] = "the data set is no longer where it was when the run was made, or can't be read"
        found[folder.path] = loaded[kept]
    return found


def _kept_path(manifest: Mapping[str, Any]) -> Path:
    kept = (manifest.get("options") or {}).get("millstone", {}).get("dataset")
    return SAMPLE if kept is None else Path(kept)


def _write_tables(findings: Findings, folder: Path) -> tuple[str, ...]:
    from ..metrics.report.csv_files import csv_of

    folder.mkdir(parents=True, exist_ok=True)
    for table in findings.tables:
        write_whole(folder / f"{table.name}.csv", csv_of(table))
    return tuple(f"{table.name}.csv" for table in findings.tables)


def _write_figures(findings: Findings, folder: Path) -> tuple[str, ...]:
    """A figure that has become empty leaves no picture of what it was."""
    from ..metrics.report.pictures import png, svg

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in findings.figures:
        names = (f"{figure.name}.svg", f"{figure.name}.png")
        if figure.spec is None:
            for name in names:
                (folder / name).unlink(missing_ok=True)
            continue
        for name, drawn in zip(names, (svg(figure).encode(), png(figure)), strict=True):
            write_whole(folder / name, drawn)
            written.append(name)
    return tuple(written)
