"""A gateway's life: built from settings, announced, drained at a signal, summed up.

Owns what is rejected before it listens: no token beyond this machine, and a provider at the gateway's own address.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, structs

from ...configuration.errors import UsageError
from ...configuration.gateway_settings import ANYONE, CallerSettings, GatewaySettings
from ...engine.folder_file import write_whole
from ...engine.scheduler import Scheduler
from ...engine.version import VERSION
from ...format import cost_of_calls, dollars, rough_time
from ...providers.table import PROVIDERS
from ...wiring import ConfigurationError, Settings, access_to
from ...wiring.engine import Engine
from ...wiring.folder_budget import money_as_json
from ...wiring.signals import Interruption
from ..http.guard import CallerToken, GuardRules, digest_of
from ..http.http_server import HttpServer
from .callers import FOLDER, Caller
from .dispatch import Dispatch
from .metrics import Metrics
from .offered_models import is_loopback, models_for, unreached
from .request_handler import GatewayState, begin_request, failed_request
from .request_log import RequestLog
from .request_parser import RequestParser
from .status_page import PageTable, status_page
from .trials import TrialCounter

# A shorter token could be guessed.
_TOKEN_CHARS_LEAST = 8
# Seconds after which a model whose lane stopped is tried again.
REOPENED_S = 60.0


class ServeOptions(Struct, frozen=True):
    """Where to listen. `port` 0: any free one; `port_file`: where the port is written; `is_counting`: repeats are new
    trials; `log` is called with a line for each request, None: nobody reads them."""

    host: str
    port: int
    port_file: Path | None = None
    is_counting: bool = True
    log: Callable[[str], None] | None = None


class ServeEnd(Struct, frozen=True):
    """How serving ended. `summary` is the gateway's account as JSON; `signal`: the number of the signal that ended it;
    `was_cut`: requests were cut off."""

    summary: Mapping[str, Any]
    signal: int | None
    was_cut: bool


class RunningGateway:
    """A gateway that listens while it is entered. Raises UsageError, ConfigurationError or LocalFault before that."""

    def __init__(self, settings: Settings, gateway: GatewaySettings, place: ServeOptions) -> None:
        policy = settings.policy
        reopened_s = REOPENED_S if policy.reopened_s is None else policy.reopened_s
        # One client's mistakes must not stop a model for all.
        policy = structs.replace(policy, rejections_max=None, cut_max=None, reopened_s=reopened_s)
        has_payers = any(caller.max_cost is not None for caller in gateway.callers)
        settings = structs.replace(settings, policy=policy, has_payers=has_payers)
        self._rules = rules_of(gateway, place, settings.variables)
        check_upstreams(settings, place.host, place.port)
        self.place = place
        self.engine = Engine(settings=settings)
        self.callers: dict[str, Caller] = {}
        self._gateway = gateway
        self._began = datetime.now().astimezone()
        self._open = contextlib.AsyncExitStack()

    @property
    def rules(self) -> GuardRules:
        return self._rules

    @property
    def port(self) -> int:
        return self.listener.port

    async def __aenter__(self) -> RunningGateway:
        async with contextlib.AsyncExitStack() as opening:
            settings, place = self.engine.settings, self.place
            await opening.enter_async_context(self.engine)
            # A commit may take long on the disk, and other requests wait for answers that need none.
            scheduler = self.engine.scheduler
            scheduler.cache.spares_loop = True
            folder = settings.cache_folder() / FOLDER
            for one in (*self._gateway.callers, CallerSettings(ANYONE, "")):
                caller = self.callers[one.name] = Caller(one, folder, reckons_worst=settings.has_payers)
                opening.callback(caller.close)
            # Before the callers are closed all calls have ended, and are paid for.
            opening.push_async_callback(scheduler.end)
            self.metrics = Metrics(settings, scheduler.routes.lasting, self.callers, lambda: self.state.under_way)
            opening.callback(self.metrics.watch(self.engine.events))
            self.state = self._state_of(scheduler)
            opening.callback(self.state.parser.close)
            begin, drained = partial(begin_request, self.state), self.state.drained
            self.listener = HttpServer(begin, failed_request, drained, place.host, place.port)
            await opening.enter_async_context(self.listener)
            self.state.rules = structs.replace(self._rules, port=self.listener.port)
            check_upstreams(settings, place.host, self.listener.port)
            _write_port(place.port_file, self.listener.port)
            self._open = opening.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closes the gateway and cuts off all requests under way, unless they were drained before."""
        await self._open.aclose()

    def _state_of(self, scheduler: Scheduler) -> GatewayState:
        engine, settings, gateway = self.engine, self.engine.settings, self._gateway
        unset = unreached(settings, gateway)
        return GatewayState(
            dispatch=Dispatch(engine, TrialCounter(is_counting=self.place.is_counting)),
            parser=RequestParser(gateway.models, unset, settings.has_provider),
            metrics=self.metrics,
            callers=self.callers,
            models_for=lambda caller: models_for(caller, gateway, settings, unset),
            rules=self._rules,
            is_idle=asyncio.Event(),
            log=RequestLog(self.place.log),
            status_page=self._status_page,
            name=f"req_{os.urandom(6).hex()}",
        )

    def _status_page(self) -> bytes:
        metrics, log = self.metrics, self.state.log
        counts = {
            "requests": metrics.requests,
            "answered": metrics.requests - metrics.failed,
            "failed": metrics.failed,
            "from the cache": metrics.from_cache,
            "waiting": self.state.under_way,
            "calls sent": metrics.sent,
        }
        lasted = rough_time((datetime.now().astimezone() - self._began).total_seconds())
        began = f"Version {VERSION}, running for {lasted}, since {self._began:%Y-%m-%d %H:%M:%S %Z}."
        cost = cost_of_calls(self.engine.budget.own, metrics.sent, metrics.unpriced)
        requests = ("time", "model or path", "status", "duration", "result")
        tables = (
            self._model_table(),
            PageTable("Last requests", requests, [one.cells() for one in log.last], "" if log.last else "None yet."),
            PageTable("Last requests without an answer", requests, [one.cells() for one in log.failed]),
        )
        return status_page(began, counts, cost, tables)

    def _model_table(self) -> PageTable:
        """Returns the table of all models that were asked."""
        now, metrics = asyncio.get_running_loop().time(), self.metrics
        heads = ("model", "calls sent", "input tokens", "output tokens", "cost", "in flight", "last minute", "state")
        rows: list[tuple[str | int, ...]] = [
            (
                model,
                metrics.sent_to[model],
                metrics.tokens_of(model, "input"),
                metrics.tokens_of(model, "output"),
                "no price" if route.price is None else dollars(metrics.cost_of.get(model, 0.0)),
                route.lane.in_flight,
                route.lane.used(now)[0],
                "sends" if (stop := route.lane.stopped) is None else f"stopped: {stop.detail}",
            )
            for model, route in self.engine.scheduler.routes.lasting.items()
        ]
        note = "The last minute counts the requests of all programs that share the model's quota."
        return PageTable("Models", heads, rows, note if rows else "No model was asked yet.")

    def summary(self) -> dict[str, Any]:
        metrics, routes, budget = self.metrics, self.engine.scheduler.routes.lasting, self.engine.budget
        max_cost = self.engine.settings.max_cost
        return {
            "requests": metrics.requests,
            "from_cache": metrics.from_cache,
            "failed": metrics.failed,
            "sent": metrics.sent,
            "unpriced": metrics.unpriced,
            "cost": round(budget.own, 10),
            "money": None if max_cost is None else money_as_json(budget.amounts, max_cost),
            "stopped": sorted(model for model, route in routes.items() if route.lane.stopped is not None),
        }


