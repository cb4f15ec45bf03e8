"""`millstream plan`: what a run would ask, cost and take; writes no run's folder and sends nothing but a pilot."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..options import flag
from ..output import note, say, say_json
from ..refusal import DONE, RESUMABLE, SIGNAL, WITH_FAILURES
from ..values import Whole
from . import run as run_verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..pilot import Pilot
    from ..preparation import Prepared

HELP = "prompts, tokens, cost and time of a run; sends nothing (but with --pilot N)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    run_verb.add_arguments(parser)
    parser.add_argument(
        "--no-cache-check", action="store_true", help="don't look up which prompts the cache already answers"
    )
    parser.add_argument(
        "--pilot",
        type=flag(Whole("prompts")),
        metavar="N",
        help="send N of the run's own prompts, spread over all that it varies, to each model at each temperature, and "
        "reckon cost and time from what comes; needs keys, costs money; the run finds the answers in the cache",
    )


def narrow_help(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    run_verb.narrow_help(parser, words)


def run(options: argparse.Namespace) -> int:
    has_pilot = options.pilot is not None
    prepared = run_verb.prepared_from(options, is_sent=False, needs_keys=has_pilot)
    for remark in dict.fromkeys(remark for each in prepared for remark in (*each.notes, *each.warnings)):
        note(f"millstream: {remark}")
    return _with_pilot(prepared, options) if has_pilot else _tell(prepared, options)


def _with_pilot(prepared: Sequence[Prepared], options: argparse.Namespace) -> int:
    from ..pilot import check, send_pilots

    check(prepared)
    return _tell(prepared, options, send_pilots(prepared, options.pilot, show_progress=not options.no_progress))


def _tell(prepared: Sequence[Prepared], options: argparse.Namespace, pilots: Sequence[Pilot] = ()) -> int:
    from itertools import zip_longest

    from .. import chameleon_forecast
    from ..benchmarks import chameleon_of
    from ..cost_bound import in_flight_under_limit
    from ..cost_bound import lines as bound_lines
    from ..forecast import forecast, tell

    looks = not options.no_cache_check
    forecasts, told = [], []
    for each, pilot in zip_longest(prepared, pilots):
        work = chameleon_of(each)
        if work is not None:
            forecasts.append(chameleon_forecast.forecast_of(each, work))
            told.append(chameleon_forecast.tell(forecasts[-1]))
        else:
            forecasts.append(forecast(each, looks_into_cache=looks, pilot=pilot))
            told.append(tell(forecasts[-1]))
        forecasts[-1]["in_flight_under_max_cost"] = bound = in_flight_under_limit(each)
        told[-1] = "\n".join([told[-1], *bound_lines(bound, each.settings.max_cost)])
    # As for runs: a signal before 4 before 3.
    code = max((pilot.exit_code for pilot in pilots), default=DONE)
    if options.json:
        say_json({"exit_code": code, "runs": forecasts})
    else:
        say("\n\n".join([*told, *([_meaning(code)] if code else [])]))
    return code


def _meaning(code: int) -> str:
    from signal import Signals

    told = {
        WITH_FAILURES: "calls of the pilot failed",
        RESUMABLE: "the pilot stopped before its end; the same command goes on with it",
    }
    return f"exit code {code}: {told.get(code) or f'interrupted by {Signals(code - SIGNAL).name}'}"
