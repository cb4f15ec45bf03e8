"""Forecasts what a run takes on each lane: calls, tokens, dollars, and the time under its quotas.

A benchmark says what it expects of its run; prices, quotas and the text are here, the same for all. Sends and writes
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext, suppress
from typing import Any

from msgspec import Struct, to_builtins

from ....engine.attempts.money import cost_range
from ....engine.call import WEB, Call
from ....engine.estimate import OUTPUT_FIRST, chars_of
from ....engine.fault import LocalFault
from ....engine.key import key_of
from ....engine.limits import Quota
from ....engine.pairs import Pair
from ....engine.prices import Price
from ....engine.store.cache import Cache
from ....format import decimal_text, dollars, rough_minutes, span_text
from ....providers.models import CHARACTERS, bundled_models
from ....providers.search.access import is_search
from ....report.text import table
from ....wiring import access_to, keyless_endpoint_to
from ..door.expected import NOTHING, Chain, Expected, Load, Missing, Remainder, Span
from ..door.prepared_run import PreparedRun
from ..running import cost_bound

_COLUMNS = ("lane", "calls", "cached", "input tokens", "output tokens", "cost", "time under its quota")


class LaneForecast(Struct, frozen=True, kw_only=True):
    """What a run takes on one lane; `…at_worst`: if every answer has the most tokens that the model can give it. None
    in place of an amount: it is not known."""

    lane: str
    calls: Span
    cached: int | None
    input_tokens: Span | None
    output_tokens: Span | None
    output_at_worst: float | None
    max_tokens: int | None
    thinks: bool | None
    price: dict[str, float] | None
    quota: dict[str, float | None]
    cost: Span | None
    cost_at_worst: float | None
    minutes: Span | None


class Forecast(Struct, frozen=True, kw_only=True):
    """What a run takes, lane by lane and in all. `cost` None: a lane has no price, or its tokens are not known. Lanes
    work side by side, so `minutes` is that of the `slowest`, or of the `chain` of calls that follow each other; None:
    there is neither, or it is not known how long a lane with a quota takes."""

    folder: str | None
    what: str
    pairs: tuple[str, ...]
    dataset: dict[str, Any]
    lanes: tuple[LaneForecast, ...]
    cost: Span | None
    cost_at_worst: float | None
    unpriced: tuple[str, ...]
    prices_of: str | None
    minutes: Span | None
    slowest: str | None
    chain: Chain | None
    remarks: tuple[str, ...]
    assumed: str
    in_flight_under_max_cost: list[dict[str, Any]]
    more: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Returns the forecast for programs, the benchmark's own values beside the others."""
        values: dict[str, Any] = to_builtins(self)
        more = values.pop("more")
        return {**values, **more}


def expected_of(
    prepared: PreparedRun,
    calls_of: Callable[[Pair], Iterable[Call]],
    *,
    looks_into_cache: bool,
    whole: Callable[[], Remainder | None] = lambda: None,
) -> Expected:
    """Returns what is expected of a run whose items are one call each. Without `looks_into_cache`, or in live mode, no
    cache is searched; `whole` then counts all calls of a pair without making them, where it can."""
    settings, loads = prepared.settings, dict[str, Load]()
    missing = _missing(prepared, calls_of, whole, looks_into_cache=looks_into_cache)
    remarks: dict[str, str] = {}
    for pair, (left, cached) in missing.items():
        limit, facts = prepared.limits[pair], settings.facts_of(pair.model)
        load = loads.setdefault(pair.model, Load())
        count, tokens = left.prompts, (left.chars or 0) / facts.characters
        each = Span(1, OUTPUT_FIRST if limit is None else limit)
        worst: float = each.most
        if limit is None and facts.thinks_at(pair.effort):
            longest = settings.output_max(pair.model)
            worst = longest or math.inf
            each = Span(*(min(length, worst) for length in bundled_models().thinking_answer))
            remarks[pair.model] = _thinking(pair.model, each, longest)
        load.add(Span(count, count), Span(tokens, tokens), each.times(count), worst * count if count else 0)
        load.cached = load.cached if cached is None else (load.cached or 0) + cached
    return Expected(loads=loads, missing=missing, remarks=[*remarks.values()])