async def serve(
    settings: Settings, gateway: GatewaySettings, place: ServeOptions, announce: Callable[[str], None]
) -> ServeEnd:
    """Serves until a signal, and returns how that ended. `announce` is called with the first lines once it listens."""
    async with RunningGateway(settings, gateway, place) as running:
        rules = running.rules
        signal, was_cut = await _until_signal(
            running, lambda: announce(address_text(place.host, running.port, "TOKEN" if rules.tokens else "any"))
        )
        return ServeEnd(running.summary(), signal, was_cut)


def rules_of(gateway: GatewaySettings, place: ServeOptions, variables: Mapping[str, str]) -> GuardRules:
    """Returns the rules of who may ask. Raises UsageError if other machines could ask without a token,
    ConfigurationError for a missing or repeated token."""
    named = [(caller.name, caller.token) for caller in gateway.callers]
    named += [] if gateway.token is None else [(ANYONE, gateway.token)]
    tokens = tuple(CallerToken(name, digest_of(_token_in(variable, variables))) for name, variable in named)
    if len({token.digest for token in tokens}) < len(tokens):
        raise ConfigurationError("[gateway]: two callers have the same token: give each its own")
    if not tokens and not is_loopback(place.host):
        raise UsageError(
            f"--host {place.host} can be reached from other machines, and no token is set: put `token = "
            f'"env:MILLSTREAM_TOKEN"` under [gateway] in a --config file, or listen on 127.0.0.1'
        )
    return GuardRules(place.port, frozenset(gateway.hosts), frozenset(gateway.origins), tokens)


