"""Bills from all counts of a usage and the tier that was billed, and bounds at the dearest price that may apply."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from millstream.engine.attempts.money import Bill, bill_of, why_unbounded, worst_cost
from millstream.engine.call import Call, Message, Reply, Usage
from millstream.engine.content import Native, Tool
from millstream.engine.estimate import TokenEstimate
from millstream.engine.prices import LongPrompts, Price
from millstream.wiring.settings import Settings

PLAIN = Call("a/b", "x" * 100, max_tokens=50)
CLAUDE = Price(4.0, 20.0, cached=0.2, write_5m=5.0, write_1h=8.0, tiers={"fast": 2.0}, is_marked=True)
LONG = LongPrompts(272_000, 4.0, 15.0)
UNSPLIT = Usage(100, 0, cache_write_5m=100, cache_write_1h=None)
GPT = Price(2.0, 10.0, LONG, cached=0.1, write_5m=2.5, write_1h=5.0, tiers={"flex": 0.5, "priority": 2.0})


def marked(ttl: str | None = None) -> Call:
    mark: dict[str, Any] = {"type": "ephemeral"} if ttl is None else {"type": "ephemeral", "ttl": ttl}
    part = Native("anthropic", {"type": "text", "text": "x" * 100, "cache_control": mark})
    return Call("a/b", (Message("user", (part,)),), max_tokens=50)


def bill(usage: Usage | None, price: Price | None, call: Call = PLAIN, tier: str | None = None) -> float | None:
    return bill_of(Reply("", usage, tier=tier), call, price, TokenEstimate()).cost


def bound(call: Call, price: Price) -> float | None:
    return worst_cost(call, price, TokenEstimate())


def input_rate(call: Call, price: Price) -> float:
    """The dollars a million input tokens that the bound reckons with."""
    free, times = structs.replace(price, output=0.0), structs.replace(price, input=1.0, output=0.0, cached=1.0)
    counted = bound(call, structs.replace(times, write_5m=1.0, write_1h=1.0, long=None, tiers={}))
    found = bound(call, free)
    assert found is not None and counted is not None
    return found / counted


def test_reads_and_writes_are_billed_at_their_own_prices() -> None:
    usage = Usage(1_000, 300, 200, cached_input=400, cache_write_5m=100, cache_write_1h=250)
    parts = 250 * 4.0 + 400 * 0.2 + 100 * 5.0 + 250 * 8.0
    assert bill(usage, CLAUDE, marked("1h")) == pytest.approx((parts + 300 * 20.0) / 1e6)


def test_in_a_long_prompt_every_kind_of_input_costs_as_many_times_more() -> None:
    usage = Usage(300_000, 1_000, cached_input=100_000, cache_write_5m=150_000)
    parts = 2 * (50_000 * 2.0 + 100_000 * 0.1 + 150_000 * 2.5)
    assert bill(usage, GPT) == pytest.approx((parts + 1_000 * 15.0) / 1e6)


def test_what_a_price_list_does_not_say_of_a_cache_counts_at_the_dearest_that_is_known_of_any() -> None:
    bare = Price(4.0, 20.0)
    assert bill(Usage(100, 0, cached_input=100), bare) == pytest.approx(400 / 1e6)
    assert bill(Usage(100, 0, cache_write_5m=100), bare) == pytest.approx(500 / 1e6)
    assert bill(Usage(100, 0, cache_write_1h=100), bare) == pytest.approx(1_000 / 1e6)
    assert bill(Usage(100, 0, cache_write_1h=100), structs.replace(bare, is_marked=True)) == pytest.approx(800 / 1e6)
    # A list with a price for reads alone asks nothing more for writes.
    assert bill(Usage(100, 0, cache_write_5m=100), structs.replace(bare, cached=2.0)) == pytest.approx(400 / 1e6)


def test_writes_that_are_not_counted_apart_are_for_an_hour_if_that_was_asked() -> None:
    usage = Usage(100, 0, cache_write_5m=100, cache_write_1h=None)
    assert bill(structs.replace(usage, cache_write_1h=0), CLAUDE, marked("1h")) == pytest.approx(500 / 1e6)
    assert bill(usage, CLAUDE, marked("1h")) == pytest.approx(800 / 1e6)
    assert bill(usage, CLAUDE, marked("5m")) == bill(usage, CLAUDE, marked()) == pytest.approx(500 / 1e6)


@pytest.mark.parametrize(
    ("call", "price", "rate"),
    [
        (PLAIN, CLAUDE, 4.0),
        (marked(), CLAUDE, 5.0),
        (marked("1h"), CLAUDE, 8.0),
        (structs.replace(PLAIN, extra={"cache_control": {"type": "ephemeral", "ttl": "1h"}}), CLAUDE, 8.0),
        (PLAIN, GPT, 2.5),
        (structs.replace(PLAIN, extra={"prompt_cache_retention": "24h"}), GPT, 5.0),
        (PLAIN, structs.replace(GPT, write_5m=None), 2.0),
        (PLAIN, Price(4.0, 20.0), 5.0),
        (marked("1h"), Price(4.0, 20.0, is_marked=True), 8.0),
        (structs.replace(PLAIN, extra={"prompt_cache_retention": "24h"}), structs.replace(GPT, write_1h=None), 5.0),
    ],
    ids=[
        "unmarked",
        "marked",
        "hour",
        "hour of all",
        "unasked",
        "hours",
        "free writes",
        "unknown",
        "unknown hour",
        "unknown hours",
    ],
)
def test_the_bound_takes_the_dearest_price_of_input_that_may_apply_to_the_call(
    call: Call, price: Price, rate: float
) -> None:
    assert input_rate(call, price) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("tier", "times"),
    [
        (None, 1.0), ("default", 1.0), ("standard", 1.0), ("ON_DEMAND", 1.0), ("flex", 0.5), ("ON_DEMAND_FLEX", 0.5),
        ("priority", 2.0), ("fast", 2.0), ("SERVICE_TIER_PRIORITY", 2.0), ("ultrafast", 2.0), ("scale", 2.0),
    ],
)  # fmt: skip
def test_the_tier_that_was_billed_is_billed_and_one_without_a_price_as_the_dearest(
    tier: str | None, times: float
) -> None:
    usual = bill(Usage(1_000, 300), GPT)
    assert usual is not None and bill(Usage(1_000, 300), GPT, tier=tier) == pytest.approx(times * usual)


@pytest.mark.parametrize(
    ("extra", "asked", "times"),
    [
        (None, None, 1.0), (None, "flex", 1.0), (None, "priority", 2.0), (None, "standard", 1.0),
        ({"service_tier": "priority"}, "flex", 2.0), ({"service_tier": "flex"}, None, 1.0),
        ({"serviceTier": {"type": "priority"}}, None, 2.0), ({"speed": "fast"}, None, 2.0),
        ({"speed": "standard", "service_tier": "default"}, None, 1.0), ({"service_tier": "auto"}, None, 2.0),
        ({"service_tier": None}, None, 2.0), ({"service_tier": None}, "standard", 2.0),
        ({"service_tier": "ultrafast"}, None, None), ({"service_tier": 7}, None, None), (None, "ultrafast", None),
    ],
)  # fmt: skip
def test_the_bound_is_at_the_tier_that_is_asked_but_no_cheaper_one_and_there_is_none_for_an_unknown_word(
    extra: dict[str, Any] | None, asked: str | None, times: float | None
) -> None:
    # Fields of a request count as a part of the prompt, whatever they say.
    usual = bound(structs.replace(PLAIN, extra=None if extra is None else {"x" * len(str(extra)): 1}), GPT)
    call, price = structs.replace(PLAIN, extra=extra), structs.replace(GPT, tier=asked)
    found = bound(call, price)
    # Fields of all requests of a model count as those of each call.
    assert found == bound(PLAIN, structs.replace(price, extra=extra))
    if times is None:
        assert found is None and "tiers under" in why_unbounded(call, price)
    else:
        assert usual is not None and found == pytest.approx(times * usual, rel=0.08)


@pytest.mark.parametrize(
    ("place", "times"), [("us", 1.1), ("global", 1.0), (None, 1.0), ("eu", 1.1)], ids=["us", "global", "null", "new"]
)
def test_a_place_that_is_asked_for_multiplies_bound_and_bill_and_the_tier(place: str | None, times: float) -> None:
    price = Settings().price_table().get("anthropic/claude-opus-5-5")
    assert price is not None
    usual = Call("anthropic/claude-opus-5-5", "x" * 10_000, max_tokens=50, extra={"speed": "fast"})
    call = structs.replace(usual, extra={"speed": "fast", "inference_geo": place})
    most, most_usual, fast = bound(call, price), bound(usual, price), bill(Usage(1_000, 300), price, tier="fast")
    assert most is not None and most_usual is not None and fast is not None
    assert most == pytest.approx(most_usual * times, rel=0.01)
    assert bill(Usage(1_000, 300), price, call, "fast") == bill(Usage(1_000, 300), price, call)
    assert bill(Usage(1_000, 300), price, call) == pytest.approx(times * fast)


@pytest.mark.parametrize(
    ("model", "address", "times"),
    [
        ("openai/gpt-6-sol", "https://eu.api.openai.com/v1", 1.1),
        ("openai-responses/gpt-5.4", "https://us.api.openai.com/v1", 1.1),
        ("openai/gpt-5.2", "https://eu.api.openai.com/v1", 1.0),
        ("openai/gpt-6-sol", "https://api.openai.com/v1", 1.0),
        ("openai/gpt-6-sol", "http://127.0.0.1:8000/v1", 1.0),
        ("openai/gpt-6-sol", "https://eu.notapi.openai.com.example/v1", 1.0),
    ],
)
def test_an_address_for_one_region_costs_more_of_the_models_that_openai_charges_there(
    model: str, address: str, times: float
) -> None:
    here = Settings(environment={"OPENAI_BASE_URL": address})
    usual, price = Settings(environment={}).price_table().get(model), here.price_table().get(model)
    assert usual is not None and price is not None
    call = Call(model, "x" * 1_000, max_tokens=50)
    most, most_usual = bound(call, price), bound(call, usual)
    assert most is not None and most_usual is not None and most == pytest.approx(times * most_usual)
    bills = [bill(Usage(1_000, 300, cached_input=500), each, call, "default") for each in (price, usual)]
    assert bills[0] == pytest.approx(times * (bills[1] or 0.0)) and price.of(9, 9) == pytest.approx(
        times * usual.of(9, 9)
    )
    own = structs.replace(here, prices={model: GPT}).price_table().get(model)
    assert own is not None and bill(Usage(1_000, 300), own) == bill(Usage(1_000, 300), GPT)


@pytest.mark.parametrize(
    ("extra", "times"),
    [({"service_tier": "priority"}, 2.0), ({"service_tier": "flex"}, 0.5), ({"inference_geo": "us"}, 1.1)],
    ids=str,
)
def test_what_a_models_own_fields_ask_for_is_in_the_price_that_plan_counts(extra: dict[str, Any], times: float) -> None:
    assert structs.replace(GPT, extra=extra).of(1_000, 300) == pytest.approx(times * GPT.of(1_000, 300))


def test_a_cheaper_tier_that_the_answer_does_not_confirm_is_billed_in_full() -> None:
    flex = structs.replace(GPT, tier="flex")
    assert bill(Usage(1_000, 300), flex) == bill(Usage(1_000, 300), GPT)
    assert flex.of(1_000, 300) == pytest.approx(GPT.of(1_000, 300) / 2)


def test_a_cheaper_tier_is_reserved_as_it_is_billed_without_a_word_of_the_answer() -> None:
    call = structs.replace(PLAIN, max_tokens=1_000)
    named = structs.replace(call, extra={"service_tier": "flex"})
    for price, asked in ((structs.replace(GPT, tier="flex"), call), (GPT, named)):
        cost, most = bill(Usage(len(str(PLAIN.input)), 1_000), price, asked), bound(asked, price)
        assert cost is not None and most is not None and cost <= most


def test_only_a_field_of_a_cache_asks_for_an_hour_and_no_word_of_a_tool_or_a_prompt() -> None:
    schema = {"type": "object", "properties": {"for": {"type": "string", "enum": ["1h", "24h"], "default": "1h"}}}
    call = structs.replace(PLAIN, input="keep it '24h', \"ttl: 1h\"", tools=(Tool("wait", parameters=schema),))
    assert bill(UNSPLIT, GPT, call) == bill(UNSPLIT, GPT)
    assert bill(UNSPLIT, GPT, structs.replace(call, extra={"prompt_cache_retention": "24h"})) != bill(UNSPLIT, GPT)


def test_the_place_that_an_answer_names_is_in_its_bill() -> None:
    usage = Usage(1_000, 300, place="us")
    usual = bill(Usage(1_000, 300), CLAUDE)
    assert usual is not None and bill(usage, CLAUDE) == pytest.approx(1.1 * usual)


@pytest.mark.parametrize("count", [8, 8.0, 7.5, "8"], ids=repr)
@pytest.mark.parametrize("name", ["n", "candidateCount", "max_completion_tokens", "thinking_budget"])
def test_a_number_in_a_field_counts_however_it_is_written(name: str, count: Any) -> None:
    call = structs.replace(PLAIN, max_tokens=1)
    plain, most = (bound(structs.replace(call, extra={name: value}), GPT) for value in ("x", count))
    assert plain is not None and most is not None and most - plain > 6 * 10.0 / 1e6


def test_each_tool_of_a_providers_own_has_room_for_its_description() -> None:
    computer = {"type": "computer_20251124", "name": "computer", "display_width_px": 1024, "display_height_px": 768}
    bash = {"type": "bash_20250124", "name": "bash"}
    free = structs.replace(GPT, output=0.0, cached=2.0, write_5m=2.0)
    usual = bound(PLAIN, free)
    own = bound(structs.replace(PLAIN, tools=(Native("anthropic", computer), Native("anthropic", bash))), free)
    listed = bound(structs.replace(PLAIN, extra={"tools": [computer, bash]}), free)
    assert usual is not None and own is not None and listed is not None
    assert min(own, listed) - usual >= 3 * 1_024 * 2.0 / 1e6


def test_what_a_router_says_it_billed_is_the_cost_also_without_a_price() -> None:
    usage = Usage(1_000, 300, billed=0.125)
    assert bill(usage, GPT) == bill(usage, None) == 0.125
    assert bill(Usage(None, None, billed=0.0), GPT) == 0.0


def test_an_unknown_price_of_long_writes_is_no_cheaper_than_a_listed_one_of_the_same_provider() -> None:
    table = Settings().price_table()
    prices = {name: table.get(name) for name in table.models if name.startswith(("anthropic/", "openai/"))}
    for provider in ("anthropic", "openai"):
        of_it = [price for name, price in prices.items() if name.startswith(f"{provider}/") and price is not None]
        listed = max(each.write_1h / each.input for each in of_it if each.write_1h is not None)
        bare = structs.replace(of_it[0], write_1h=None)
        assert bill(Usage(100, 0, cache_write_1h=100), bare) == pytest.approx(listed * 100 * bare.input / 1e6)


@pytest.mark.parametrize(
    ("asked", "tier", "is_certain"),
    [
        (None, None, True),
        ("standard", None, True),
        ("flex", None, False),
        ("auto", None, False),
        ("flex", "flex", True),
    ],
)
def test_a_tier_that_was_asked_for_and_not_reported_is_at_its_worst(
    asked: str | None, tier: str | None, is_certain: bool
) -> None:
    price = structs.replace(GPT, tier=asked)

    def billed(usage: Usage | None) -> Bill:
        return bill_of(Reply("", usage, tier=tier), PLAIN, price, TokenEstimate())

    assert billed(Usage(1_000, 300)).is_reported is is_certain
    assert billed(Usage(1_000, 300, billed=0.1)) == Bill(0.1, is_reported=True)
    assert not billed(None).is_reported
