"""The most that an attempt can cost: what is kept of a price for all its calls changes no number."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

import millstream as ms
from millstream.engine.attempts.money import worst_cost
from millstream.engine.call import Call, Message, Usage
from millstream.engine.call_lookup import PendingCall
from millstream.engine.estimate import TokenEstimate, call_weight
from millstream.engine.prices import LongPrompts, Price

TEXTS = st.text(max_size=60) | st.sampled_from(["cache_control", "x" * 60, "\ud800", "\u98df\u76d0" * 9])
INPUTS = TEXTS | st.lists(TEXTS, min_size=1, max_size=3).map(lambda texts: tuple(Message("user", one) for one in texts))
EXTRAS: st.SearchStrategy[dict[str, Any] | None] = st.sampled_from(
    [None, None, {}, {"top_k": 3}, {"service_tier": "flex"}, {"service_tier": "strange"}, {"cache_control": {"a": 1}}]
)
CALLS = st.builds(Call, st.just("a/b"), INPUTS, max_tokens=st.sampled_from([None, 7, 900]), extra=EXTRAS)
PRICES = st.builds(
    Price,
    st.sampled_from([0.0, 2.5]),
    st.sampled_from([0.0, 10.0]),
    st.sampled_from([None, LongPrompts(80, 5.0, 15.0)]),
    cached=st.sampled_from([None, 0.25]),
    write_5m=st.sampled_from([None, 3.0]),
    tiers=st.sampled_from([{}, {"flex": 0.5, "priority": 2.0}]),
    place=st.sampled_from([1.0, 1.1]),
    is_marked=st.booleans(),
    extra=EXTRAS,
    tier=st.sampled_from([None, "flex", "auto", "strange"]),
    output_max=st.sampled_from([None, 400]),
)


def by_hand(call: Call, price: Price, tokens_per_char: float) -> float | None:
    if price.extra is not None:
        call = structs.replace(call, extra={**price.extra, **(call.extra or {})})
    output = price.output_max if call.max_tokens is None else call.max_tokens
    if output is None and (price.output or price.long is not None):
        return None
    if price.factor_asked(call) is None:
        return None
    turns = [call.input] if isinstance(call.input, str) else [str(turn.content) for turn in call.input]
    read = 16 + sum(16 + len(text.encode("utf-8", "surrogatepass")) for text in turns)
    read += 0 if call.extra is None else len(orjson.dumps(call.extra))
    read = max(read, math.ceil(1.5 * call_weight(call) * tokens_per_char))
    dollars = read * price.input_most("" if call.extra is None else repr((call.extra, call.input)))
    return price.in_dollars(read, dollars, output or 0, price.factor_billed(call, None))


@given(PRICES, st.lists(CALLS, min_size=1, max_size=4), st.sampled_from([0.25, 3.0]))
def test_a_bound_is_that_of_its_own_call_and_price(price: Price, calls: list[Call], per_char: float) -> None:
    estimate = TokenEstimate()
    estimate.tokens_per_char = per_char
    for call in calls:
        assert worst_cost(call, price, estimate) == by_hand(call, structs.replace(price), per_char)


def test_an_attempt_is_reckoned_by_what_was_reported_of_others_before_it(tmp_path: Path) -> None:
    price = ms.Price(1.0, 5.0)

    async def reckoned(max_cost: float | None) -> list[float]:
        settings = ms.Settings(
            base_url="http://127.0.0.1:1", cache=tmp_path, environment={"OPENAI_API_KEY": "x"},
            prices={"openai/m": price}, max_cost=max_cost,
        )  # fmt: skip
        async with ms.Engine(settings=settings) as engine:
            pending = engine.scheduler.look_up(Call("openai/m", "x" * 100, max_tokens=9))
            assert isinstance(pending, PendingCall)
            costs = []
            for _ in range(2):
                costs.append(pending.reckoned_cost)
                assert worst_cost(pending.call, price, pending.route.estimate) == pending.worst_cost
                pending.route.estimate.observe(100, Usage(900, 1))
            return costs

    first, second = asyncio.run(reckoned(9.0))
    assert second > first > 0
    assert asyncio.run(reckoned(None)) == [0.0, 0.0]
