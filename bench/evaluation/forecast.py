"""Forecasts a run's calls, tokens, cost and time for each lane, with or without a pilot.

Assumes that a token is four characters and that an answer has between one token and its limit. Sends and writes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ...engine.attempts.estimate import OUTPUT_FIRST, TOKENS_PER_CHAR, chars_of
from ...engine.attempts.money import cost_range
from ...engine.attempts.prices import Price
from ...engine.call import Call
from ...engine.fault import LocalFault
from ...engine.key import key_of
from ...engine.limits import Quota
from ...engine.runs.pairs import Pair
from ...engine.store.cache import Cache
from ...format import count_text, decimal_text, dollars, rough_minutes, span_text
from ...report.text import table
from ...wiring import Settings, access_to, keyless_endpoint_to
from . import pilot_text
from .preparation import PreparedRun
from .work import Remainder

if TYPE_CHECKING:
    from .pilot import Pilot

CONDITION = "if nothing has to be sent twice or is read from the provider's cache"
_COLUMNS = ("lane", "calls", "cached", "input tokens", "output tokens", "cost", "time under its quota")


Missing = Mapping[Pair, tuple[Remainder, int | None]]
"""For each pair the calls left to send, and how many calls the cache answers (None: the cache was not searched)."""


class LaneCalls(Struct):
    """The calls, prompts and answers that one lane is expected to carry: a lower and an upper value of each."""

    calls: list[int]
    """The number of calls."""
    chars: list[int] | None
    """Characters of all prompts; None: not known, since prompts contain answers."""
    output: list[int | None]
    """Tokens of all answers; None: not known."""
    cached: int | None = None
    """The number of further calls that the cache answers; None: the cache was not searched."""


def look_up(
    pairs: Iterable[Pair],
    calls_of: Callable[[Pair], Iterable[Call]],
    settings: Settings,
    *,
    looks_into_cache: bool,
    whole: Callable[[], Remainder] | None = None,
) -> Missing:
    """Returns for each pair the calls that the cache does not answer, with their characters, and how many it answers
    (None: no cache was searched). Without `looks_into_cache`, or in live mode, none is searched; `whole` then counts
    all calls of a pair without making them."""
    cache = None
    if looks_into_cache and settings.mode != "live":
        try:
            cache = Cache(settings.cache_folder(), read_only=True)
        except LocalFault:
            cache = None
    if cache is None and whole is not None:
        return dict.fromkeys(pairs, (whole(), None))
    found: dict[Pair, tuple[Remainder, int | None]] = {}
    try:
        for pair in pairs:
            endpoint = keyless_endpoint_to(access_to(pair.model, settings))
            prompts = chars = cached = 0
            for call in calls_of(pair):
                if cache is not None and cache.get(key_of(endpoint.encode(call), call.trial)) is not None:
                    cached += 1
                    continue
                prompts += 1
                chars += chars_of(call)
            found[pair] = Remainder(prompts, chars), None if cache is None else cached
    finally:
        if cache is not None:
            cache.close()
    return found


def lanes_under_test(
    prepared: PreparedRun, missing: Missing, limits: Mapping[Pair, int | None]
) -> dict[str, LaneCalls]:
    """Returns the expected calls of the lanes of the models under test. `limits`: the most tokens of an answer of each
    pair (None: no `max_tokens` is sent)."""
    lanes, settings = {}, prepared.settings
    for model in dict.fromkeys(pair.model for pair in missing):
        own = {pair: found for pair, found in missing.items() if pair.model == model}
        longest = {pair: longest_answer(settings, pair, limits[pair]) for pair in own}
        count, chars = (sum(getattr(left, name) for left, _ in own.values()) for name in ("prompts", "chars"))
        cached = [found for _, found in own.values() if found is not None]
        most = None if None in longest.values() else sum(own[pair][0].prompts * (longest[pair] or 0) for pair in own)
        lanes[model] = LaneCalls([count, count], [chars, chars], [count, most], sum(cached) if cached else None)
    return lanes


def forecast_of(
    prepared: PreparedRun, lanes: Mapping[str, LaneCalls], missing: Missing, pilot: Pilot | None
) -> dict[str, Any]:
    """Returns a run's forecast as plain values, with the pilot's estimates if there was one."""
    settings = prepared.settings
    rows = [_row_of(prepared, lane, sent) for lane, sent in lanes.items()]
    if pilot is not None and missing:
        from .pilot_figures import figures  # numpy, which nothing else here needs

        left = {pair: _left(found, pilot, pair) for pair, found in missing.items()}
        for row in rows:
            model = row["lane"]
            if any(pair.model == model for pair in pilot.chosen):
                row["pilot"] = figures(model, pilot, left, settings)
    costs = [row["cost"] for row in rows]
    return {
        "folder": None if prepared.out.name == "-" else str(prepared.out),
        "pairs": [str(pair) for pair in prepared.work.pairs()],
        "dataset": {name: value for name, value in prepared.dataset.items() if name != "items"},
        "lanes": rows,
        "cost": None if None in costs else [sum(low for low, _ in costs), sum(high for _, high in costs)],
        "prices_of": settings.price_table().oldest_date(prepared.work.lanes),
        "pilot": None if pilot is None else pilot.ending(),
    }


def longest_answer(settings: Settings, pair: Pair, limit: int | None) -> int | None:
    """Returns the tokens of an answer that upper figures assume; None if it is not known how long the model thinks."""
    if limit is not None:
        return limit
    return settings.output_max(pair.model) if settings.facts_of(pair.model).thinks_at(pair.effort) else OUTPUT_FIRST


def _left(found: tuple[Remainder, int | None], pilot: Pilot, pair: Pair) -> Remainder:
    """Returns a pair's calls without those that the pilot answered; the cache search, if there was one, has left them
    out already."""
    left, cached = found
    if cached is not None:
        return left
    answered = [chars_of(outcome.call) for outcome in pilot.outcomes[pair] if outcome.reply is not None]
    return Remainder(left.prompts - len(answered), left.chars - sum(answered))


def _row_of(prepared: PreparedRun, model: str, sent: LaneCalls) -> dict[str, Any]:
    settings = prepared.settings
    efforts = [pair.effort for pair in prepared.work.pairs() if pair.model == model] or [None]
    thinks = [settings.facts_of(model).thinks_at(effort) for effort in efforts]
    quota, price = settings.quota_of(model), settings.price_table().get(model)
    tokens = None if sent.chars is None else [round(chars * TOKENS_PER_CHAR) for chars in sent.chars]
    # Without known tokens only the requests are compared with the quota.
    is_known = tokens is None or None not in sent.output
    return {
        "lane": model,
        "calls": sent.calls,
        "cached": sent.cached,
        "input_tokens": tokens,
        "output_tokens": [None, None] if tokens is None else sent.output,
        "price": None
        if price is None
        else {"input": price.factor * price.input, "output": price.factor * price.output},
        "cost": _cost(price, tokens, sent.output) if tokens is not None and is_known else None,
        "minutes": _minutes(quota, sent.calls, tokens, sent.output) if is_known else None,
        "thinks": True if True in thinks else thinks[0],
        "pilot": None,
    }


def _cost(price: Price | None, tokens: Sequence[int], output: Sequence[int | None]) -> list[float] | None:
    if price is None:
        return None
    return list(cost_range(price, tokens, [answered or 0 for answered in output]))


def _minutes(
    quota: Quota, calls: Sequence[int], tokens: Sequence[int] | None, output: Sequence[int | None]
) -> list[float] | None:
    amounts = zip(calls, tokens or (0, 0), output, strict=True)
    found = [quota.minutes(count, given, answered or 0) for count, given, answered in amounts]
    return [each for each in found if each is not None] or None


def tell(found: Mapping[str, Any]) -> str:
    """Returns a forecast as lines for people."""
    rows = [_COLUMNS, *(_cells(row) for row in found["lanes"])]
    lines = [
        table(rows),
        "",
        f"{found['what']}, asked of {', '.join(found['pairs'])}; data {found['dataset']['path']}",
    ]
    if found["cost"] is not None:
        lines.append(f"cost: {span_text(found['cost'], dollars)}, {CONDITION}")
    lines += price_lines({row["lane"]: row["price"] for row in found["lanes"]}, found["prices_of"])
    if unquoted := [row["lane"] for row in found["lanes"] if row["minutes"] is None]:
        lines.append(f"no quota declared: {', '.join(unquoted)}; --rpm and --tpm give the time")
    lines += found["remarks"]
    lines.append(
        f"assumed: a token is 4 characters of a prompt; an answer has at least 1 token, at most max_tokens (where "
        f"that is not sent, {OUTPUT_FIRST}, or what the model can think)"
    )
    lines += pilot_lines({row["lane"]: row["pilot"] for row in found["lanes"]}, found["pilot"])
    return "\n".join(lines)


def price_lines(prices: Mapping[str, Any], prices_of: str | None) -> Iterator[str]:
    """Yields the sentences on lanes without a price, and on how old the prices of the others are. `prices_of` is the
    date on which the oldest was read; None: all are the user's own."""
    unpriced = [lane for lane, price in prices.items() if price is None]
    if unpriced:
        yield f'without a price: {", ".join(unpriced)}; give one under [prices."{unpriced[0]}"] in --config FILE'
    if len(unpriced) < len(prices):
        listed = f"listed on {prices_of} or later" if prices_of else "given in the configuration"
        yield f"prices as {listed}: check them"


