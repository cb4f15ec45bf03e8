"""Deadlines behave as asyncio's own, in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from virtual_time import run_virtually

from millstream.providers.transport.deadlines import Deadlines


class Wanted(asyncio.Future[None]):
    """What comes, or fails."""

    answered = asyncio.Future.set_result

    def come(self) -> None:
        if not self.done():
            self.set_result(None)

    def failed(self, error: Exception) -> None:
        if not self.done():
            self.set_exception(error)


async def answered(deadlines: Deadlines, takes: float, *, starts: float = 0.0) -> tuple[float, str]:
    """When what comes after so many seconds was had, or what came instead."""
    await asyncio.sleep(starts)
    loop = asyncio.get_running_loop()
    wanted = Wanted()
    coming = loop.call_later(takes, wanted.come)
    deadlines.watch(wanted)
    try:
        await wanted
        how = "done"
    except (TimeoutError, asyncio.CancelledError) as error:
        how = type(error).__name__
    finally:
        deadlines.pop(wanted, None)
        coming.cancel()
    return loop.time(), how


def test_each_call_ends_at_its_own_deadline_and_no_other() -> None:
    async def main() -> list[tuple[float, str]]:
        deadlines = Deadlines(10.0)
        plan = [(0.0, 3.0), (1.0, 30.0), (2.0, 9.0), (5.0, 11.0), (40.0, 50.0)]
        found = await asyncio.gather(*(answered(deadlines, takes, starts=starts) for starts, takes in plan))
        assert repr(deadlines) == "<Deadlines [0 of 10 s]>"
        return found

    found = run_virtually(main())
    assert [how for _, how in found] == ["done", "TimeoutError", "done", "TimeoutError", "TimeoutError"]
    assert [at for at, _ in found] == pytest.approx([3.0, 11.0, 11.0, 15.0, 50.0], abs=1e-3)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_cancellation_in_the_instant_of_the_deadline_is_not_swallowed(is_first: bool) -> None:
    async def main() -> tuple[float, str]:
        loop = asyncio.get_running_loop()
        deadlines, wanted = Deadlines(10.0), Wanted()

        async def wait() -> None:
            await wanted

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        # Both before the task can run again.
        if is_first:
            loop.call_at(loop.time() + 10.0, task.cancel)
        deadlines.watch(wanted)
        if not is_first:
            loop.call_at(loop.time() + 10.0, task.cancel)
        await asyncio.wait([task])
        wanted.cancelled() or wanted.exception()
        return loop.time(), "CancelledError" if task.cancelled() else "else"

    assert run_virtually(main())[1] == "CancelledError"
