"""A permit of a lane, awaited."""

from __future__ import annotations

import asyncio

from millstream.engine.fault import Stop
from millstream.engine.lanes.key_gate import Payer, Permit
from millstream.engine.lanes.lane_queue import LaneQueue, LaneStopped
from millstream.engine.limits import Tokens

_NO_TOKENS = Tokens()


class _Place:
    """A place in a lane's queue, for those who await its permit."""

    payers = ()

    def __init__(self, tokens: Tokens, cost: float, refused_by: int) -> None:
        self.tokens, self.cost, self.refused_by = tokens, cost, refused_by
        self.future: asyncio.Future[Permit] = asyncio.get_running_loop().create_future()

    def admitted(self, permit: Permit) -> None:
        if self.future.done():
            permit.gate.release(permit, asyncio.get_running_loop().time())
        else:
            self.future.set_result(permit)

    def refused(self, payer: Payer, error: Exception) -> None:
        raise AssertionError("it has no payer")

    def rested(self) -> None:
        raise AssertionError("it did not ask for a rest")

    def stopped(self, stop: Stop) -> None:
        if not self.future.done():
            self.future.set_exception(LaneStopped(stop))


async def admit(group: LaneQueue, tokens: Tokens = _NO_TOKENS, cost: float = 0.0, refused_by: int = 0) -> Permit:
    place = _Place(tokens, cost, refused_by)
    permit = group.admit(place)
    if permit is not None:
        return permit
    try:
        return await place.future
    except asyncio.CancelledError:
        group.leave(place)
        if not place.future.cancelled() and place.future.exception() is None:
            group.release(place.future.result(), asyncio.get_running_loop().time())
        raise
