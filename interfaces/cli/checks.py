"""Tests each model and search engine with one small call for each of its API keys, through the engine.

Takes nothing from the cache and leaves nothing there. Makes one attempt each, to show the present state.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, structs

from ...bench.evaluation.running.served import compared_names
from ...configuration.errors import DONE, RESUMABLE, WITH_FAILURES
from ...engine.attempts.retry import RetryPolicy
from ...engine.call import Call, Outcome
from ...engine.endpoint import SendError
from ...engine.fault import Stopped
from ...providers.access import UnknownProvider, endpoint_to
from ...providers.model_list import differences, list_models
from ...providers.model_remarks import retirement
from ...providers.models import bare_name, bundled_models
from ...providers.search.access import is_search
from ...providers.transport.transport import Transport
from ...wiring import ConfigurationError, Settings, access_to, accesses_to
from ...wiring.engine import Engine

PROMPT = "Reply with the word OK."
QUERY = "weather"
# The least that OpenAI's Responses API accepts.
MAX_TOKENS = 16
TIMEOUT_S = 60.0
PATIENCE_S = 20.0


class Check(Struct, frozen=True):
    """The result of one test call. `key`: the environment variable of the API key. `status`: ok or refused; a kind of
    failure; why a lane stopped; or not_sent, if a key or an address is missing here. `detail` is the reason in
    words; `seconds` is its duration; `tokens`, `results` of a search, and `served`, the model that the server names,
    None: none reported; `cost` is in dollars."""

    model: str
    key: str
    status: str
    detail: str = ""
    seconds: float = 0.0
    tokens: int | None = None
    results: int | None = None
    cost: float | None = None
    served: str | None = None

    @property
    def exit_code(self) -> int:
        if self.status in ("ok", "refused"):
            return DONE
        return RESUMABLE if self.status in _STOPS else WITH_FAILURES


_STOPS = ("not_sent", "dead_key", "empty_account", "redirect", "budget", "patience")


def check(models: Sequence[str], settings: Settings) -> list[Check]:
    """Tests the models in their order, and returns a result for each API key."""
    return asyncio.run(_check_all(models, settings))


def exit_code_of(checks: Sequence[Check]) -> int:
    return max((check.exit_code for check in checks), default=DONE)


def cheapest(providers: Sequence[str], settings: Settings) -> list[str]:
    """Returns the cheapest model of each provider that is not retired; providers without any price are left out."""
    prices = [
        (model, listed.price)
        for model, listed in settings.price_table().models.items()
        if (settings.facts_of(model).retires or "9999") > settings.day()
    ]
    models = []
    for provider in providers:
        priced = [(model, price) for model, price in prices if model.startswith(f"{provider}/")]
        if priced:
            models.append(min(priced, key=lambda one: one[1].input + one[1].output)[0])
    return models


def list_differences(models: Sequence[str], settings: Settings) -> list[str]:
    """Returns a line for each kind of difference between the table of models and the lists of these models'
    providers."""
    return asyncio.run(_compare_lists(models, settings))


async def _compare_lists(models: Sequence[str], settings: Settings) -> list[str]:
    table, lines, transport = bundled_models(), list[str](), Transport()
    for provider, model in {table.provider(model): model for model in models}.items():
        # A server of one's own has names of its own.
        if provider not in (*table.vendors, *table.offering):
            continue
        try:
            access = access_to(model, settings)
            listed = await list_models(endpoint_to(access, transport, TIMEOUT_S), access.protocol.kind)
            lines += differences(provider, listed, table, settings.day()) if listed else ()
        except ConfigurationError:
            continue  # the check of the model says it
        except (SendError, ValueError) as error:
            lines.append(f"{provider}: its list of models can't be read: {error}")
    await transport.close()
    return lines


async def _check_all(models: Sequence[str], settings: Settings) -> list[Check]:
    checks: dict[tuple[str, str], Check] = {}
    keys: dict[str, list[str]] = {}
    for model in models:
        for name in settings.key_variables.get(model, ("",)):
            try:
                keys.setdefault(model, []).extend(_variables_of(model, name, settings))
            except UnknownProvider:
                raise  # a mistake in the command, which no key mends
            except ConfigurationError as error:
                checks[model, name] = Check(model, name, "not_sent", str(error))
        keys[model] = _each_once(keys.get(model, []), settings)
    spent = 0.0
    # One engine for each round: the first keys of all models at once, then the second ones of those that have several.
    for place in range(max(map(len, keys.values()), default=0)):
        round_keys = {model: names[place] for model, names in keys.items() if place < len(names)}
        for one in await _check_round(round_keys, settings, spent):
            checks[one.model, one.key] = one
            spent += one.cost or 0.0

    def place_of(one: Check) -> tuple[int, int]:
        names = settings.key_variables.get(one.model, ())
        return models.index(one.model), names.index(one.key) if one.key in names else 0

    return sorted(checks.values(), key=place_of)


def _variables_of(model: str, name: str, settings: Settings) -> list[str]:
    """Returns the variables that hold the API key. `name`: the variable that a lane names for it; empty: none."""
    made = structs.replace(settings, key_variables={model: (name,)} if name else {})
    return [access.variable for access in accesses_to(model, made)]


def _each_once(names: list[str], settings: Settings) -> list[str]:
    """Returns the variables without those that hold the same key as an earlier one."""
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(settings.variables.get(name, "").strip(), name)
    return list(first.values())


async def _check_round(keys: dict[str, str], settings: Settings, spent: float) -> list[Check]:
    lanes = tuple(settings.lane_of(model) for model in keys)
    made = structs.replace(
        settings,
        lanes=tuple(structs.replace(lane, timeout_s=min(lane.timeout_s, TIMEOUT_S)) for lane in lanes),
        key_variables={model: (name,) for model, name in keys.items() if name},
        policy=RetryPolicy(attempts_max=1, patience_s=min(settings.policy.patience_s, PATIENCE_S)),
        spent=spent,
    )
    async with Engine(settings=made) as engine:
        return await asyncio.gather(*(_check_one(engine, model, key) for model, key in keys.items()))


async def _check_one(engine: Engine, model: str, key: str) -> Check:
    began = time.monotonic()
    try:
        outcome = await engine.ask(
            Call(model, QUERY) if is_search(model) else Call(model, PROMPT, max_tokens=MAX_TOKENS)
        )
    except Stopped as stopped:
        (stop,) = stopped.stops
        return Check(model, key, stop.reason, stop.detail, time.monotonic() - began)
    except ConfigurationError as error:
        return Check(model, key, "not_sent", str(error))
    return _check_of(model, key, outcome, time.monotonic() - began)


def _check_of(model: str, key: str, outcome: Outcome, seconds: float) -> Check:
    if outcome.failure is not None:
        return Check(model, key, outcome.failure.kind, outcome.failure.detail, seconds)
    usage = outcome.reply.usage if outcome.reply is not None else None
    tokens = None if usage is None else usage.tokens
    results = len(outcome.reply.hits) if outcome.reply is not None and is_search(model) else None
    served = None if outcome.reply is None else outcome.reply.served
    return Check(model, key, outcome.status, "", seconds, tokens, results, outcome.cost, served)


def line(one: Check, settings: Settings) -> str:
    name = f"{one.model} ({one.key})" if one.key else one.model
    if one.status == "not_sent":
        return f"{name}: not sent: {one.detail}"
    if one.status not in ("ok", "refused"):
        return f"{name}: {one.status}: {one.detail}"
    facts = [one.status, f"{one.seconds:.2f} s"]
    facts += [] if one.tokens is None else [f"{one.tokens:,} tokens"]
    facts += [] if one.results is None else [f"{one.results:,} results"]
    facts.append("no price" if one.cost is None else f"${one.cost:.6f}")
    requested = compared_names([one.model], settings)[one.model]
    if one.served and requested and bare_name(one.served) not in (bare_name(requested), bare_name(one.model)):
        facts.append(f"answered by {one.served}")
    retired = retirement(one.model, settings.facts_of(one.model), settings.day(), 0)
    return f"{name}: {', '.join(facts)}{'; ' if retired else ''}{retired}"


def as_json(checks: Sequence[Check]) -> list[dict[str, Any]]:
    return [{**structs.asdict(one), "key": one.key or None, "seconds": round(one.seconds, 3)} for one in checks]
