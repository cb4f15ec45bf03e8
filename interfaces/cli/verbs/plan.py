"""`millstream plan`: what a run would ask, its cost and time; writes no run folder and sends nothing but a pilot."""

from __future__ import annotations

import argparse
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from ....bench.evaluation.door.declarations import BUILT_IN
from ....configuration.declared_options import flag
from ....configuration.errors import DONE, RESUMABLE, SIGNAL, WITH_FAILURES
from ....configuration.values import WholeNumber
from ....format import dollars, span_text
from ...terminal.output import note, say_result
from . import run as run_verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....bench.evaluation.door.expected import Expected
    from ....bench.evaluation.planning.forecast import Forecast
    from ....bench.evaluation.planning.pilot import Pilot

HELP = "say what prompts, tokens, cost and time a run takes; sends nothing (but with --pilot N)"
_OF_RUNS = ("out", "no_report")
EXAMPLES = (
    f"plan {BUILT_IN[0]} --model openai/gpt-6-luna --limit 5 --trials 2",
    f"plan {BUILT_IN[0]} --model openai/gpt-6-luna --rpm 500 --pilot 200 --max-cost 0.50",
)


def add_arguments(parser: argparse.ArgumentParser, words: Sequence[str] = ()) -> None:
    run_verb.add_arguments(parser, words)
    for action in parser._actions:
        if action.dest in _OF_RUNS or action.option_strings == ["--sink"]:
            # Taken, so that the word `run` alone has to be changed; but nothing is written.
            action.help = argparse.SUPPRESS
        elif action.option_strings == ["--workers"]:
            # Of no cluster here, so that it needs no --ray and a pilot is not sent by them.
            action.dest = "forecast_workers"
            action.help = "say what bounds the run, and whether N workers make it faster"
    parser.add_argument(
        "--no-cache-check", action="store_true", help="don't look up which prompts the cache already answers"
    )
    parser.add_argument(
        "--pilot",
        type=flag(WholeNumber("prompts")),
        metavar="N",
        help="send N of the run's own prompts (of a benchmark with several calls an item: N items), spread over all "
        "that it varies, to each model at each temperature, and reckon cost and time from what comes; needs keys, "
        "costs money; the run finds the answers in the cache",
    )


def run(options: argparse.Namespace) -> int:
    from ....bench.evaluation.planning.forecast import forecast_of, tell
    from ....bench.evaluation.planning.item_plan import forecast
    from ....bench.evaluation.planning.workers import workers_forecast
    from ....wiring.lane_names import unused_lanes

    has_pilot = options.pilot is not None
    prepared = run_verb.prepared_from(options, is_sent=False, needs_keys=has_pilot)
    notes = dict.fromkeys(remark for each in prepared for remark in (*each.notes, *each.warnings))
    for remark in (*notes, *unused_lanes([each.settings for each in prepared])):
        note(f"millstream: {remark}")
    pilots: Sequence[Pilot] = ()
    if has_pilot:
        from ....bench.evaluation.planning.pilot import check, send_pilots
        from ...terminal.progress import watch_on_stderr

        check(prepared)
        pilots = send_pilots(prepared, options.pilot, watch_on_stderr(is_shown=not options.no_progress))
    forecasts, plans, texts = [], [], []
    for each, pilot in zip_longest(prepared, pilots):
        expected = forecast(each, looks_into_cache=not options.no_cache_check)
        forecasts.append(forecast_of(each, expected))
        plans.append(forecasts[-1].as_json() | {"workers": None, "pilot": None})
        texts.append(tell(forecasts[-1]))
        if (count := options.forecast_workers or each.settings.workers) is not None:
            workers = workers_forecast(count, forecasts[-1], each.settings.concurrency_of)
            plans[-1]["workers"] = to_builtins(workers)
            texts[-1] += f"\n{workers.text}"
        if pilot is not None:
            plans[-1]["pilot"], text = _estimated(pilot, expected)
            texts.append(text)
    # As for runs: a signal before 4 before 3.
    code = max((pilot.exit_code for pilot in pilots), default=DONE)
    say_result(
        options.json,
        lambda: {"exit_code": code, "runs": plans},
        lambda: "\n\n".join([*texts, *_total(forecasts), *([_meaning(code)] if code else [])]),
    )
    return code


def _estimated(pilot: Pilot, expected: Expected) -> tuple[dict[str, Any], str]:
    """Returns a pilot's estimates for programs and for people."""
    from ....bench.evaluation.planning.pilot_figures import as_json, figures_of  # numpy, which no other plan needs
    from ....bench.evaluation.planning.pilot_text import tell

    figures = figures_of(pilot, expected.missing)
    return as_json(pilot, figures), tell(pilot, figures)


def _total(forecasts: Sequence[Forecast]) -> list[str]:
    """Returns the cost of several runs together, as one line; empty for a single run."""
    if len(forecasts) < 2:
        return []
    costs = [each.cost for each in forecasts if each.cost is not None]
    if len(costs) < len(forecasts):
        return [f"all {len(forecasts)} runs together: cost unknown, since a model has no price"]
    low, high = sum(cost.least for cost in costs), sum(cost.most for cost in costs)
    return [f"all {len(forecasts)} runs together: {span_text((low, high), dollars)}"]


def _meaning(code: int) -> str:
    from signal import Signals

    meanings = {
        WITH_FAILURES: "calls of the pilot failed",
        RESUMABLE: "the pilot stopped before its end; the same command goes on with it",
    }
    return f"exit code {code}: {meanings.get(code) or f'interrupted by {Signals(code - SIGNAL).name}'}"
