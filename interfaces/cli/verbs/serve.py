"""`millstream serve`: other programs' calls through our cache, quotas, trial numbers and budgets, until a signal.

Owns the flags. What the gateway does: interfaces/gateway.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....configuration.declared_options import flag
from ....configuration.errors import DONE, SIGNAL
from ....configuration.options import add_sending
from ....configuration.values import Text, WholeNumber, WordChoice
from ....format import cost_of_calls, count_text
from ...terminal.output import note, say, say_result

if TYPE_CHECKING:
    from collections.abc import Mapping


HELP = "serve OpenAI's, Anthropic's and Gemini's clients through one cache, quota and budget"
EXAMPLES = (
    "serve --rpm 500 --max-cost 5",
    "serve --port 8400 --config gateway.toml",
)
HOST = "127.0.0.1"
PORT = 8400
_REPEATS = ("count", "same")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host",
        type=flag(Text("an address to listen on")),
        default=HOST,
        metavar="HOST",
        help="address to listen on (default: %(default)s); any that other machines reach needs a token under [gateway]",
    )
    parser.add_argument(
        "--port",
        type=flag(WholeNumber("a port", 0, 65_535)),
        default=PORT,
        metavar="N",
        help="port to listen on (default: %(default)s); 0: any free one",
    )
    parser.add_argument("--port-file", type=flag(Text("a file")), metavar="FILE", help="write the port there")
    parser.add_argument(
        "--repeats",
        type=flag(WordChoice(_REPEATS)),
        default=_REPEATS[0],
        metavar="|".join(_REPEATS),
        help="count: a caller's identical requests in one run are samples 0, 1, 2, … (default); same: they are one "
        "question with one answer",
    )
    parser.add_argument(
        "--log", action="store_true", help="a line a request on stderr: time, model, status, duration, tokens, cost"
    )
    add_sending(parser, helps={"max_cost": "stop before the calls of all clients together can cost more"})
    parser.add_argument("--json", action="store_true", help="the summary at the end as one JSON object on stdout")


def run(options: argparse.Namespace) -> int:
    from msgspec import structs

    from ....configuration.configuration import read_configuration, settings_for_any
    from ....wiring.event_loop import run_in_loop
    from ...gateway.serving import ServeOptions, serve

    sending = options.sending
    configuration = read_configuration(sending.config)
    settings = settings_for_any(sending, configuration)
    settings = structs.replace(settings, budget_name=f"serve {options.host}:{options.port}")
    port_file = None if options.port_file is None else Path(options.port_file)
    place = ServeOptions(
        options.host, options.port, port_file, options.repeats == "count", note if options.log else None
    )
    ended = run_in_loop(serve(settings, configuration.gateway, place, note if options.json else say))
    say_result(options.json, lambda: ended.summary, lambda: summary_text(ended.summary))
    if ended.was_cut:
        note("millstream serve: requests under way were cut off; what had come is in the cache")
        return SIGNAL + (ended.signal or 0)
    return DONE


def summary_text(summary: Mapping[str, Any]) -> str:
    stopped = f"; stopped: {', '.join(summary['stopped'])}" if summary["stopped"] else ""
    money = ""
    if summary["money"] is not None:
        limit = summary["money"]
        money = f" (${limit['spent']:,.4f} spent of --max-cost ${limit['max_cost']:,.4f}"
        money += f", up to ${limit['at_most']:,.4f})" if limit["at_most"] > limit["spent"] else ")"
    cost = cost_of_calls(summary["cost"], summary["sent"], summary["unpriced"])
    sent = f"{count_text(summary['sent'], 'call')} sent, cost {cost}"
    return (
        f"gateway stopped: {count_text(summary['requests'], 'request')}, {summary['from_cache']:,} from the cache, "
        f"{summary['failed']:,} failed; {sent}{money}{stopped}"
    )
