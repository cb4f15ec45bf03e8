"""`millstream report`: tables, figures and one page of one run or load test, or of several side by side."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..benchmark_options import add_chameleon_readings
from ..options import add_readings, flag
from ..output import note, say, say_json
from ..refusal import DONE, WITH_FAILURES
from ..values import Choice, Text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ...metrics.report.survey import Options
    from ..reporting import Report

HELP = "tables, figures and one page of a run or a load test, or of several side by side"
_NAMED = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folders",
        nargs="+",
        metavar="DIR",
        help="folders that hold a records.jsonl, or a load.json; a model in two of them stands twice, named apart by "
        "its folder",
    )
    parser.add_argument(
        "--out",
        type=flag(Text("a folder")),
        metavar="DIR",
        help="where report.html, tables/ and figures/ go (default: the run's folder; of several, the one they lie in); "
        "of load tests every figure stands in report.html alone",
    )
    parser.add_argument("--json", action="store_true", help="what was written, as one JSON object on stdout")
    group = add_readings(parser)
    group.add_argument(
        "--consistent",
        type=flag(Choice(("90", "95"))),
        metavar="PERCENT",
        help="a unanimous issue is consistent above 90 (default, table 2's caption) or 95 (the paper's appendix)",
    )
    group.add_argument(
        "--arguments",
        type=flag(Choice(("share", "change"))),
        metavar="HOW",
        help="figure 6 by an argument's pro share (default), or its change from the same template's baseline",
    )
    group.add_argument(
        "--topics",
        type=flag(Choice(("each", "last"))),
        metavar="HOW",
        help="figure 4 counts an issue in each of its topics (default) or in the last alone, as the authors do",
    )
    add_chameleon_readings(parser)


def run(options: argparse.Namespace) -> int:
    from ..load.reporting import are_load_tests

    if are_load_tests(options.folders):
        return _run_on_load_tests(options)
    from ..chameleon_readings import given_readings
    from ..millstone_report import label_lines
    from ..reporting import Chosen, distinct, place_of, read, write

    paths = distinct(options.folders)
    out = place_of(paths, options.out)
    _refuse_what_reads_none(paths, options)
    chosen = Chosen(_options(options), given_readings(options), tuple(_flags(options)), options.intervals)
    folders = []
    for path in paths:
        note(f"millstream: reading {path}")
        folders.append(read(path, fix_orientation=bool(options.fix_orientation)))
        for line in label_lines(folders[-1]):
            note(f"millstream: {line}")
    note("millstream: computing the tables, drawing the figures")
    written = write(folders, out, chosen)
    if options.json:
        say_json(_as_json(written))
    else:
        say(_told(written))
    return WITH_FAILURES if written.unmeasured else DONE


def _run_on_load_tests(options: argparse.Namespace) -> int:
    from pathlib import Path

    from ..load.reporting import as_json, told, write
    from ..refusal import UsageError
    from ..reporting import place_of

    if flags := _flags(options):
        raise UsageError(f"{flags[0]} reads records of a run, and {options.folders[0]} holds a load test: leave it out")
    paths = [Path(folder).absolute() for folder in options.folders]
    out = place_of(list(dict.fromkeys(paths)), options.out)
    note("millstream: computing the tables, drawing the figures")
    written = write(paths, out)
    if options.json:
        say_json(as_json(written))
    else:
        say(told(written))
    return WITH_FAILURES if written.unmeasured else DONE


def _refuse_what_reads_none(paths: Sequence[Path], options: argparse.Namespace) -> None:
    from ..which import benchmark_of, refuse_readings_of_others

    benchmarks = {benchmark_of(path) for path in paths}
    if len(benchmarks) == 1:
        refuse_readings_of_others(benchmarks.pop(), paths[0], options)


def _options(options: argparse.Namespace) -> Options:
    from ...metrics.report.survey import Options

    return Options(
        issue_set=104 if options.issue_set == "104" else 107,
        reading=options.stance or "recorded",
        consistent_percent=95 if options.consistent == "95" else 90,
        relative_to_baseline=options.arguments == "change",
        last_topic_only=options.topics == "last",
        silence=options.silence,
    )


def _flags(options: argparse.Namespace) -> list[str]:
    """The readings that were asked for, as they were."""
    from ..chameleon_scores import flags_given

    names = ("stance", "silence", "issue_set", "intervals", "consistent", "arguments", "topics")
    given = {name: getattr(options, name) for name in names}
    flags = [(f"--{name.replace('_', '-')}", value) for name, value in given.items() if value is not None]
    switches = ["--fix-orientation"] if options.fix_orientation else []
    return [*(word for pair in flags for word in pair), *switches, *flags_given(options)]


def _told(report: Report) -> str:
    lines = [f"report: {report.page} ({report.size / 1e6:.1f} MB)"]
    folder = report.page.parent
    lines.append(f"tables: {folder / 'tables'} ({len(report.tables)} files)")
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
    lines += [f"not compared: {told}" for told in report.not_compared]
    return "\n".join(lines)


def _as_json(report: Report) -> dict[str, Any]:
    folder = report.page.parent
    models = [
        {
            "model": standing.model,
            "expected": standing.expected,
            "answered": standing.answered,
            "refused": standing.refused,
            "failed": dict(standing.failed),
            "pending": standing.pending,
        }
        for standing in report.standings
    ]
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
