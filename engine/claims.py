"""Claims on cache keys: of all engines that share a cache, one at a time sends the call of a key.

Owns how often the others look again. Where leases lie: store/leases.
"""

from __future__ import annotations

from typing import Protocol

from .call_lookup import PendingCall
from .store.leases import KeyLeases

# A pause is this share of the wait so far: an answer is seen late by a quarter of what it took, at most.
_PAUSE_SHARE = 0.25
_PAUSE_MIN_S = 0.02
_PAUSE_MAX_S = 0.5


def look_again_in_s(waited_s: float) -> float:
    """Returns the seconds after which a call whose key another engine has looks again."""
    return min(_PAUSE_MAX_S, max(_PAUSE_MIN_S, _PAUSE_SHARE * waited_s))


class Claimant(Protocol):
    """A call that claims its key; `is_leased`: this engine has the lease of it."""

    pending: PendingCall
    is_leased: bool


class Claims:
    """The claims of one engine's calls. `leases` None: no other engine shares its answers."""

    def __init__(self, leases: KeyLeases | None) -> None:
        self._leases = leases

    def take(self, call: Claimant) -> bool:
        """Claims the key of a call; returns whether it may be sent now."""
        if self._leases is None:
            return True
        call.is_leased = self._leases.try_take(call.pending.key)
        return call.is_leased

    def release(self, call: Claimant) -> None:
        if call.is_leased and self._leases is not None:
            self._leases.release(call.pending.key)