def _missing(
    prepared: PreparedRun,
    calls_of: Callable[[Pair], Iterable[Call]],
    whole: Callable[[], Remainder | None],
    *,
    looks_into_cache: bool,
) -> Missing:
    """Returns for each pair the calls that the cache does not answer, with their characters, and how many it answers
    (None: no cache was searched)."""
    pairs, settings, cache = prepared.pairs, prepared.settings, None
    if looks_into_cache and settings.mode != "live":
        with suppress(LocalFault):
            cache = Cache(settings.cache_folder(), read_only=True)
    if cache is None and (every := whole()) is not None:
        return dict.fromkeys(pairs, (every, None))
    missing: dict[Pair, tuple[Remainder, int | None]] = {}
    with closing(cache) if cache is not None else nullcontext():
        for pair in pairs:
            endpoint = keyless_endpoint_to(access_to(pair.model, settings))
            prompts = chars = cached = 0
            for call in calls_of(pair):
                if cache is not None and cache.get(key_of(endpoint.encode(call), call.trial)) is not None:
                    cached += 1
                    continue
                prompts += 1
                chars += chars_of(call)
            missing[pair] = Remainder(prompts, chars), None if cache is None else cached
    return missing


def _thinking(model: str, each: Span, longest: int | None) -> str:
    most = decimal_text(longest) if longest else f'not known (max_output under [models."{model}"] in --config FILE)'
    return (
        f"{model} thinks before it answers and is sent no max_tokens: {span_text(each, decimal_text)} tokens an answer "
        f"are assumed, as is usual for short ones; the most is {most}; --pilot N measures it"
    )


def forecast_of(prepared: PreparedRun, expected: Expected) -> Forecast:
    """Returns a run's forecast from what its benchmark expects."""
    settings, max_tokens = prepared.settings, prepared.max_tokens
    prices = settings.price_table()
    lanes = [
        lane_forecast(
            name,
            load,
            settings.quota_of(name),
            prices.get(name),
            max_tokens=max_tokens.get(name),
            thinks=_thinks(prepared, name),
        )
        for name, load in expected.loads.items()
    ]
    costs = [lane.cost for lane in lanes if lane.lane != WEB]
    timed = [lane for lane in lanes if any(lane.quota.values())]
    is_known = all(lane.minutes is not None for lane in timed)
    slowest = max(timed, key=lambda lane: (lane.minutes or NOTHING).most, default=None) if is_known else None
    minutes = None if slowest is None else slowest.minutes
    if expected.chain is not None and is_known:
        minutes = Span(*map(max, expected.chain.minutes, minutes or NOTHING))
    worst = [lane.cost_at_worst for lane in lanes if lane.lane != WEB]
    return Forecast(
        folder=None if prepared.out.name == "-" else str(prepared.out),
        what=expected.what,
        pairs=tuple(map(str, prepared.pairs)),
        dataset={name: value for name, value in prepared.dataset.items() if name != "items"},
        lanes=tuple(lanes),
        cost=None if None in costs else sum((cost for cost in costs if cost is not None), NOTHING),
        cost_at_worst=None if None in worst else sum(cost for cost in worst if cost is not None),
        unpriced=tuple(lane.lane for lane in lanes if lane.price is None and lane.lane != WEB),
        prices_of=prices.oldest_date(lane.lane for lane in lanes),
        minutes=minutes,
        slowest=None if slowest is None else slowest.lane,
        chain=expected.chain,
        remarks=tuple(expected.remarks),
        assumed=f"{_characters(prepared, expected)}; {expected.assumed}",
        in_flight_under_max_cost=cost_bound.in_flight_under_limit(prepared),
        more=expected.more,
    )


def _characters(prepared: PreparedRun, expected: Expected) -> str:
    """Returns the assumed characters of a token, by model where a model has others than most."""
    each = {lane: prepared.settings.facts_of(lane).characters for lane, load in expected.loads.items() if load.input}
    others = [f"{count:g} for {lane}" for lane, count in each.items() if count != CHARACTERS]
    of_others = f" ({', '.join(others)})" if others else ""
    return f"a token is {CHARACTERS:g} characters of a prompt{of_others}"


def _thinks(prepared: PreparedRun, model: str) -> bool | None:
    """Returns whether a model thinks before it answers at one of its efforts; None: not known."""
    efforts = [pair.effort for pair in prepared.pairs if pair.model == model] or [None]
    thinks = [prepared.settings.facts_of(model).thinks_at(effort) for effort in efforts]
    return True if True in thinks else thinks[0]


