"""What all flights of an engine use, and what they tell of themselves to whoever keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from .attempts.retry import RetryPolicy
from .call import Outcome
from .call_lookup import CallLookup
from .claims import Claims
from .events import Events
from .fault import StopReason
from .keeping import Keeper
from .routes import Routes
from .shared_calls import SharedCall


class FlightParts:
    """The parts of one engine that its flights use. `out` counts the attempts whose answer has not arrived."""

    def __init__(
        self,
        ways: Routes,
        lookup: CallLookup,
        keeper: Keeper,
        claims: Claims,
        policy: RetryPolicy,
        events: Events,
        random: Random,
        halt: Callable[[StopReason, str], None],
    ) -> None:
        self.ways = ways
        self.lookup = lookup
        self.keeper = keeper
        self.claims = claims
        self.policy = policy
        self.events = events
        self.random = random
        self.halt = halt
        self.loop = asyncio.get_running_loop()
        self.out = 0
        self.maybe_billed_pending = 0

    def open_to_all(self, flight: SharedCall) -> bool:
        """Lets identical calls of any payer join a flight that its payer has admitted. Returns False if another payer's
        is under way already; then all waiters have gone over to that one."""
        raise NotImplementedError

    def forget(self, flight: SharedCall) -> None:
        """Forgets a flight that is over."""
        raise NotImplementedError

    def tell(self, flight: SharedCall, end: Outcome | BaseException | None) -> None:
        """Passes the end of a flight to those who wait for it. Who waited at the expense of another payer, or by a lane
        that has stopped while its own has not, begins anew."""
        raise NotImplementedError
