"""`millstream sim`: a simulated model provider on loopback, with --web also a web, until it is interrupted.

Owns the port at which the provider name `sim` expects it. What it can do: fixtures/provider.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
from typing import TYPE_CHECKING

from ....configuration.errors import DONE, UsageError
from ...terminal.output import note, say

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from ....fixtures.provider import ModelProvider, Options
    from ....fixtures.web import SimulatedWeb, WebOptions

HELP = "simulate a model provider on loopback, with quotas and faults on request; with --web, a web and a search engine"
EXAMPLES = (
    "sim",
    "sim --rpm 600 --rule sliding --fault server_error=503,rate=0.05",
    "sim --web",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ....fixtures.flags import add_flags
    from ....fixtures.provider import Options
    from ....fixtures.web import WebOptions
    from ....fixtures.web.sites import SUFFIX
    from ....providers.table import SIM_PORT

    parser.add_argument(
        "--full-size",
        action="store_true",
        help="know the generated data sets of the published sizes too (issues and conversations), kept in the user's "
        "cache folder",
    )
    parser.add_argument("--list-faults", action="store_true", help="say what each fault does, and stop")
    parser.add_argument("--list-troubles", action="store_true", help="say what pages of the web do, and stop")
    parser.add_argument(
        "--until-eof", action="store_true", help="stop when standard input closes: with the program that started it"
    )
    add_flags(parser, Options)
    web = parser.add_argument_group("web and search engine")
    web.add_argument(
        "--web",
        action="store_true",
        help=f"serve a simulated web too, with pages on hosts under {SUFFIX}, and a search engine over it that speaks "
        "SearXNG's JSON and Brave's API",
    )
    add_flags(web, WebOptions)
    parser.set_defaults(port=SIM_PORT)


def run(options: argparse.Namespace) -> int:
    from ....engine.fault import LocalFault
    from ....fixtures.provider.schedule import describe_faults
    from ....fixtures.provider.stances import DatasetUnreadable
    from ....fixtures.web.troubles import describe_troubles
    from ....wiring.event_loop import run_in_loop

    if options.list_faults or options.list_troubles:
        say(describe_faults() if options.list_faults else describe_troubles())
        return DONE
    try:
        web = _web_options(options)
        run_in_loop(_listen(_options(options), web, until_eof=options.until_eof))
    except (ValueError, DatasetUnreadable) as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        ports, text = "--port or --web-port" if options.web else "--port", error.strerror or error
        if error.errno == errno.EADDRINUSE:
            raise LocalFault(f"{text}: perhaps a simulator runs there already; if not, give another {ports}") from error
        raise LocalFault(f"{text}: give another {ports.replace(' or', ',')}, --host or --port-file") from error
    return DONE


def full_size_folder() -> Path:
    """Returns the folder of the generated data set of the published size, shared by all uses on this machine."""
    from ....wiring import Settings

    return Settings().cache_folder() / "full-size"


def _options(options: argparse.Namespace) -> Options:
    from msgspec import structs

    from ....fixtures.flags import made_from
    from ....fixtures.full_conversations import ensure_conversations
    from ....fixtures.full_size import ensure
    from ....fixtures.provider import Options

    wanted = made_from(options, Options)
    if not options.full_size:
        return wanted
    folder = full_size_folder()
    generated = (ensure(folder), ensure_conversations(folder.with_name("full-conversations")))
    return structs.replace(wanted, datasets=(*wanted.datasets, *generated))


def _web_options(options: argparse.Namespace) -> WebOptions | None:
    """Returns the options of the web, None without --web."""
    from ....fixtures.flags import flags_given, made_from
    from ....fixtures.web import WebOptions

    if options.web:
        return made_from(options, WebOptions, host=options.host, log_rows=options.log_rows)
    if given := flags_given(options, WebOptions):
        raise UsageError(f"{given[0]} is of the simulated web: give --web too")
    return None


async def _listen(wanted: Options, web_wanted: WebOptions | None, *, until_eof: bool) -> None:
    import asyncio
    import gc
    from contextlib import AsyncExitStack

    from ....fixtures.provider import ModelProvider
    from ....fixtures.web import SimulatedWeb
    from ....wiring.signals import Interruption

    stopped = asyncio.Event()
    async with AsyncExitStack() as running:
        # The provider comes last: once its port file is there, all of it listens.
        web = None if web_wanted is None else await running.enter_async_context(SimulatedWeb(web_wanted))
        provider = await running.enter_async_context(ModelProvider(wanted))
        # The data sets live as long as the process: the collector need not walk them again.
        gc.freeze()
        with Interruption(lambda _: stopped.set(), stopped.set):
            if until_eof:
                _at_end_of_input(stopped)
            say(_provider_text(provider))
            if web is not None:
                say(_web_text(web, provider))
            await stopped.wait()
    note("simulated provider stopped")


def _at_end_of_input(stopped: asyncio.Event) -> None:
    """Sets the event at the end of stdin. A thread blocks in read, which works for pipes and files alike."""
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


def _provider_text(provider: ModelProvider) -> str:
    from ....bench.evaluation.door.declarations import BUILT_IN
    from ....providers.table import SIM_PORT

    is_default = provider.port == SIM_PORT and provider.options.host == "127.0.0.1"
    where = "" if is_default else f" --base-url {provider.base_url}"
    attempt = f"millstream run {BUILT_IN[0]} --model sim/open --out DIR{where}"
    return f"simulated provider, listening at {provider.base_url}; try: {attempt}; Ctrl-C stops it"


def _web_text(web: SimulatedWeb, provider: ModelProvider) -> str:
    """Returns the settings that lead searches and pages to this web, as text. Any token works, unless one was set."""
    from ....bench.evaluation.door.declarations import declarations
    from ....providers.table import SIM_PORT

    searching = [name for name, each in declarations().items() if "search" in each.options.__struct_fields__]
    world, token = web.world, (web.options.keys or ("any",))[0]
    base_url = "" if provider.port == SIM_PORT else f" --base-url {provider.base_url}"
    models = "--model sim/open --judge sim/judge --search searxng"
    return "\n".join(
        (
            f"simulated web of {world.pages:,} pages on {world.hosts} hosts, and its search engine, at {web.address}:",
            f"  export SEARXNG_BASE_URL={web.address}",
            f"  export BRAVE_SEARCH_BASE_URL={web.brave_url} BRAVE_API_KEY={token}",
            *(
                f"  millstream run {name} {models} --allow-host '{web.allow_host}' --out DIR{base_url}"
                for name in searching
            ),
        )
    )
