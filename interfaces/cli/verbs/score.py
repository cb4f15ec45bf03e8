"""`millstream score`: scores from the records of run folders, ours or another program's, or from published counts."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....bench.evaluation.door.declarations import of_folders
from ....configuration.benchmark_options import add_readings, given_to
from ....configuration.errors import DONE, WITH_FAILURES, UsageError
from ....engine.remarks import remark
from ...terminal.output import note, say, say_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....bench.evaluation.door.benchmark import ItemBenchmark

HELP = "score again, from records or from published counts, and compare runs"
EXAMPLES = (
    "score runs/first",
    "score runs/first runs/second --json",
)


def add_arguments(parser: argparse.ArgumentParser, words: Sequence[str] = ()) -> None:
    parser.add_argument(
        "folders",
        nargs="*",
        metavar="DIR",
        help="folders that hold a records.jsonl; of several, every two runs are compared",
    )
    parser.add_argument(
        "--counts",
        nargs="+",
        action="extend",
        default=[],
        metavar="CSV",
        help="tables with the columns issue, issue_stance, count, case, model",
    )
    add_readings(parser, of_folders(words), "score")
    parser.add_argument("--json", action="store_true", help="the scores as one JSON object on stdout")


def run(options: argparse.Namespace) -> int:
    if not options.folders and not options.counts:
        raise UsageError("score: expected at least one DIR, or --counts CSV, got none")
    from ....bench.evaluation.door.registry import benchmark_of, check_readings, counts_reader, own_readings
    from ....bench.evaluation.page.reporting import check_hold_different_runs
    from ....bench.evaluation.page.unlike_sources import unlike
    from ....bench.evaluation.reading.run_comparison import compared_folders, comparison_lines
    from ....bench.evaluation.running.scoring import SCORES, score_folder, write_scores
    from ...batch.place import check_is_no_batch

    declared = of_folders(options.folders)
    readings = given_to(options, declared, "score")
    unkept = ExitStack()
    scored: dict[str, tuple[ItemBenchmark[Any], dict[str, Any]]] = {}
    check_hold_different_runs(map(Path, options.folders))
    for folder in options.folders:
        check_is_no_batch(Path(folder))
        benchmark = benchmark_of(Path(folder))
        check_readings(benchmark, Path(folder), readings, declared, "score")
        scores, keeps = score_folder(benchmark, Path(folder), readings)
        scored[folder] = benchmark, scores
        if keeps:
            remark(f"{folder}/{SCORES} keeps {keeps}")
        else:
            unkept.callback(write_scores, Path(folder), scores)
    for path in options.counts:
        reader, counts = counts_reader()
        scored[path] = reader, counts.score(Path(path), own_readings(reader, readings))
    if options.json:
        say_json({source: scores for source, (_, scores) in scored.items()})
    else:
        tables = [benchmark.score_table(source, scores) for source, (benchmark, scores) in scored.items()]
        served = (scores.get("served", {}) for _, scores in scored.values())
        say(
            "\n\n".join(
                [
                    *tables,
                    *(line for row in served for part in ("remarks", "unmeasured") for line in row.get(part, ())),
                ]
            )
        )
    manners = {
        source: {"benchmark": benchmark.title, **benchmark.manner(Path(source), scores, readings)}
        for source, (benchmark, scores) in scored.items()
    }
    first, *others = dict.fromkeys(benchmark for benchmark, _ in scored.values())
    if first.compares_runs and not others and not options.counts:
        lines = comparison_lines(compared_folders(first, {name: Path(name) for name in scored}, readings))
        if lines and not options.json:
            say("\n".join(("", *lines)))
    elif difference := unlike(manners):
        note(f"millstream: not compared: {difference}")
    # Scores that can't be written are shown all the same, and those of the other folders are written.
    unkept.close()
    has_unmeasured = any(part["unmeasured"] for _, scores in scored.values() for part in scores.values())
    return WITH_FAILURES if has_unmeasured else DONE
