"""Forecasts what a run takes on each lane: calls, tokens, dollars, and the time under its quotas.

A benchmark says what it expects of its run; prices, quotas and the text are here, the same for all. Sends and writes
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, nullcontext, suppress
from typing import Any, NamedTuple

from msgspec import Struct, field, to_builtins

from ...engine.attempts.estimate import OUTPUT_FIRST, TOKENS_PER_CHAR, chars_of
from ...engine.attempts.money import cost_range
from ...engine.attempts.prices import Price
from ...engine.call import WEB, Call
from ...engine.fault import LocalFault
from ...engine.key import key_of
from ...engine.limits import Quota
from ...engine.runs.pairs import Pair
from ...engine.store.cache import Cache
from ...format import decimal_text, dollars, rough_minutes, span_text
from ...providers.search.access import is_search
from ...report.text import table
from ...wiring import access_to, keyless_endpoint_to
from . import cost_bound
from .preparation import PreparedRun
from .work import Remainder

ASSUMED = (
    "a token is 4 characters of a prompt; an answer has at least 1 token, at most max_tokens (where that is not sent, "
    f"{OUTPUT_FIRST}, or what the model can think)"
)
_COLUMNS = ("lane", "calls", "cached", "input tokens", "output tokens", "cost", "time under its quota")


class Span(NamedTuple):
    """An amount, from the least to the most that is likely."""

    least: float
    most: float

    def __add__(self, other: object) -> Span:
        assert isinstance(other, Span)
        return Span(self.least + other.least, self.most + other.most)


NOTHING = Span(0, 0)

Missing = Mapping[Pair, tuple[Remainder, int | None]]
"""For each pair the calls left to send, and how many calls the cache answers (None: the cache was not searched)."""


class Load(Struct):
    """The calls that one lane is expected to carry, and the tokens of their prompts and answers. `input` None: there
    are none, as in searches, or not known, since prompts contain answers; `output` infinite: it is not known how long
    the model thinks. `cached`: the number of further calls that the cache answers (None: it was not searched)."""

    calls: Span = NOTHING
    input: Span | None = NOTHING
    output: Span = NOTHING
    cached: int | None = None

    def add(self, calls: Span, tokens: Span, output: Span) -> None:
        self.calls += calls
        self.input = tokens if self.input is None else self.input + tokens
        self.output += output


class Expected(Struct, kw_only=True):
    """What a benchmark expects of a run, before prices and quotas: the load of each lane, the run's size in words,
    sentences about the figures, and what these assume. `missing`: the calls left to send; empty where an item takes
    several calls, which depend on answers. `more`: the benchmark's own values for programs."""

    loads: dict[str, Load]
    what: str = ""
    remarks: list[str] = field(default_factory=list)
    assumed: str = ASSUMED
    missing: Missing = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)


class LaneForecast(Struct, frozen=True, kw_only=True):
    """What a run takes on one lane. None in place of an amount: it is not known."""

    lane: str
    calls: Span
    cached: int | None
    input_tokens: Span | None
    output_tokens: tuple[float, float | None] | None
    max_tokens: int | None
    thinks: bool | None
    price: dict[str, float] | None
    quota: dict[str, float | None]
    cost: Span | None
    minutes: Span | None


class Forecast(Struct, frozen=True, kw_only=True):
    """What a run takes, lane by lane and in all. `cost` None: a lane has no price, or its tokens are not known. Lanes
    work side by side, so `minutes` is that of the `slowest`; None: no lane declares a quota, or it is not known how
    long one that does takes."""

    folder: str | None
    what: str
    pairs: tuple[str, ...]
    dataset: dict[str, Any]
    lanes: tuple[LaneForecast, ...]
    cost: Span | None
    unpriced: tuple[str, ...]
    prices_of: str | None
    minutes: Span | None
    slowest: str | None
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
    limit_of: Callable[[Pair], int | None],
    *,
    looks_into_cache: bool,
    whole: Callable[[], Remainder] | None = None,
) -> Expected:
    """Returns what is expected of a run whose items are one call each. `limit_of`: the most tokens of an answer of a
    pair (None: no `max_tokens` is sent). Without `looks_into_cache`, or in live mode, no cache is searched; `whole`
    then counts all calls of a pair without making them."""
    settings, loads = prepared.settings, dict[str, Load]()
    missing = _missing(prepared, calls_of, whole, looks_into_cache=looks_into_cache)
    thoughts: dict[str, int | None] = {}
    for pair, (left, cached) in missing.items():
        limit, thinks = limit_of(pair), settings.facts_of(pair.model).thinks_at(pair.effort)
        longest: float = OUTPUT_FIRST if limit is None else limit
        if limit is None and thinks:
            thoughts[pair.model] = settings.output_max(pair.model)
            longest = thoughts[pair.model] or math.inf
        load = loads.setdefault(pair.model, Load())
        count, tokens = left.prompts, (left.chars or 0) * TOKENS_PER_CHAR
        load.add(Span(count, count), Span(tokens, tokens), Span(count, count * longest if count else 0))
        load.cached = load.cached if cached is None else (load.cached or 0) + cached
    return Expected(loads=loads, missing=missing, remarks=[_thought(*each) for each in thoughts.items()])


def _missing(
    prepared: PreparedRun,
    calls_of: Callable[[Pair], Iterable[Call]],
    whole: Callable[[], Remainder] | None,
    *,
    looks_into_cache: bool,
) -> Missing:
    """Returns for each pair the calls that the cache does not answer, with their characters, and how many it answers
    (None: no cache was searched)."""
    pairs, settings, cache = prepared.work.pairs(), prepared.settings, None
    if looks_into_cache and settings.mode != "live":
        with suppress(LocalFault):
            cache = Cache(settings.cache_folder(), read_only=True)
    if cache is None and whole is not None:
        return dict.fromkeys(pairs, (whole(), None))
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


