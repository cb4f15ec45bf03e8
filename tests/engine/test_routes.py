"""A route's prices: those of the day, and for a while those of the day before."""

from __future__ import annotations

import pytest

from millstream.engine.attempts.money import CostBudget
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.call import Call, Reply, Usage
from millstream.engine.estimate import TokenEstimate
from millstream.engine.events import Events
from millstream.engine.lane import Lane
from millstream.engine.lanes.key_gate import KeyGate, Permit
from millstream.engine.lanes.lane_queue import LaneQueue
from millstream.engine.lanes.ledger import Ledger
from millstream.engine.limits import DAY_S, declared_quota
from millstream.engine.prices import Price
from millstream.engine.routes import Route

DEAR, CHEAP = Price(2.0, 10.0), Price(1.0, 5.0, tier="flex", tiers={"flex": 0.5})
USAGE = Usage(1_000, 300)
CALL = Call("a/b", "x", max_tokens=300)


class Days:
    """A lane whose price is that of the list on each day from 0 on, and its budget."""

    def __init__(self, prices: list[Price | None]) -> None:
        self.now = 0.0
        self._prices = prices
        self.budget, lane, policy = CostBudget(), Lane("a/b"), RetryPolicy()
        ledger = Ledger(declared_quota(lane))
        self._key = KeyGate(lane, ledger=ledger, budget=self.budget, policy=policy, events=Events())
        group = LaneQueue([self._key])
        self.route = Route((), group, prices[0], TokenEstimate(), prices_on=self._on, clock=lambda: self.now)

    def _on(self, day: float, other: float) -> tuple[Price | None, ...]:
        prices = self._prices[int(day)], self._prices[int(other)]
        return prices if prices[0] != prices[1] else prices[:1]

    def cost_at(self, now: float, usage: Usage | None = USAGE) -> float | None:
        self.now = now
        permit = self._key.try_take(0.0)
        assert isinstance(permit, Permit)
        return self.route.settle(permit, CALL, 1, Reply("A", usage))


@pytest.mark.parametrize(("before", "after"), [(DEAR, CHEAP), (CHEAP, DEAR), (None, CHEAP), (CHEAP, None)])
def test_an_answer_in_the_first_hour_of_a_day_is_billed_at_the_dearer_of_both_days_prices(
    before: Price | None, after: Price | None
) -> None:
    days = Days([before, after, after])
    first, last = (None if price is None else price.of_usage(USAGE, 1.0) for price in (before, after))
    dearer = max(cost for cost in (first, last) if cost is not None)
    costs = [days.cost_at(DAY_S + second) for second in (-1.0, 0.0, 3_599.0, 3_600.0)]
    assert costs == [first, dearer, dearer, last]


def test_what_an_answer_leaves_out_is_judged_by_the_price_at_which_it_is_billed() -> None:
    days = Days([CHEAP, DEAR, CHEAP])
    # The cheap price is that of a tier, which this answer does not name.
    days.cost_at(DAY_S + 7_200.0)
    assert days.budget.at_worst == 0.0
    days.cost_at(2 * DAY_S + 60.0)
    assert days.budget.at_worst == 0.0
    days.cost_at(2 * DAY_S + 7_200.0)
    assert days.budget.at_worst == CHEAP.of_usage(USAGE, 1.0)
