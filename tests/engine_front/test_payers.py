"""A caller's budget, as the gateway's callers see it: a call is paid once, and what was not sent is not paid."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from chat_gateway import BOB, ChatGateway, chat_gateway
from chat_server import COST, MODEL, Asked, Script, held, status, until
from gateways import Answer

import millstream as ms

# More than any call can cost.
PLENTY = 1000.0
# The bounds of an attempt at its worst, with 20 tokens of output, and of input at the price of a cache's write.
WORST, WORST_MAX = 2.0, 8.0


def scenario(
    folder: Path,
    check: Callable[[ChatGateway], Awaitable[None]],
    script: Script = lambda asked: None,
    *lanes: ms.Lane,
    **bounds: Any,
) -> None:
    """Checks a gateway, of which nothing is left in flight at the end."""

    async def main() -> None:
        async with chat_gateway(folder, script, *lanes, **{"max_cost": PLENTY, **bounds}) as at:
            await check(at)
            # An answer is given before it is stored, and then its place is free.
            while at.server.asked and await at.in_flight():  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    asyncio.run(asyncio.wait_for(main(), 30))


def is_spent(answer: Answer) -> bool:
    return answer.status == 429 and answer.json["error"]["code"] == "insufficient_quota"


async def until_left(at: ChatGateway, dollars: float) -> None:
    """Waits until ann has so much left."""
    for _ in range(200):
        if await at.left() == pytest.approx(dollars):
            return
        await asyncio.sleep(0.01)
    assert await at.left() == pytest.approx(dollars)


def test_an_answer_is_paid_for_once_and_a_stored_one_not(tmp_path: Path) -> None:
    async def check(at: ChatGateway) -> None:
        first = await at.ask("call")
        assert (first.status, float(first.headers["x-millstream-cost"])) == (200, COST)
        assert await at.left() == PLENTY - COST
        again, of_bob = await at.ask("call"), await at.ask("call", BOB)
        assert again.is_cached and of_bob.is_cached and at.server.counts() == {"call": 1}
        assert await at.left() == PLENTY - COST

    scenario(tmp_path, check)


@pytest.mark.parametrize(
    ("code", "least", "most"),
    [
        (500, COST, COST),
        # The failed attempt may have been billed, and counts at its worst.
        (504, COST + WORST, COST + WORST_MAX),
    ],
)
def test_a_repeat_is_paid_for_where_the_first_may_have_been(
    code: int, least: float, most: float, tmp_path: Path
) -> None:
    async def check(at: ChatGateway) -> None:
        assert (await at.ask("call")).status == 200
        assert least <= PLENTY - await at.left() <= most

    scenario(tmp_path, check, lambda asked: status(code) if asked.number == 1 else None)


def test_what_was_refused_is_not_paid_for(tmp_path: Path) -> None:
    async def check(at: ChatGateway) -> None:
        assert (await at.ask("call")).status == 422
        assert await at.left() == PLENTY

    scenario(tmp_path, check, lambda asked: status(422))


def test_what_never_reached_the_server_is_not_paid_for(tmp_path: Path) -> None:
    async def check(at: ChatGateway) -> None:
        # Nobody listens any more.
        await at.server.__aexit__(None, None, None)
        assert (await at.ask("call")).status >= 500
        assert await at.left() == PLENTY

    scenario(tmp_path, check)


def test_an_empty_budget_sends_nothing_and_is_its_callers_alone(tmp_path: Path) -> None:
    async def check(at: ChatGateway) -> None:
        answers = [await at.ask(f"call {number}") for number in range(10)]
        sent = [answer for answer in answers if answer.status == 200]
        assert 1 <= len(sent) < 10 and all(is_spent(answer) for answer in answers[len(sent) :])
        assert len(at.server.asked) == len(sent) and await at.left() == pytest.approx((10 - len(sent)) * COST)
        # What is stored is still given, and others are answered.
        assert (await at.ask("call 0")).is_cached and (await at.ask("of bob", BOB)).status == 200

    scenario(tmp_path, check, max_cost=10 * COST)


def test_many_at_once_never_pass_the_budget(tmp_path: Path) -> None:
    async def check(at: ChatGateway) -> None:
        at.server.latency_s = 0.01
        answers = await asyncio.gather(*(at.ask(f"call {number}") for number in range(30)))
        paid = sum(answer.status == 200 for answer in answers)
        assert all(answer.status == 200 or is_spent(answer) for answer in answers)
        assert len(at.server.asked) == paid and 1 <= paid <= 10
        assert await at.left() == pytest.approx((10 - paid) * COST)

    scenario(tmp_path, check, max_cost=10 * COST)


def test_identical_requests_under_way_are_paid_for_once(tmp_path: Path) -> None:
    async def check(at: ChatGateway) -> None:
        at.server.latency_s = 0.05
        answers = await asyncio.gather(
            *(at.ask("call", token) for token in [BOB] * 3), *(at.ask("call") for _ in "123")
        )
        assert {answer.status for answer in answers} == {200} and at.server.counts() == {"call": 1}
        paid = [float(answer.headers["x-millstream-cost"]) for answer in answers]
        assert sorted(paid) == [0.0] * 5 + [COST]
        assert await at.left() in (PLENTY, PLENTY - COST)

    scenario(tmp_path, check)


def test_a_caller_without_money_does_not_take_the_call_of_another_with_it(tmp_path: Path) -> None:
    async def check(at: ChatGateway) -> None:
        at.server.latency_s = 0.05
        mine, other = await asyncio.gather(at.ask("call"), at.ask("call", BOB))
        assert other.status == 200 and at.server.counts() == {"call": 1}
        # Whether it was refused or had the other's answer, it paid nothing.
        assert mine.is_cached if mine.status == 200 else is_spent(mine)
        assert await at.left() == pytest.approx(0.01)

    scenario(tmp_path, check, max_cost=0.01)


def test_a_caller_who_can_pay_for_no_repeat_leaves_the_call_to_who_joined(tmp_path: Path) -> None:
    entered = asyncio.Event()

    async def billed(asked: Asked) -> bool:
        await entered.wait()
        return await status(504)(asked)

    async def check(at: ChatGateway) -> None:
        mine = asyncio.create_task(at.ask("call"))
        await until(lambda: at.server.in_flight == 1)
        other = asyncio.create_task(at.ask("call", BOB))
        await asyncio.sleep(0.05)
        entered.set()
        assert is_spent(await mine) and (await other).status == 200
        assert at.server.counts() == {"call": 2}
        # The first attempt was hers, the second is his.
        assert 10.0 - WORST_MAX <= await at.left() <= 10.0 - WORST

    scenario(tmp_path, check, lambda asked: billed if asked.number == 1 else None, max_cost=10.0)


def test_who_hangs_up_while_its_call_is_out_may_have_been_billed(tmp_path: Path) -> None:
    never = asyncio.Event()

    async def check(at: ChatGateway) -> None:
        async with at.asking("call"):
            await until(lambda: at.server.in_flight == 1)
        await until(lambda: at.server.lost == ["call"], within_s=1.0)
        for _ in range(100):
            if (left := await at.left()) < PLENTY and await at.in_flight() == 0:
                break
            await asyncio.sleep(0.01)
        assert WORST <= PLENTY - left <= WORST_MAX
        # Its one place is free, and the same question is asked anew.
        assert (await at.ask("next")).status == (await at.ask("call")).status == 200
        assert await at.left() == pytest.approx(left - 2 * COST)

    scenario(
        tmp_path,
        check,
        lambda asked: held(never) if asked.number == 1 and asked.prompt == "call" else None,
        concurrency=1,
    )


def test_who_hangs_up_before_its_call_is_sent_has_paid_nothing(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def check(at: ChatGateway) -> None:
        async with at.asking("of bob", BOB):
            await until(lambda: at.server.in_flight == 1)
            # The model's only place is bob's.
            async with at.asking("call"):
                await asyncio.sleep(0.05)
                assert await at.left() <= PLENTY
            await until_left(at, PLENTY)
            release.set()
            await until(lambda: at.server.in_flight == 0)
        assert at.server.counts() == {"of bob": 1}
        # Its only place is free.
        assert (await asyncio.wait_for(at.ask("call"), 5)).status == 200

    lane = ms.Lane(MODEL, concurrency=1)
    scenario(tmp_path, check, lambda asked: held(release), lane, concurrency=1)


def test_who_hangs_up_in_a_back_off_has_paid_what_was_sent(tmp_path: Path) -> None:
    async def check(at: ChatGateway) -> None:
        async with at.asking("call"):
            await until(lambda: at.server.counts()["call"] == 1)
            await asyncio.sleep(0.05)
        await until_left(at, PLENTY)
        assert (await at.ask("next")).status == 200

    wait = status(429, "later", "retry-after-ms: 400")
    scenario(tmp_path, check, lambda asked: wait if asked.number == 1 and asked.prompt == "call" else None)


def test_a_budget_outlives_its_gateway(tmp_path: Path) -> None:
    spent: list[float] = []

    async def check(at: ChatGateway) -> None:
        spent.append(await at.left())
        assert (await at.ask(f"call {len(spent)}")).status == 200

    for _ in range(3):
        scenario(tmp_path, check)
    assert spent == pytest.approx([PLENTY, PLENTY - COST, PLENTY - 2 * COST])


def test_a_call_that_joins_one_under_way_needs_no_money(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def check(at: ChatGateway) -> None:
        of_bob = asyncio.create_task(at.ask("call", BOB))
        await until(lambda: at.server.in_flight == 1)
        mine = asyncio.create_task(at.ask("call"))
        refused = await at.ask("another")
        release.set()
        assert is_spent(refused) and (await of_bob).status == (await mine).status == 200
        assert at.server.counts() == {"call": 1} and await at.left() == pytest.approx(0.01)

    scenario(tmp_path, check, lambda asked: held(release), max_cost=0.01)
