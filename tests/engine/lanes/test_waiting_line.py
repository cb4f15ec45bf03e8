"""Who is next at a lane where some wait for a key and some for their payers, and what it costs to find out."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

import pytest
from payers import ScriptedPayer
from virtual_time import run_virtually

from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.fault import Stop
from millstream.engine.lane import Lane
from millstream.engine.lanes.key_gate import KeyGate, Payer, Permit
from millstream.engine.lanes.lane_queue import LaneQueue
from millstream.engine.limits import Tokens

M = "script/m"


class Place:
    """A call that counts how often any of them was looked at."""

    cost, tokens, refused_by = 0.0, Tokens(), 0
    looks = 0

    def __init__(self, *payers: Payer) -> None:
        self.paid_by, self.permits = payers, list[Permit]()

    @property
    def payers(self) -> Sequence[Payer]:
        Place.looks += 1
        return self.paid_by

    def admitted(self, permit: Permit) -> None:
        self.permits.append(permit)

    def refused(self, payer: Payer, error: Exception) -> None:
        raise AssertionError("its payers have money")

    def rested(self) -> None:
        raise AssertionError("it did not ask for a rest")

    def stopped(self, stop: Stop) -> None:
        raise AssertionError("the lane goes on")


class Switched(ScriptedPayer):
    """A payer that pays while it is on."""

    is_on = True

    def hold(self, now: float, tokens: Tokens, cost: float, wake: Callable[[], None]) -> str | None:
        return None if self.is_on else "requests"


def queue_of(concurrency: int) -> LaneQueue:
    return LaneQueue([KeyGate(Lane(M, concurrency=concurrency), RetryPolicy())])


def enter(queue: LaneQueue, place: Place) -> Place:
    if (permit := queue.admit(place)) is not None:
        place.admitted(permit)
    return place


def free(queue: LaneQueue, place: Place) -> None:
    queue.release(place.permits[-1], asyncio.get_running_loop().time())


async def looks_with(waiting: int) -> int:
    """What it costs others if so many wait for one payer: twenty calls on four slots, arrivals and leaves."""
    queue, poor, rich = queue_of(4), ScriptedPayer("poor", waits_s=1e6), ScriptedPayer("rich", most=99)
    crowd = [enter(queue, Place(poor)) for _ in range(waiting)]
    before, asked = Place.looks, poor.asked
    calls = [enter(queue, Place(rich)) for _ in range(20)]
    for call in calls:
        free(queue, call)
    crowd.append(enter(queue, Place(poor)))
    for place in (crowd[0], crowd[-1], crowd[waiting // 2]):
        queue.leave(place)
    assert (queue.queued, queue.in_flight, rich.granted) == (waiting - 2, 0, 20)
    assert poor.asked - asked < 80
    return Place.looks - before


def test_a_call_costs_the_same_however_many_wait_for_anothers_payer() -> None:
    few, many = run_virtually(looks_with(10)), run_virtually(looks_with(3_000))
    assert many == few


@pytest.mark.parametrize("seed", range(20))
def test_the_next_is_always_the_first_that_came_of_those_who_can_pay(seed: int) -> None:
    chance = random.Random(seed)

    async def main() -> None:
        queue = queue_of(1)
        payers = [Switched(name) for name in "abc"]
        busy = enter(queue, Place())
        line: list[Place] = []
        for _ in range(200):
            match chance.randrange(5):
                case 0 | 1:
                    line.append(enter(queue, Place(*chance.sample(payers, chance.randint(0, 3)))))
                case 2 if line:
                    place = chance.choice(line)
                    place.paid_by = tuple(chance.sample(payers, chance.randint(0, 3)))
                    queue.regroup(place)
                case 3 if line:
                    queue.leave(line.pop(chance.randrange(len(line))))
                case 4:
                    payer = chance.choice(payers)
                    payer.is_on = not payer.is_on
                    queue.serve()
            if chance.random() < 0.3:
                able = {payer for payer in payers if payer.is_on}
                first = next((place for place in line if not place.paid_by or able.intersection(place.paid_by)), None)
                free(queue, busy)
                assert [place for place in line if place.permits] == ([] if first is None else [first])
                if first is None:
                    first = enter(queue, Place())
                else:
                    line.remove(first)
                busy = first
        assert queue.queued == len(line)

    run_virtually(main())
