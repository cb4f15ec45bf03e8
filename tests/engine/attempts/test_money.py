"""What calls cost, and a limit that holds even if every answer is as long as it may be."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from scripted import ScriptedProvider, engine_over
from virtual_time import run_virtually

from millstream.engine.attempts.money import CostBudget, bill_of, over_budget, worst_cost
from millstream.engine.call import Call, Message, Reply, Usage
from millstream.engine.content import Image, Tool
from millstream.engine.endpoint import Fault, Response
from millstream.engine.estimate import TokenEstimate
from millstream.engine.fault import Stopped
from millstream.engine.lane import Lane
from millstream.engine.prices import ListedPrice, LongPrompts, Price, Prices, PriceSource
from millstream.engine.run import run_calls
from millstream.providers.models import Facts
from millstream.wiring.settings import Settings


def test_prices_are_dollars_a_million_tokens() -> None:
    price = Price(input=0.15, output=0.60)
    assert price.of(1_000_000, 0) == pytest.approx(0.15)
    assert price.of(2_000, 500) == pytest.approx(0.0003 + 0.0003)
    assert cost(Usage(2_000, 500), price) == pytest.approx(0.0006)


SHORT = Call("a/b", "x" * 100, max_tokens=50)


def cost(usage: Usage | None, price: Price | None, call: Call = SHORT) -> float | None:
    return bill_of(Reply("", usage), call, price, TokenEstimate()).cost


def test_without_a_price_or_a_bound_the_cost_is_unknown_and_not_zero() -> None:
    assert cost(Usage(1, 1), None) is None
    assert cost(None, Price(1, 1), Call("a/b", "x")) is None
    assert cost(Usage(None, 7), Price(1, 1), Call("a/b", "x")) is None


def test_what_a_provider_does_not_report_counts_at_its_worst_and_only_a_total_as_the_dearer_kind() -> None:
    price = Price(1.0, 5.0)
    reserved = worst_cost(SHORT, price, TokenEstimate())
    assert reserved is not None and reserved >= (100 + 5 * 50) / 1e6
    assert cost(None, price) == cost(Usage(None, None), price) == reserved
    assert cost(Usage(60, None), price) == pytest.approx((60 + 5 * 50) / 1e6)
    assert cost(Usage(None, 7), price) == pytest.approx(reserved - 5 * (50 - 7) / 1e6)
    # No answer has more than the call's 50.
    assert cost(Usage(None, None, total=90), price) == pytest.approx((1.25 * 40 + 5 * 50) / 1e6)
    assert cost(None, Price(0, 0, call=0.005)) == 0.005


@pytest.mark.parametrize("wrong", [-0.01, math.nan, math.inf, 1e6])
def test_an_impossible_price_is_refused_by_name(wrong: float) -> None:
    with pytest.raises(ValueError, match=r"price: output .* dollars a million tokens"):
        Price(1.0, wrong)
    with pytest.raises(ValueError, match="price: input "):
        Price(wrong, 1.0)


def test_a_persons_own_prices_go_before_the_table() -> None:
    own, listed = Price(7, 8), ListedPrice(Price(1, 2), PriceSource("2025-06-30", "a price list"))
    table = Prices({"lab/large": listed, "lab/small": listed}).replaced_by({"lab/small": own, "mylab/m": own})
    assert table.get("lab/small") == table.get("mylab/m") == own
    assert table.get("lab/no-such-model") is None
    assert table.oldest_date(["mylab/m", "lab/small"]) is None
    assert table.oldest_date(["mylab/m", "lab/large"]) == "2025-06-30"


def test_a_long_prompt_costs_what_long_prompts_do() -> None:
    price = Price(1.0, 5.0, LongPrompts(100_000, 2.0, 7.5))
    assert cost(Usage(100_000, 1_000), price) == pytest.approx(0.1 + 0.005)
    assert cost(Usage(100_001, 1_000), price) == pytest.approx(0.200002 + 0.0075)
    call = Call("a/b", "x" * 1_000_000, max_tokens=10)
    assert worst(call, price) >= 1_000_000 * 2.0 / 1e6


def worst(call: Call, price: Price, estimate: TokenEstimate | None = None) -> float:
    found = worst_cost(call, price, estimate or TokenEstimate())
    assert found is not None
    return found


@given(st.text(max_size=300), st.one_of(st.none(), st.integers(1, 1000)))
def test_the_worst_case_bears_a_token_for_every_byte_of_the_prompt(text: str, max_tokens: int | None) -> None:
    price = Price(1e6 - 1, 0.0)
    assert worst(Call("a/b", text, max_tokens=max_tokens), price) >= price.of(len(text.encode()), 0)


def test_the_worst_case_grows_with_what_the_provider_reports() -> None:
    price, estimate = Price(1.0, 0.0), TokenEstimate()
    call = Call("a/b", (Message("user", "x" * 1000),))
    before = worst(call, price, estimate)
    for _ in range(100):
        estimate.observe(1000, Usage(1200, 1))
    assert worst(call, price, estimate) >= price.of(1.4 * 1200, 0) > before


ONE = Price(0.0, 1e6 - 1)


@pytest.mark.parametrize(
    ("call", "price", "tokens"),
    [
        (Call("a/b", "x", max_tokens=100), ONE, 100),
        (Call("a/b", "x", max_tokens=100), structs.replace(ONE, output_max=8_192), 100),
        (Call("a/b", "x"), structs.replace(ONE, output_max=8_192), 8_192),
        (Call("a/b", "x"), ONE, None),
        (Call("a/b", "x"), Price(1.0, 0.0, LongPrompts(10, 1.0, 2.0)), None),
        (Call("a/b", "x", max_tokens=100, extra={"n": 4}), ONE, 400),
        (Call("a/b", "x", max_tokens=100, extra={"max_completion_tokens": 900}), ONE, 900),
        (Call("a/b", "x", max_tokens=9, extra={"generationConfig": {"candidateCount": 3}}), ONE, 27),
    ],
    ids=["set", "set and known", "unset and known", "unset", "unset, long", "several", "in extra", "deep in extra"],
)
def test_an_answer_is_bounded_by_what_its_call_sets_else_by_what_its_model_can_produce(
    call: Call, price: Price, tokens: int | None
) -> None:
    found = worst_cost(call, price, TokenEstimate())
    assert (found if found is None else round(found)) == tokens


def test_calls_that_cost_nothing_for_their_output_need_no_bound() -> None:
    assert worst(Call("a/b", "x"), Price(0.0, 0.0)) == 0.0
    assert worst(Call("search/s", "x"), Price(0.0, 0.0, call=0.01)) == 0.01


@pytest.mark.parametrize(
    ("more", "least"),
    [
        (Call("a/b", (Message("user", ("x", Image("https://h/i.png"))),), max_tokens=1), 48_169),
        (Call("a/b", "x", max_tokens=1, tools=(Tool("t"),)), 1_000),
        (Call("a/b", "x", max_tokens=1, json_schema={"title": "y" * 5_000}), 6_000),
        (Call("a/b", tuple(Message("user", "x") for _ in range(100)), max_tokens=1), 1_600),
    ],
    ids=["an image", "tools", "a schema", "turns"],
)
def test_what_is_asked_besides_text_is_in_the_worst_case(more: Call, least: int) -> None:
    price = Price(1e6 - 1, 0.0)
    assert worst(more, price) - worst(Call("a/b", "x", max_tokens=1), price) >= price.of(least - 16, 0)


def test_a_price_is_told_how_long_answers_can_be() -> None:
    own = {"openai/gpt-4o": Price(2.5, 10.0), "openai/gpt-4o-mini": Price(1.0, 1.0, output_max=7)}
    facts = {model: Facts(max_output=16_384) for model in own}
    table = Settings(prices=own, models=facts, environment={}).price_table()
    gpt, mini = (table.get(model) for model in own)
    assert gpt is not None and gpt.output_max == 16_384
    assert mini is not None and mini.output_max == 7


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 1), st.integers(0, 20)), max_size=60))
def test_a_budget_never_spends_more_than_its_limit_where_nobody_exceeds_a_reservation(
    moves: list[tuple[float, float, int]],
) -> None:
    budget = CostBudget(10.0)
    wakes = [0]

    def wake() -> None:
        wakes[0] += 1
        budget.watch(wake)  # it is called once for each time that it is added

    budget.watch(wake)
    held: list[float] = []
    settled = 0
    for cost, share, which in moves:
        if budget.fits(cost):
            budget.reserve(cost)
            held.append(cost)
        if held and which < 10:
            reserved = held.pop(which % len(held))
            budget.settle(reserved, reserved * share)
            settled += reserved > 0
        assert budget.spent + budget.reserved <= 10.0 + 1e-9
        assert budget.reserved == pytest.approx(sum(held), abs=1e-9)
    assert wakes[0] == settled
    for reserved in held:
        budget.settle(reserved, 0.0)
    assert budget.is_idle


def test_a_budget_without_a_limit_only_counts() -> None:
    budget = CostBudget()
    assert budget.fits(1e9)
    budget.settle(0.0, 3.0)
    assert budget.spent == 3.0 and repr(budget) == "<CostBudget [$3.0000 spent, $0.0000 reserved, no limit]>"


def test_a_budget_without_a_file_has_left_what_nobody_spent_or_reserved() -> None:
    budget = CostBudget(1.0)
    budget.reserve(0.25)
    budget.settle(0.25, 0.2)
    budget.reserve(0.3)
    assert (budget.charged, budget.left) == pytest.approx((0.2, 0.5))
    told = over_budget("a call", 3.0, budget)
    assert told == "a call may cost $3.0000; $0.2000 of --max-cost $1.0000 had been spent: raise --max-cost"


def test_what_may_have_been_billed_is_paid_for_and_what_was_refused_is_not(tmp_path: Path) -> None:
    cut = Fault("incomplete", "cut", "retry", is_billed_maybe=True)
    refused = Fault("connect", "refused", "retry", quota="refund")
    faults = {"cut": cut, "refused": refused}
    seen: set[str] = set()

    def once(prompt: str, at: float) -> Fault | None:
        if prompt in seen:
            return None
        seen.add(prompt)
        return faults.get(prompt)

    async def spent_on(prompt: str) -> float:
        provider, lane = ScriptedProvider(once), Lane("script/m")
        folder = tmp_path / prompt
        async with engine_over({"script/m": provider}, folder, lane, max_cost=1e6, price=Price(1e3, 1e3)) as bench:
            await bench.scheduler.ask(Call("script/m", prompt, max_tokens=10))
            assert bench.budget.is_idle
            return bench.budget.spent

    good = run_virtually(spent_on("a clean one"))
    assert run_virtually(spent_on("refused")) <= good
    assert run_virtually(spent_on("cut")) > 1.5 * run_virtually(spent_on("refused"))


class Dear(ScriptedProvider):
    """Counts a token for every byte, as a tokenizer does with scripts it was not made for."""

    def decode(self, response: Response) -> Reply:
        return Reply("ok", Usage(len(response.body) - 10, 10), "stop")


def test_the_limit_holds_in_every_script_from_the_first_call_on(tmp_path: Path) -> None:
    provider = Dear()
    price = Price(100.0, 100.0)
    calls = (Call("script/m", f"请用一个字回答 {number} " * 40, max_tokens=10) for number in range(1000))

    async def main() -> float:
        lane = Lane("script/m", concurrency=16)
        async with engine_over({"script/m": provider}, tmp_path, lane, max_cost=1.0, price=price) as bench:
            with pytest.raises(Stopped, match=r"may cost \$.*raise --max-cost"):
                async for _ in run_calls(bench.scheduler, calls):
                    pass
            return bench.budget.spent

    assert 0.8 < run_virtually(main()) <= 1.0