def pilot_lines(estimates: Mapping[str, Any], pilot: Mapping[str, Any] | None) -> Iterator[str]:
    """Yields the lines on a pilot: each lane's estimates, if it was asked (not None), and how the pilot ended."""
    piloted = {lane: found for lane, found in estimates.items() if found is not None}
    for lane, found in piloted.items():
        yield from ("", pilot_text.tell(lane, found))
    if any(found["pending"] < found["calls"] for found in piloted.values()):
        yield from ("", pilot_text.MEANING)
    if pilot is not None and (unsure := pilot["maybe_billed_pending"]):
        yield f"{count_text(unsure, 'attempt')} without an answer in the pilot may have been billed all the same"


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    low, high = row["output_tokens"]
    cost, minutes = row["cost"], row["minutes"]
    said = "-" if low is None else f"{low:,} or more" if high is None else span_text((low, high), decimal_text)
    return (
        row["lane"],
        span_text(row["calls"], decimal_text),
        "-" if row["cached"] is None else f"{row['cached']:,}",
        "-" if row["input_tokens"] is None else span_text(row["input_tokens"], decimal_text),
        said,
        ("no price" if row["price"] is None else "not known") if cost is None else span_text(cost, dollars),
        "no quota" if minutes is None else span_text(minutes, rough_minutes),
    )
