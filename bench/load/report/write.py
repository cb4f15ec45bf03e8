"""Writes a report on folders of load tests: report.html and tables/*.csv.

Owns which folders hold a load test, their names in the report, and the errors of damaged ones. `part` decides the
content; where reports go, and what they may overwrite, is the same as for runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ....configuration.errors import UsageError
from ....engine.folder_file import read_whole, write_whole
from ....engine.runs.run_folder import MANIFEST, RECORDS
from ....format import command_text
from ....report.labels import folder_labels
from ...evaluation.page.reporting import PAGE, TABLES, check_is_our_page, unless_unwritable, write_tables
from ..folder import CALLS, LOAD

if TYPE_CHECKING:
    from ....metrics.load.load_json import LoadFigures


class LoadReport(Struct, frozen=True):
    """A report that was written: its page, the page's `size` in bytes, the names of its tables' files, and the tests in
    it."""

    page: Path
    size: int
    tables: tuple[str, ...]
    tests: tuple[tuple[Path, tuple[str, ...], bool], ...]
    """Each folder, its models, and whether the client was the bottleneck."""
    not_compared: str = ""
    """Why no differences of the tests are given; empty where they are."""
    unmeasured: tuple[str, ...] = ()
    """A sentence for each model of which no answer was measured."""


def are_load_tests(folders: Sequence[str]) -> bool:
    """Returns whether these are folders of load tests. Raises UsageError if some are and others are runs."""
    paths = [Path(folder).absolute() for folder in folders]
    tests = [path for path in paths if (path / LOAD).exists()]
    if not tests:
        _check_finished(paths)
        return False
    for path in paths:
        if (path / RECORDS).exists() or (path / MANIFEST).exists():
            other = next((test for test in tests if test != path), path)
            both = f"{path} holds both" if other == path else f"{other} holds a load test, {path} a run"
            raise UsageError(f"expected load tests alone or runs alone, got both: {both}; report on them apart")
        if path not in tests:
            _check_finished([path])
            raise UsageError(f"{path}: expected a folder with {LOAD}, as the others have, got none there")
    return True


def _check_finished(paths: Sequence[Path]) -> None:
    for path in paths:
        if (path / RECORDS).exists() or not path.is_dir():
            continue
        if (path / CALLS).exists():
            raise UsageError(
                f"{path}: expected {LOAD}, got {CALLS} alone: this load test was killed before its figures were "
                f"written, or is still under way"
            )
        if inside := sorted({each.parent.name for each in path.glob(f"*/{LOAD}")}):
            several = command_text("report", *(path / name for name in inside[:3]))
            raise UsageError(f"{path} holds several load tests: name them, as {several}")


def write(folders: Sequence[Path], out: Path) -> LoadReport:
    """Writes the report and returns its files. Raises UsageError for a folder without a readable load test, LocalFault
    if the report can't be written."""
    from .part import drawn
    from .plans import not_compared
    from .series import LoadTest

    paths = list({path.resolve(): path.absolute() for path in folders}.values())
    check_is_our_page(out / PAGE)
    names = list(folder_labels(paths).values())
    tests = [LoadTest(name, read(path)) for name, path in zip(names, paths, strict=True)]
    _check_differ(paths)
    made = drawn(tests, join(["millstream", "report", *names]))
    with unless_unwritable(out):
        written = write_tables(made.tables, out / TABLES)
        write_whole(out / PAGE, made.page)
    entries = tuple(
        (path, tuple(test.load.models), test.load.client.is_bottleneck) for path, test in zip(paths, tests, strict=True)
    )
    several = len(tests) > 1
    unmeasured = tuple(
        f"{test.name}: {sentence}" if several else sentence for test in tests for sentence in test.load.unmeasured
    )
    return LoadReport(out / PAGE, len(made.page), written, entries, not_compared(tests), unmeasured)


def _check_differ(paths: Sequence[Path]) -> None:
    """Raises UsageError if two folders hold one load test: no two measure the same times to the last digit."""
    seen: dict[bytes, Path] = {}
    for path in paths:
        if (other := seen.setdefault(read_whole(path / LOAD), path)) != path:
            raise UsageError(f"{path} holds the same load test as {other}: name one of them")


def read(folder: Path) -> LoadFigures:
    """Returns the figures of one load test. Raises UsageError if it has none that can be read."""
    from ....metrics.load.reading import DamagedLoad, load_of

    path = folder / LOAD
    try:
        data = read_whole(path)
    except FileNotFoundError as error:
        raise UsageError(f"{folder}: expected a folder with {LOAD}, got none there") from error
    except OSError as error:
        raise UsageError(f"{path}: expected a readable file, got: {error.strerror}") from error
    try:
        return load_of(data)
    except DamagedLoad as error:
        raise UsageError(f"{path}: {error}") from error


def as_json(report: LoadReport) -> dict[str, Any]:
    folder = report.page.parent
    return {
        "report": str(report.page),
        "bytes": report.size,
        "tables": [str(folder / TABLES / name) for name in report.tables],
        "load_tests": [
            {"folder": str(path), "models": list(models), "client_was_bottleneck": is_bottleneck}
            for path, models, is_bottleneck in report.tests
        ],
        "not_compared": report.not_compared or None,
        "unmeasured": list(report.unmeasured),
    }


def told(report: LoadReport) -> str:
    folder = report.page.parent
    lines = [f"tables: {folder / TABLES} ({len(report.tables)} files)"]
    lines += [
        f"THE CLIENT WAS THE BOTTLENECK in {path}: its figures are not the server's alone"
        for path, _, is_bottleneck in report.tests
        if is_bottleneck
    ]
    if report.not_compared:
        lines.append(f"not compared: {report.not_compared}")
    lines += report.unmeasured
    # The last line says what to open.
    return "\n".join([*lines, f"report: {report.page} ({report.size / 1e6:.1f} MB)"])
