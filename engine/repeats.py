"""Decides whether a failed attempt is repeated, and when, by its fault, its lane and the attempts before it.

Sends nothing and records nothing.
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
    """Whether a call stays pending, since its fault stops the lane. After a redirect it fails instead."""
    if fault.action == "confirm":
        return lane.stopped is not None
    return fault.action == "stop" and fault.kind != "redirect"


async def wait_to_repeat(lane: LaneQueue, permit: Permit, fault: Fault, tries: Tries, random: Random) -> None:
    """Sleeps before a repeat, without holding a slot. Pauses and the breaker are waited for in the lane."""
    if fault.action != "retry" and not (fault.action == "throttle" and fault.retry_after_s is None):
        return
    if fault.action == "throttle" and lane.has_another(tries.refused_by):
        return
    if not (fault.is_immediate and tries.attempts == 1):
        await lane.back_off(tries.policy.wait_s(tries.attempts, random))
    loop = asyncio.get_running_loop()
    while (wait := permit.lane.budget.wait_s(loop.time())) > 0:
        await lane.back_off(wait)
