"""`millstream rescore`: a corrected scorer's scores become the run's own; the old ones are kept beside."""

from __future__ import annotations

import argparse
from pathlib import Path

from ....configuration.declared_options import flag
from ....configuration.errors import DONE, WITH_FAILURES
from ....configuration.options import add_report
from ....configuration.values import Text
from ....format import count_text
from ...terminal.output import note, say, say_result

HELP = "carry a corrected scorer into a run's records, scores and report; sends nothing"
EXAMPLES = ("rescore runs/capitals --task capitals.py",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the folder of a task's run that has ended")
    parser.add_argument(
        "--task",
        required=True,
        type=flag(Text("the file of a task")),
        metavar="FILE[:NAME]",
        help="the file whose task has the scorers, which is executed; its prompts are not read",
    )
    add_report(parser)
    parser.add_argument("--json", action="store_true", help="the scores as one JSON object on stdout")


def run(options: argparse.Namespace) -> int:
    from ....bench.evaluation.page.reporting import read, stale_beside, write
    from ....bench.task.benchmark import BENCHMARK
    from ....bench.task.rescoring import rescore
    from .resume import manifest_of

    folder = Path(options.folder)
    manifest_of(folder)  # which says what other folders are
    made = rescore(folder, options.task)
    say_result(options.json, lambda: made.scores, lambda: BENCHMARK.score_table(options.folder, made.scores))
    if made.before is None:
        note("millstream: these are the scorers that the run has: nothing was changed")
    else:
        note(
            f"millstream: {made.changed:,} of {count_text(made.answers, 'answer')} have other scores; before: "
            f"{folder / made.before.scores}, {made.before.records}"
        )
        if made.asks_otherwise:
            note(
                f"millstream: {options.task} asks otherwise than this run did ({', '.join(made.asks_otherwise)}): "
                f"`resume` and `retry` will refuse it"
            )
        if stale := stale_beside(folder):
            note(f"millstream: {stale}")
    if not options.no_report:
        page = write([read(folder)], folder, has_figures=False).page
        note(f"report: {page}") if options.json else say(f"report: {page}")
    return WITH_FAILURES if any(part["unmeasured"] for part in made.scores.values()) else DONE
