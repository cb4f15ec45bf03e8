"""The wait for a lease that another engine holds. It holds no place, no quota and no money meanwhile.

Owns how often is looked and when the wait ends. Where leases lie: store/leases; what is sent under one: scheduler.
"""

from __future__ import annotations

import asyncio

from .call import Outcome
from .call_lookup import CallLookup
from .lanes.lane_queue import LaneQueue
from .shared_calls import SharedCall
from .store.leases import KeyLeases

_PAUSE_MIN_S = 0.02
_PAUSE_MAX_S = 0.5
# A pause is this share of the wait so far: an answer is seen late by a quarter of what it took, at most.
_PAUSE_SHARE = 0.25


async def take_lease(leases: KeyLeases, shared: SharedCall, lookup: CallLookup, patience_s: float) -> Outcome | None:
    """Takes the lease of a call's key, once no other engine sends the same call. Returns the outcome that another one
    has stored; None if the call has to be sent. A holder is waited for `patience_s` seconds at the most; after that
    the call is sent without a lease. Raises LaneStopped if the lane stops meanwhile."""
    pending, payer = shared.pending, shared.pending.payer
    shared.is_leased = is_first = leases.try_take(pending.key)
    if not is_first:
        if payer is not None and payer.is_limited:
            payer.end(pending.tokens)
        shared.is_leased = await _wait(leases, pending.key, pending.route.lane, patience_s)
    # Another engine may have sent the call between the first look-up and the lease: it stores, then releases.
    stored = lookup.stored(pending.call, pending.route, pending.key)
    if stored is None and not is_first and payer is not None and payer.is_limited:
        await payer.admit(pending.tokens, pending.reckoned_cost)
    return stored


async def _wait(leases: KeyLeases, key: bytes, lane: LaneQueue, patience_s: float) -> bool:
    """Waits until a lease can be taken and takes it. Returns False if its holder keeps it for `patience_s` seconds, as
    a process does that was stopped."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while (waited_s := loop.time() - began) < patience_s:
        pause_s = min(_PAUSE_MAX_S, max(_PAUSE_MIN_S, _PAUSE_SHARE * waited_s))
        await lane.back_off(min(pause_s, patience_s - waited_s), "lease")
        if leases.try_take(key):
            return True
    return False