def _thought(model: str, longest: int | None) -> str:
    thinks = f"{model} thinks before it answers and is sent no max_tokens"
    if longest is None:
        return f'{thinks}: how long is not known; give max_output under [models."{model}"] in --config FILE'
    return f"{thinks}: the upper figures take {longest:,} tokens an answer; --pilot N measures how many it takes"


def forecast_of(prepared: PreparedRun, expected: Expected) -> Forecast:
    """Returns a run's forecast from what its benchmark expects."""
    settings, work = prepared.settings, prepared.work
    prices = settings.price_table()
    lanes = [
        lane_forecast(
            name,
            load,
            settings.quota_of(name),
            prices.get(name),
            max_tokens=work.max_tokens.get(name),
            thinks=_thinks(prepared, name),
        )
        for name, load in expected.loads.items()
    ]
    costs = [lane.cost for lane in lanes if lane.lane != WEB]
    timed = [lane for lane in lanes if any(lane.quota.values())]
    if any(lane.minutes is None for lane in timed):
        timed = []
    slowest = max(timed, key=lambda lane: (lane.minutes or NOTHING).most, default=None)
    return Forecast(
        folder=None if prepared.out.name == "-" else str(prepared.out),
        what=expected.what,
        pairs=tuple(map(str, work.pairs())),
        dataset={name: value for name, value in prepared.dataset.items() if name != "items"},
        lanes=tuple(lanes),
        cost=None if None in costs else sum((cost for cost in costs if cost is not None), NOTHING),
        unpriced=tuple(lane.lane for lane in lanes if lane.price is None and lane.lane != WEB),
        prices_of=prices.oldest_date(lane.lane for lane in lanes),
        minutes=None if slowest is None else slowest.minutes,
        slowest=None if slowest is None else slowest.lane,
        remarks=tuple(expected.remarks),
        assumed=expected.assumed,
        in_flight_under_max_cost=cost_bound.in_flight_under_limit(prepared),
        more=expected.more,
    )


def _thinks(prepared: PreparedRun, model: str) -> bool | None:
    """Returns whether a model thinks before it answers at one of its efforts; None: not known."""
    efforts = [pair.effort for pair in prepared.work.pairs() if pair.model == model] or [None]
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
    output = load.output if math.isinf(load.output.most) else Span(*map(round, load.output))
    cost = minutes = None
    # An answer of unknown length has neither a cost nor a time.
    if not math.isinf(output.most):
        if price is not None and tokens is not None:
            cost = Span(*cost_range(price, tokens, output))
        elif price is not None and price.is_by_call:
            cost = Span(load.calls.least * price.call, load.calls.most * price.call)
        limits = quota if tokens is not None else Quota(rpm=quota.rpm)
        least, most = map(limits.minutes, load.calls, tokens or NOTHING, output)
        minutes = None if least is None or most is None else Span(least, most)
    return LaneForecast(
        lane=lane,
        calls=load.calls,
        cached=load.cached,
        input_tokens=tokens,
        output_tokens=None if tokens is None else (output.least, None if math.isinf(output.most) else output.most),
        max_tokens=max_tokens,
        thinks=thinks,
        price=None if price is None else _price(price),
        quota={name: getattr(quota, name) for name in ("rpm", "tpm", "itpm", "otpm")},
        cost=cost,
        minutes=minutes,
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
    if forecast.minutes is not None and len(forecast.lanes) > 1:
        lines.append(
            f"time of the quotas alone: {span_text(forecast.minutes, rough_minutes)}, as {forecast.slowest} allows"
        )
    lines += [*forecast.remarks, f"assumed: {forecast.assumed}"]
    return "\n".join([*lines, *cost_bound.lines(forecast.in_flight_under_max_cost)])


def _of_cost(forecast: Forecast) -> Iterator[str]:
    """Yields the sentences on the cost of all lanes, on lanes without a price, and on how old the prices are."""
    costs = [lane.cost for lane in forecast.lanes if lane.cost is not None]
    total = sum(costs, NOTHING)
    # Free searches alone are no cost to show for models without a price.
    if forecast.cost is not None or (costs and total.most > 0):
        of = "" if forecast.cost is not None else " of the lanes that have one"
        cache = "cache" if any(lane.cached is not None for lane in forecast.lanes) else "cache or this machine's"
        cost = span_text(total, dollars)
        yield f"cost{of}: {cost}, if nothing has to be sent twice or is read from the provider's {cache}"
    if len(forecast.unpriced) < sum(lane.lane != WEB for lane in forecast.lanes):
        listed = f"listed on {forecast.prices_of} or later" if forecast.prices_of else "given in the configuration"
        yield f"prices as {listed}: check them"
    if names := forecast.unpriced:
        yield f'without a price: {", ".join(names)}; give one under [prices."{names[0]}"] in --config FILE'


def _cells(lane: LaneForecast) -> tuple[str, ...]:
    output = lane.output_tokens
    no_time = "not known" if any(lane.quota.values()) else "no quota"
    unknown = "-" if lane.lane == WEB else "no price" if lane.price is None else "not known"
    return (
        "pages" if lane.lane == WEB else lane.lane,
        span_text(lane.calls, decimal_text),
        decimal_text(lane.cached),
        "-" if lane.input_tokens is None else span_text(lane.input_tokens, decimal_text),
        "-" if output is None else _up_to(*output),
        unknown if lane.cost is None else span_text(lane.cost, dollars),
        no_time if lane.minutes is None else span_text(lane.minutes, rough_minutes),
    )


def _up_to(least: float, most: float | None) -> str:
    return f"{least:,} or more" if most is None else span_text((least, most), decimal_text)
