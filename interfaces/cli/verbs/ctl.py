"""`millstream ctl`: steers a run that goes on in another process."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....configuration.declared_options import flag
from ....configuration.errors import DONE
from ....configuration.values import CONCURRENCY, MAX_COST, WordChoice
from ....format import command_text
from ...terminal.output import say_result

HELP = "steer a run that goes on: pause, resume, set its calls in flight or its limit, stop"
EXAMPLES = (
    "ctl runs/first pause",
    "ctl runs/first set --concurrency 32 --max-cost 5",
    "ctl runs/first stop",
)
_ACTIONS = ("pause", "resume", "set", "stop")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the run's folder")
    parser.add_argument(
        "action",
        type=flag(WordChoice(_ACTIONS)),
        metavar="ACTION",
        help="pause: send nothing more until resume; set: change what the options name; stop: finish the calls in "
        "flight and end, as after Ctrl-C",
    )
    parser.add_argument(
        "--concurrency",
        type=flag(CONCURRENCY),
        metavar="N",
        help="calls in flight, for each model's lane and API key",
    )
    parser.add_argument(
        "--max-cost",
        type=flag(MAX_COST),
        metavar="DOLLARS",
        help="the run's new limit; no lower than what is spent and what its calls in flight may cost",
    )
    parser.add_argument("--json", action="store_true", help="what holds then, as one JSON object on stdout")


def run(options: argparse.Namespace) -> int:
    from ....engine.runs.live import steer
    from .resume import manifest_of

    folder = Path(options.folder)
    changes = {"concurrency": options.concurrency, "max_cost": options.max_cost}
    wanted = {name: value for name, value in changes.items() if value is not None}
    manifest_of(folder)
    state = steer(folder, {"action": options.action, **wanted})
    say_result(options.json, lambda: {"folder": str(folder), **state}, lambda: _text(folder, state))
    return DONE


def _text(folder: Path, state: Mapping[str, Any]) -> str:
    if state["state"] == "ended":
        return f"{folder}: ended; go on: {command_text('resume', folder)}"
    then = {
        "running": "",
        "paused": f"; go on: {command_text('ctl', folder, 'resume')}",
        "ending": f"; when it has ended, go on: {command_text('resume', folder)}",
    }[state["state"]]
    limits = [] if state["concurrency"] is None else [f"{state['concurrency']:,} in flight for each model's API key"]
    limits += [] if state["max_cost"] is None else [f"--max-cost ${state['max_cost']:,.4f}"]
    return f"{folder}: {'; '.join((state['state'], *limits))}{then}\n{state['line']}"
