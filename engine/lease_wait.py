"""The wait for a lease that another engine holds. It holds no place, no quota and no money meanwhile.

Owns how often is looked and when the wait ends. Where leases lie: store/leases; what follows one: scheduler.
"""

from __future__ import annotations

import asyncio

from .lanes.lane_queue import LaneQueue
from .store.leases import KeyLeases

_PAUSE_MIN_S = 0.02
_PAUSE_MAX_S = 0.5
# A pause is this share of the wait so far: an answer is seen late by a quarter of what it took, at most.
_PAUSE_SHARE = 0.25


async def wait_for_lease(leases: KeyLeases, key: bytes, lane: LaneQueue, patience_s: float) -> bool:
    """Waits until a key's lease can be taken and takes it; returns False if its holder keeps it for `patience_s`
    seconds, as a process that was stopped does. Raises LaneStopped as soon as the lane stops."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while (waited_s := loop.time() - began) < patience_s:
        pause_s = min(_PAUSE_MAX_S, max(_PAUSE_MIN_S, _PAUSE_SHARE * waited_s))
        await lane.sleep(min(pause_s, patience_s - waited_s))
        if leases.try_take(key):
            return True
    return False
