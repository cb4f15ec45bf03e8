"""`millstream sim`: the simulated model provider on loopback, until it is interrupted.

Owns the port at which the provider name `sim` expects it. What it can do is the simulated provider's own.
"""

from __future__ import annotations

import argparse
import contextlib
from typing import TYPE_CHECKING

from ..output import note, say
from ..refusal import DONE, UsageError

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from ...fixtures.provider import ModelProvider, Options

HELP = "a simulated model provider on loopback, with quotas and faults on request"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ...fixtures.provider import add_arguments as add_provider_arguments
    from ...providers.table import SIM_PORT

    parser.add_argument(
        "--full-size",
        action="store_true",
        help="know the generated data set of the published size too, kept in the user's cache folder",
    )
    parser.add_argument(
        "--until-eof", action="store_true", help="stop when standard input closes: with the program that started it"
    )
    add_provider_arguments(parser)
    parser.set_defaults(port=SIM_PORT)


def run(options: argparse.Namespace) -> int:
    from ...engine.fault import LocalFault
    from ...fixtures.provider.command import describe_faults
    from ...fixtures.provider.stances import DatasetUnreadable

    if options.list_faults:
        say(describe_faults())
        return DONE
    try:
        wanted = _options(options)
        _serve(wanted, until_eof=options.until_eof)
    except (ValueError, DatasetUnreadable) as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise LocalFault(f"{error.strerror or error}: give another --port, --host or --port-file") from error
    return DONE


def full_size_folder() -> Path:
    """Where the generated data set of the published size is kept for every use on this machine."""
    from ...wiring import Settings

    return Settings().cache_folder() / "full-size"


def _options(options: argparse.Namespace) -> Options:
    from msgspec import structs

    from ...fixtures.full_size import ensure
    from ...fixtures.provider import options_from

    wanted = options_from(options)
    if not options.full_size:
        return wanted
    return structs.replace(wanted, datasets=(*wanted.datasets, ensure(full_size_folder())))


def _serve(wanted: Options, *, until_eof: bool) -> None:
    import asyncio

    try:
        import uvloop
    except ImportError:
        asyncio.run(_listen(wanted, until_eof=until_eof))
    else:
        uvloop.run(_listen(wanted, until_eof=until_eof))


async def _listen(wanted: Options, *, until_eof: bool) -> None:
    import asyncio
    import gc

    from ...fixtures.provider import ModelProvider
    from ..signals import Interruption

    stopped = asyncio.Event()
    async with ModelProvider(wanted) as provider:
        # The data sets live as long as the process: the collector need not walk them again.
        gc.freeze()
        with Interruption(lambda _: stopped.set(), stopped.set):
            if until_eof:
                _at_end_of_input(stopped)
            say(_told(provider))
            await stopped.wait()
    note("simulated provider stopped")


def _at_end_of_input(stopped: asyncio.Event) -> None:
    """A thread that sleeps in read: what standard input is, a pipe or a file, need not be known."""
    import asyncio
    import os
    import threading

    loop = asyncio.get_running_loop()

    def read() -> None:
        try:
            while os.read(0, 4_096):
                pass
        except OSError:
            pass  # there is no standard input
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            loop.call_soon_threadsafe(stopped.set)

    threading.Thread(target=read, name="standard input", daemon=True).start()


def _told(provider: ModelProvider) -> str:
    from ...providers.table import SIM_PORT

    known = provider.port == SIM_PORT and provider.options.host == "127.0.0.1"
    where = "" if known else f" --base-url {provider.base_url}"
    return f"simulated provider at {provider.base_url}: millstream run millstone --model sim/open --out DIR{where}"
