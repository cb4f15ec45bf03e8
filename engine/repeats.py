"""Whether a failed attempt is followed by another, and when: one fault, seen with its lane and what was tried before.

Decides by what the fault and the tries say. Sends nothing and records nothing.
"""

from __future__ import annotations

import asyncio
from random import Random

from .attempts.retry import Tries
from .endpoint import Fault
from .lanes.key_gate import Permit
from .lanes.lane_queue import LaneQueue


def may_repeat(fault: Fault, permit: Permit, lane: LaneQueue, tries: Tries) -> bool:
    key = permit.lane.number
    is_first = not tries.refused_by >> key & 1
    is_first_elsewhere = is_first and lane.has_another(tries.refused_by | 1 << key)
    return tries.may_repeat(fault, key, is_first_elsewhere=is_first_elsewhere)


def is_left_pending(fault: Fault, lane: LaneQueue) -> bool:
    """What stops a lane leaves the call pending; a redirect alone is recorded as the call's own end."""
    if fault.action == "confirm":
        return lane.stopped is not None
    return fault.action == "stop" and fault.kind != "redirect"


async def wait_to_repeat(lane: LaneQueue, permit: Permit, fault: Fault, tries: Tries, random: Random) -> None:
    """Sleep without a slot. Pauses of the whole lane and its breaker are the lane's to wait for."""
    if fault.action != "retry" and not (fault.action == "throttle" and fault.retry_after_s is None):
        return
    if fault.action == "throttle" and lane.has_another(tries.refused_by):
        return
    if not (fault.is_immediate and tries.attempts == 1):
        await lane.back_off(tries.policy.wait_s(tries.attempts, random))
    loop = asyncio.get_running_loop()
    while (wait := permit.lane.budget.wait_s(loop.time())) > 0:
        await lane.back_off(wait)