def lane_forecast(
    lane: str,
    load: Load,
    quota: Quota,
    price: Price | None,
    *,
    max_tokens: int | None = None,
    thinks: bool | None = None,
) -> LaneForecast:
    """Returns what a lane's load costs at its price and takes under its quota."""
    tokens = None if load.input is None else Span(*map(round, load.input))
    output, is_bounded = Span(*map(round, load.output)), not math.isinf(load.worst)
    cost = at_worst = None
    if price is not None and tokens is not None:
        cost = Span(*cost_range(price, tokens, output))
        at_worst = cost_range(price, tokens, (output.least, round(load.worst)))[1] if is_bounded else None
    elif price is not None and price.is_by_call:
        cost = Span(load.calls.least * price.call, load.calls.most * price.call)
        at_worst = cost.most
    limits = quota if tokens is not None else Quota(rpm=quota.rpm)
    least, most = map(limits.minutes, load.calls, tokens or NOTHING, output)
    return LaneForecast(
        lane=lane,
        calls=load.calls,
        cached=load.cached,
        input_tokens=tokens,
        output_tokens=None if tokens is None else output,
        output_at_worst=None if tokens is None or not is_bounded else round(load.worst),
        max_tokens=max_tokens,
        thinks=thinks,
        price=None if price is None else _price(price),
        quota={name: getattr(quota, name) for name in ("rpm", "tpm", "itpm", "otpm")},
        cost=cost,
        cost_at_worst=at_worst,
        minutes=None if least is None or most is None else Span(least, most),
    )


def _price(price: Price) -> dict[str, float]:
    return {"input": price.factor * price.input, "output": price.factor * price.output, "call": price.call}


def tell(forecast: Forecast) -> str:
    """Returns a forecast as lines for people."""
    lines = [
        table([_COLUMNS, *map(_cells, forecast.lanes)]),
        "",
        f"{forecast.what}, asked of {', '.join(forecast.pairs)}; data {forecast.dataset['path']}",
        *_of_cost(forecast),
    ]
    models = [lane for lane in forecast.lanes if lane.lane != WEB and not is_search(lane.lane)]
    if unquoted := [lane.lane for lane in models if not any(lane.quota.values())]:
        lines.append(f"no quota declared: {', '.join(unquoted)}; --rpm and --tpm give the time")
    if forecast.minutes is not None and forecast.chain is not None:
        lines.append(f"time: {span_text(forecast.minutes, rough_minutes)}, since {_chain_text(forecast.chain)}")
    elif forecast.minutes is not None and len(forecast.lanes) > 1:
        lines.append(
            f"time of the quotas alone: {span_text(forecast.minutes, rough_minutes)}, as {forecast.slowest} allows"
        )
    lines += [*forecast.remarks, f"assumed: {forecast.assumed}"]
    return "\n".join([*lines, *cost_bound.lines(forecast.in_flight_under_max_cost)])


def _chain_text(chain: Chain) -> str:
    return (
        f"{chain.noun}s follow each other: {chain.steps:,} in each of {chain.items:,}, {chain.at_once:,} at once; "
        f"{span_text(chain.seconds, decimal_text)} s a {chain.noun} are assumed"
    )


def _of_cost(forecast: Forecast) -> Iterator[str]:
    """Yields the sentences on the cost of all lanes, on lanes without a price, and on how old the prices are."""
    costs = [lane.cost for lane in forecast.lanes if lane.cost is not None]
    total = sum(costs, NOTHING)
    # Free searches alone are no cost to show for models without a price.
    if forecast.cost is not None or (costs and total.most > 0):
        of = "" if forecast.cost is not None else " of the lanes that have one"
        cache = "cache" if any(lane.cached is not None for lane in forecast.lanes) else "cache or this machine's"
        cost = span_text(total, dollars)
        if (most := forecast.cost_at_worst) is not None and most > total.most:
            cost = f"{cost}, at worst {dollars(most)}"
        yield f"cost{of}: {cost}, if nothing has to be sent twice or is read from the provider's {cache}"
    if len(forecast.unpriced) < sum(lane.lane != WEB for lane in forecast.lanes):
        listed = f"listed on {forecast.prices_of} or later" if forecast.prices_of else "given in the configuration"
        yield f"prices as {listed}: check them"
    if names := forecast.unpriced:
        yield f'without a price: {", ".join(names)}; give one under [prices."{names[0]}"] in --config FILE'


def _cells(lane: LaneForecast) -> tuple[str, ...]:
    no_time = "not known" if any(lane.quota.values()) else "no quota"
    unknown = "-" if lane.lane == WEB else "no price" if lane.price is None else "not known"
    return (
        "pages" if lane.lane == WEB else lane.lane,
        span_text(lane.calls, decimal_text),
        decimal_text(lane.cached),
        "-" if lane.input_tokens is None else span_text(lane.input_tokens, decimal_text),
        "-" if lane.output_tokens is None else span_text(lane.output_tokens, decimal_text),
        unknown if lane.cost is None else span_text(lane.cost, dollars),
        no_time if lane.minutes is None else span_text(lane.minutes, rough_minutes),
    )
