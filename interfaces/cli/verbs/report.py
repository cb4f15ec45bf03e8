"""`millstream report`: tables, figures and one page of one run or load test, or of several side by side."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....bench.evaluation.door.declarations import declarations, of_folders
from ....configuration.benchmark_options import add_readings, given_to, words_given
from ....configuration.declared_options import flag
from ....configuration.errors import DONE, WITH_FAILURES, UsageError
from ....configuration.values import Text
from ...terminal.output import note, say_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....bench.evaluation.page.reporting import WrittenReport

HELP = "write tables, figures and one page of a run or a load test, or of several side by side"
EXAMPLES = (
    "report runs/first",
    "report runs/first runs/second --out compared",
)
_NAMED = 5


def add_arguments(parser: argparse.ArgumentParser, words: Sequence[str] = ()) -> None:
    parser.add_argument(
        "folders",
        nargs="*",
        metavar="DIR",
        help="folders that hold a records.jsonl, or a load.json; a model in two of them has two rows, each with the "
        "name of its folder",
    )
    parser.add_argument(
        "--counts",
        action="append",
        default=[],
        metavar="CSV",
        help="a table of published counts to set beside the runs, or to report alone (repeatable); columns as for "
        "`score --counts`",
    )
    parser.add_argument(
        "--out",
        type=flag(Text("a folder")),
        metavar="DIR",
        help="where report.html, tables/ and figures/ go (default: the run's folder; of several, the one they lie in); "
        "figures of load tests are in report.html alone",
    )
    parser.add_argument("--json", action="store_true", help="what was written, as one JSON object on stdout")
    add_readings(parser, of_folders(words), "report")


def run(options: argparse.Namespace) -> int:
    from ....bench.load.report.write import are_load_tests

    if not options.folders and not options.counts:
        raise UsageError("report: expected at least one DIR, or --counts CSV, got none")
    if are_load_tests(options.folders):
        return _run_on_load_tests(options)
    from ....bench.evaluation.door.registry import benchmark_of, check_readings
    from ....bench.evaluation.page.reporting import distinct, place_of, read, read_counts, write
    from ...batch.place import check_is_no_batch

    for folder in options.folders:
        check_is_no_batch(Path(folder))
    paths = distinct(options.folders)
    out = place_of(paths, options.out)
    declared = of_folders(options.folders)
    readings = given_to(options, declared, "report")
    benchmarks = {benchmark_of(path) for path in paths}
    if len(benchmarks) == 1:
        check_readings(benchmarks.pop(), paths[0], readings, declared, "report")
    runs = []
    for path in paths:
        note(f"millstream: reading {path}")
        runs.append(read(path, readings))
    tables = dict.fromkeys(Path(path).absolute() for path in options.counts)
    runs += [read_counts(path, readings) for path in tables]
    note("millstream: computing the tables, drawing the figures")
    written = write(runs, out, readings, words_given(options, declared, "report"))
    say_result(options.json, lambda: _as_json(written), lambda: _text(written))
    return WITH_FAILURES if written.unmeasured else DONE


def _run_on_load_tests(options: argparse.Namespace) -> int:
    from ....bench.evaluation.page.reporting import place_of
    from ....bench.load.report.write import as_json, told, write

    if options.counts:
        raise UsageError(f"--counts stands beside runs, and {options.folders[0]} holds a load test: leave it out")
    if flags := words_given(options, declarations(), "report"):
        raise UsageError(f"{flags[0]} reads records of a run, and {options.folders[0]} holds a load test: leave it out")
    paths = [Path(folder).absolute() for folder in options.folders]
    out = place_of(list(dict.fromkeys(paths)), options.out)
    note("millstream: computing the tables, drawing the figures")
    written = write(paths, out)
    say_result(options.json, lambda: as_json(written), lambda: told(written))
    return WITH_FAILURES if written.unmeasured else DONE


def _text(report: WrittenReport) -> str:
    folder = report.page.parent
    lines = [f"tables: {folder / 'tables'} ({len(report.tables)} files)"]
    if report.figures:
        lines.append(f"figures: {folder / 'figures'} ({len(report.figures)} files)")
    lacking = [standing for standing in report.standings if not standing.is_complete]
    for standing in lacking[:_NAMED]:
        lines.append(
            f"incomplete: {standing.model}: {standing.answered:,} of {standing.expected:,} answered, "
            f"{standing.failures:,} failed, {standing.pending:,} pending or missing"
        )
    if len(lacking) > _NAMED:
        lines.append(f"incomplete: {len(lacking) - _NAMED} more models, told in the report")
    lines += report.unmeasured
    lines += [f"not compared: {reason}" for reason in report.not_compared]
    # The last line says what to open.
    return "\n".join([*lines, f"report: {report.page} ({report.size / 1e6:.1f} MB)"])


def _as_json(report: WrittenReport) -> dict[str, Any]:
    folder = report.page.parent
    names = ("model", "expected", "answered", "refused", "failed", "pending")
    models = [{name: getattr(standing, name) for name in names} for standing in report.standings]
    return {
        "report": str(report.page),
        "bytes": report.size,
        "tables": [str(folder / "tables" / name) for name in report.tables],
        "figures": [str(folder / "figures" / name) for name in report.figures],
        "complete": all(standing.is_complete for standing in report.standings),
        "models": models,
        "unmeasured": list(report.unmeasured),
        "remarks": list(report.remarks),
        "not_compared": list(report.not_compared),
    }
