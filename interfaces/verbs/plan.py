"""`millstream plan`: what a run would ask, cost and take; sends nothing and writes nothing."""

from __future__ import annotations

import argparse

from ..output import note, say, say_json
from ..refusal import DONE
from . import run as run_verb

HELP = "prompts, tokens, cost and time of a run; sends nothing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    run_verb.add_arguments(parser)
    parser.add_argument(
        "--no-cache-check", action="store_true", help="don't look up which prompts the cache already answers"
    )


def run(options: argparse.Namespace) -> int:
    from ..forecast import forecast, tell

    prepared = run_verb.prepared_from(options, is_sent=False)
    for remark in dict.fromkeys(remark for each in prepared for remark in each.notes):
        note(f"millstream: {remark}")
    forecasts = [forecast(each, looks_into_cache=not options.no_cache_check) for each in prepared]
    if options.json:
        say_json({"runs": forecasts})
    else:
        say("\n\n".join(map(tell, forecasts)))
    return DONE
