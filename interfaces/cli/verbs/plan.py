"""`millstream plan`: what a run would ask, its cost and time; writes no run folder and sends nothing but a pilot."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ....bench.evaluation.declarations import BUILT_IN
from ....configuration.errors import DONE, RESUMABLE, SIGNAL, WITH_FAILURES
from ....configuration.options import flag
from ....configuration.values import WholeNumber
from ....format import dollars, span_text
from ...terminal.output import note, say, say_json
from . import run as run_verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....bench.evaluation.item_pilot import ItemPilot
    from ....bench.evaluation.pilot import Pilot
    from ....bench.evaluation.preparation import PreparedRun

HELP = "prompts, tokens, cost and time of a run; sends nothing (but with --pilot N)"
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
    from ....wiring.lane_names import unused_lanes

    has_pilot = options.pilot is not None
    prepared = run_verb.prepared_from(options, is_sent=False, needs_keys=has_pilot)
    notes = dict.fromkeys(remark for each in prepared for remark in (*each.notes, *each.warnings))
    for remark in (*notes, *unused_lanes([each.settings for each in prepared])):
        note(f"millstream: {remark}")
    return _with_pilot(prepared, options) if has_pilot else _tell(prepared, options)


def _with_pilot(prepared: Sequence[PreparedRun], options: argparse.Namespace) -> int:
    from ....bench.evaluation.pilot import check, send_pilots
    from ...terminal.progress import watch_on_stderr

    check(prepared)
    return _tell(
        prepared, options, send_pilots(prepared, options.pilot, watch_on_stderr(is_shown=not options.no_progress))
    )


def _tell(
    prepared: Sequence[PreparedRun], options: argparse.Namespace, pilots: Sequence[Pilot | ItemPilot] = ()
) -> int:
    from itertools import zip_longest

    from ....bench.evaluation.cost_bound import in_flight_under_limit
    from ....bench.evaluation.cost_bound import lines as bound_lines

    forecasts, told = [], []
    for each, pilot in zip_longest(prepared, pilots):
        forecast, text = _forecast(each, pilot, looks_into_cache=not options.no_cache_check)
        forecasts.append(forecast)
        told.append(text)
        forecasts[-1]["in_flight_under_max_cost"] = bound = in_flight_under_limit(each)
        told[-1] = "\n".join([told[-1], *bound_lines(bound, each.settings.max_cost)])
    # As for runs: a signal before 4 before 3.
    code = max((pilot.exit_code for pilot in pilots), default=DONE)
    if options.json:
        say_json({"exit_code": code, "runs": forecasts})
    else:
        say("\n\n".join([*told, *_total(forecasts), *([_meaning(code)] if code else [])]))
    return code


def _total(forecasts: Sequence[dict[str, Any]]) -> list[str]:
    """Returns the cost of several runs together, as one line; empty for a single run."""
    if len(forecasts) < 2:
        return []
    costs = [found["cost"] for found in forecasts if found.get("cost") is not None]
    if len(costs) < len(forecasts):
        return [f"all {len(forecasts)} runs together: cost unknown, since a model has no price"]
    low, high = sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)
    return [f"all {len(forecasts)} runs together: {span_text((low, high), dollars)}"]


def _forecast(
    run: PreparedRun, pilot: Pilot | ItemPilot | None, *, looks_into_cache: bool
) -> tuple[dict[str, Any], str]:
    """Returns a run's forecast, with the pilot's estimates if there was one, and its text."""
    from ....bench.evaluation.registry import benchmark_named

    benchmark = benchmark_named(run.work.benchmark)
    if pilot is not None:
        from ....bench.evaluation.item_pilot import ItemPilot
        from ....bench.evaluation.item_pilot_figures import figures, tell

        if isinstance(pilot, ItemPilot):
            found = benchmark.forecast(run, looks_into_cache=looks_into_cache)
            text = benchmark.forecast_text(found)
            found["pilot"] = figures(pilot, run.settings)
            return found, f"{text}\n\n{tell(found['pilot'])}"
    found = benchmark.forecast(run, looks_into_cache=looks_into_cache, pilot=pilot)
    return found, benchmark.forecast_text(found)


def _meaning(code: int) -> str:
    from signal import Signals

    told = {
        WITH_FAILURES: "calls of the pilot failed",
        RESUMABLE: "the pilot stopped before its end; the same command goes on with it",
    }
    return f"exit code {code}: {told.get(code) or f'interrupted by {Signals(code - SIGNAL).name}'}"
