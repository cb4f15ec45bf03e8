"""`millstream view`: the live page of runs, until a signal."""

from __future__ import annotations

import argparse
from pathlib import Path

from ....configuration.declared_options import flag
from ....configuration.errors import DONE, UsageError
from ....configuration.values import WholeNumber
from ...terminal.output import say, say_json

HELP = "a live page of runs: progress, cost, scores as they come, and buttons to steer them"
EXAMPLES = (
    "view",
    "view runs tests/load",
)
PORT = 8500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folders",
        nargs="*",
        metavar="DIR",
        help="folders of runs and load tests, or those that they lie in (default: runs if it is there, else this one)",
    )
    parser.add_argument(
        "--port",
        type=flag(WholeNumber("a port", 0, 65_535)),
        default=PORT,
        metavar="N",
        help="port of 127.0.0.1 to listen on (default: %(default)s); 0: any free one",
    )
    parser.add_argument("--json", action="store_true", help="the page's address as one JSON object on stdout")


def run(options: argparse.Namespace) -> int:
    import asyncio

    from ....engine.runs.run_folder import no_folder_at
    from ....wiring.event_loop import run_in_loop
    from ....wiring.signals import Interruption
    from ...view.server import ViewServer

    folders = [Path(folder) for folder in options.folders or ("runs" if Path("runs").is_dir() else ".",)]
    for folder in folders:
        if why := no_folder_at(folder):
            raise UsageError(why)

    async def serve() -> None:
        ended = asyncio.Event()
        async with ViewServer([folder.absolute() for folder in folders], options.port) as server:
            with Interruption(lambda _: ended.set(), ended.set):
                if options.json:
                    say_json({"address": server.address})
                else:
                    say(f"runs at {server.address}\nThe address has the key: it is valid until this command ends.")
                await ended.wait()

    run_in_loop(serve())
    return DONE
