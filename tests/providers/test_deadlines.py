"""Deadlines behave as asyncio's own, in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from virtual_time import run_virtually

from millstream.providers.deadlines import Deadlines


async def ended_at(work: asyncio.Task[None]) -> tuple[float, str]:
    try:
        await work
    except (TimeoutError, asyncio.CancelledError) as error:
        return asyncio.get_running_loop().time(), type(error).__name__
    return asyncio.get_running_loop().time(), "done"


def test_each_call_ends_at_its_own_deadline_and_no_other() -> None:
    async def main() -> list[tuple[float, str]]:
        deadlines = Deadlines(10.0)

        async def call(starts: float, takes: float) -> None:
            await asyncio.sleep(starts)
            await deadlines.within(asyncio.sleep(takes))

        plan = [(0.0, 3.0), (1.0, 30.0), (2.0, 9.0), (5.0, 11.0), (40.0, 50.0)]
        found = await asyncio.gather(*(ended_at(asyncio.create_task(call(*row))) for row in plan))
        assert repr(deadlines) == "<Deadlines [0 of 10 s]>"
        return found

    found = run_virtually(main())
    assert [how for _, how in found] == ["done", "TimeoutError", "done", "TimeoutError", "TimeoutError"]
    assert [at for at, _ in found] == pytest.approx([3.0, 11.0, 11.0, 15.0, 50.0], abs=1e-3)


def test_a_callers_own_cancellation_passes() -> None:
    async def main() -> tuple[float, str]:
        deadlines = Deadlines(10.0)
        task = asyncio.create_task(deadlines.within(asyncio.sleep(60)))
        asyncio.get_running_loop().call_later(4.0, task.cancel)
        return await ended_at(task)

    at, how = run_virtually(main())
    assert (round(at, 3), how) == (4.0, "CancelledError")


def test_a_cancellation_in_the_instant_of_the_deadline_is_not_swallowed() -> None:
    async def main() -> tuple[float, str]:
        deadlines = Deadlines(10.0)
        task = asyncio.create_task(deadlines.within(asyncio.sleep(60)))
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        # Both before the task can run again.
        loop.call_at(10.0, task.cancel)
        loop.call_at(10.0, task.cancel)
        return await ended_at(task)

    assert run_virtually(main())[1] == "CancelledError"


def test_a_call_can_be_made_again_after_its_deadline() -> None:
    async def main() -> list[str]:
        deadlines, found = Deadlines(1.0), []
        for takes in (2.0, 0.5, 2.0):
            try:
                await deadlines.within(asyncio.sleep(takes))
                found.append("done")
            except TimeoutError:
                found.append("timeout")
        return found

    assert run_virtually(main()) == ["timeout", "done", "timeout"]