def check_upstreams(settings: Settings, host: str, port: int) -> None:
    """Raises UsageError if a provider's address is this gateway itself, as in a shell in which a client's variables are
    set: every call would come back here."""
    if not port:
        return
    for name, row in {**PROVIDERS, **settings.providers}.items():
        try:
            address = access_to(f"{name}/any", structs.replace(settings, needs_keys=False)).target.base_url
        except ConfigurationError:
            continue  # reported when it is asked for
        parts = urlsplit(address)
        provider_port = parts.port or (443 if parts.scheme == "https" else 80)
        if provider_port == port and _is_here(parts.hostname or "", host):
            place = "--base-url" if settings.base_url else row.url_variable or f"[providers.{name}]"
            raise UsageError(
                f"{place} leads to this gateway itself ({address}): unset it where the gateway runs, or give the "
                f"provider's own address, or another --port"
            )


def _is_here(name: str, host: str) -> bool:
    if is_loopback(name) or name in ("0.0.0.0", "::"):
        return is_loopback(host) or host in ("0.0.0.0", "::")
    return name.lower() == host.lower()


def address_text(host: str, port: int, key: str = "any") -> str:
    """Returns the first lines of output: the gateway's address, and the variables to set for clients, most of which
    don't start without a `key`."""
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    address = f"http://{name}:{port}"
    return "\n".join(
        (
            f"gateway at {address} (open it in a browser for its state); in the shell of its client:",
            f"  export OPENAI_BASE_URL={address}/v1 OPENAI_API_KEY={key}",
            f"  export ANTHROPIC_BASE_URL={address} ANTHROPIC_API_KEY={key}",
            f"  export GOOGLE_GEMINI_BASE_URL={address} GEMINI_API_KEY={key}",
        )
    )


async def _until_signal(running: RunningGateway, announce: Callable[[], None]) -> tuple[int | None, bool]:
    draining, cut = asyncio.Event(), asyncio.Event()
    with Interruption(lambda _: draining.set(), cut.set) as interruption:
        announce()
        await draining.wait()
        drained, cutting = asyncio.ensure_future(running.listener.drain()), asyncio.ensure_future(cut.wait())
        await asyncio.wait((drained, cutting), return_when=asyncio.FIRST_COMPLETED)
        was_cut = not drained.done()
        for task in (drained, cutting):
            task.cancel()
        return interruption.number, was_cut


def _token_in(variable: str, variables: Mapping[str, str]) -> str:
    token = variables.get(variable, "").strip()
    if len(token) < _TOKEN_CHARS_LEAST or not (token.isascii() and token.isprintable()):
        raise ConfigurationError(
            f"{variable} must hold a token of {_TOKEN_CHARS_LEAST} or more printable characters for [gateway]: set it"
        )
    return token


def _write_port(path: Path | None, port: int) -> None:
    """Writes the port to a file, whole or not at all, since another program waits for it. `path` None: nothing."""
    if path is None:
        return
    try:
        write_whole(path, f"{port}\n".encode())
    except OSError as error:
        raise UsageError(f"--port-file {path} can't be written ({error.strerror}): name another") from error
