"""The progress of a run in numbers, counted from the engine's events and read at every look.

Owns totals, rates, time left, expected cost and each lane's reasons for waiting. Knows no screen, no words and no
clock: times are passed in. An event costs a few additions; everything else is computed at a look.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import get_args

from msgspec import Struct

from ...engine.attempts.money import CostBudget
from ...engine.call import WEB
from ...engine.events import Event, Kind
from ...engine.lanes.growth import Found
from ...engine.lanes.lane_queue import LaneQueue
from ...engine.pairs import Pair
from ...engine.prices import Price
from ...engine.scheduler import Route
from .bottleneck import CPU_FULL, LAG_FULL_S, LEASE, POLITENESS, RETRY, SHARED, LaneSpan, WaitShare, shares

LOOK_EVERY_S = 0.25
WINDOW_S = 10.0
_LOOKS = round(WINDOW_S / LOOK_EVERY_S)
# A lane is limited by its quota if it waits for it for at least this share of its time.
_QUOTA_SHARE = 0.5
# The share of a declared quota that is used, so that no sliding minute exceeds it.
_QUOTA_USED = 0.987
_DETAILED = frozenset({"failed", "unsent", "retried", "waited"})
# Pages are shown as one lane, whatever their hosts; how many may be under way at once is not known here.
_PAGES_AT_ONCE = 1_000_000
_FREE = Price(0.0, 0.0)


class LaneView(Struct, frozen=True):
    """One lane at one look. `per_s` counts finished calls per second. `stopped`: why it stopped, empty: it has not.
    `lost`: keys that have stopped while others go on. `found`: that of its `LaneQueue`."""

    model: str
    done: int
    per_s: float
    in_flight: int
    concurrency: int
    waits: tuple[WaitShare, ...]
    stopped: str
    lost: tuple[str, ...] = ()
    found: tuple[Found, float] = ("", 0.0)


class RunView(Struct, frozen=True):
    """A run at one look. `expected` (dollars) and `left_s` are None while nothing is known to compute them from;
    `spent` is in dollars, None if no model has a price. `item` is the word for what is counted, empty: calls; `calls`
    are those that ended. Failed pages are counted apart, since a run goes on without them. `scores`: the mean score of
    each pair's answers since the start of this process; `already`: how many were there before. A run that `is_paused`
    waits for nothing else."""

    total: int
    done: int
    elapsed_s: float
    per_s: float
    average_per_s: float
    in_flight: int
    cached: int
    spent: float | None
    expected: float | None
    left_s: float | None
    failures: Mapping[str, int]
    retries: Mapping[str, int]
    throttles: int
    waits: tuple[WaitShare, ...]
    lanes: tuple[LaneView, ...]
    page_failures: Mapping[str, int] = MappingProxyType({})
    item: str = ""
    calls: int = 0
    scores: tuple[tuple[str, float], ...] = ()
    already: int = 0
    is_paused: bool = False


class _Counts:
    """Counts of one lane so far, and its state at the looks of the last seconds."""

    __slots__ = ("failures", "in_flight", "kinds", "latest", "looks", "retries", "spans", "waits")

    def __init__(self, now: float) -> None:
        self.kinds: dict[str, int] = dict.fromkeys(get_args(Kind), 0)
        self.latest = ""
        self.failures: Counter[str] = Counter()
        self.retries: Counter[str] = Counter()
        # Seconds of waits that ended since the last look.
        self.waits: dict[str, float] = {}
        self.spans: deque[dict[str, float]] = deque(maxlen=_LOOKS)
        self.looks: deque[tuple[float, int]] = deque([(now, 0)], maxlen=_LOOKS + 1)
        self.in_flight = 0

    @property
    def done(self) -> int:
        kinds = self.kinds
        return kinds["cached"] + kinds["answered"] + kinds["failed"] + kinds["unsent"]


class RunProgress:
    """The counts of a run of `total` items, `already` of which were done before. Subscribe `hear` to the engine's
    events, then call `look` now and then. With a word for `item`, calls are no items, and each item is counted by
    `item_ended`. `hosts` are the routes to web hosts."""

    def __init__(
        self,
        total: int,
        already: int,
        routes: Mapping[str, Route],
        budget: CostBudget,
        now: float,
        *,
        hosts: Mapping[str, Route] = MappingProxyType({}),
        item: str = "",
    ) -> None:
        self._total = total
        self._already = already
        self._routes = routes
        self._hosts = hosts
        self._item = item
        self._budget = budget
        self._began = self._looked = now
        self._spent_before = budget.spent
        self._lanes: dict[str, _Counts] = {}
        self._fresh: deque[tuple[int, int]] = deque([(0, 0)], maxlen=_LOOKS + 1)
        self._items = 0 if item else None
        self._scores: dict[Pair, list[float]] = {}
        self._item_looks: deque[tuple[float, int]] = deque([(now, 0)], maxlen=_LOOKS + 1)

    def item_ended(self) -> None:
        if self._items is not None:
            self._items += 1

    def scored(self, pair: Pair, score: float) -> None:
        """Adds the score of an answer."""
        sums = self._scores.get(pair)
        if sums is None:
            sums = self._scores[pair] = [0.0, 0.0]
        sums[0] += score
        sums[1] += 1

    def hear(self, event: Event) -> None:
        counts = self._lanes.get(event.lane)
        if counts is None:
            counts = self._lanes[event.lane] = _Counts(self._looked)
        kind = counts.latest = event.kind
        counts.kinds[kind] += 1
        if kind in _DETAILED:
            if event.lane == WEB and kind == "unsent":
                return  # a page that failed before and is needed again
            if kind == "waited":
                counts.waits[event.detail] = counts.waits.get(event.detail, 0.0) + event.value
            else:
                (counts.retries if kind == "retried" else counts.failures)[event.detail] += 1

    def look(self, now: float, cpu_share: float, lag_s: float) -> RunView:
        """Returns the state of the run at `now` seconds. `cpu_share` is our process's share of a core since the last
        look, `lag_s` the delay of this look in seconds."""
        length_s = max(0.0, now - self._looked)
        self._looked = now
        is_cpu_full = cpu_share > CPU_FULL or lag_s > LAG_FULL_S
        for model, counts in self._lanes.items():
            counts.looks.append((now, counts.done))
            if model == WEB:
                self._look_at_pages(counts, length_s, is_cpu_full)
            else:
                self._look_at(counts, self._routes.get(model), length_s, is_cpu_full)
        kinds = [counts.kinds for counts in self._lanes.values()]
        self._fresh.append((sum(one["answered"] for one in kinds), sum(one["cached"] for one in kinds)))
        self._item_looks.append((now, self._calls() if self._items is None else self._items))
        return self.view()

    def _look_at_pages(self, counts: _Counts, length_s: float, is_cpu_full: bool) -> None:
        kinds = counts.kinds
        counts.in_flight = max(0, kinds["sent"] - kinds["answered"] - kinds["failed"] - kinds["retried"])
        held_back = sum(bool(route.lane.waiting_for) for route in self._hosts.values())
        holding = POLITENESS if held_back > counts.in_flight else ""
        counts.spans.append(LaneSpan(length_s, holding, 0.0, counts.in_flight, _PAGES_AT_ONCE, is_cpu_full).waits())

    def _look_at(self, counts: _Counts, route: Route | None, length_s: float, is_cpu_full: bool) -> None:
        kinds = counts.kinds
        in_flight = kinds["sent"] - kinds["answered"] - kinds["failed"] - kinds["retried"]
        ended, counts.waits = counts.waits, {}
        if route is None:
            counts.in_flight = max(0, in_flight)
            return
        lane = route.lane
        # No event reports the end of a cancelled caller: slots in use bound the calls in flight.
        counts.in_flight = max(0, min(in_flight, lane.in_flight))
        span = LaneSpan(
            length_s,
            lane.waiting_for,
            ended.get(RETRY, 0.0),
            counts.in_flight,
            lane.concurrency,
            is_cpu_full or (counts.in_flight == 0 and self._is_all_ours(counts)),
            is_only_retrying=counts.latest == "retried" and lane.in_flight == 0 and lane.stopped is None,
            lease_s=ended.get(LEASE, 0.0),
            shared_s=ended.get(SHARED, 0.0),
        )
        # A pause is a person's wish: it tells nothing on what limits the run.
        counts.spans.append({} if lane.is_paused else span.waits())

    def _is_all_ours(self, counts: _Counts) -> bool:
        """Whether a lane without calls in flight works on answers from the cache, so that it waits for nothing but our
        own process. An item of several calls may wait for another lane."""
        return self._items is None and counts.looks[-1][1] > counts.looks[-2][1]

    def view(self) -> RunView:
        """Returns the state of the run as of the last look, with what was changed since."""
        now = self._looked
        kinds = [counts.kinds for counts in self._lanes.values()]
        cached = sum(one["cached"] for one in kinds)
        answered = sum(one["answered"] for one in kinds)
        calls = self._calls()
        done = calls if self._items is None else self._items
        elapsed_s = now - self._began
        lanes = tuple(self._lane_view(model, counts) for model, counts in self._lanes.items())
        spent = self._spent()
        is_paused = any(route.lane.is_paused for route in self._routes.values())
        but_pages = [counts for name, counts in self._lanes.items() if name != WEB]
        return RunView(
            total=self._total,
            done=self._already + done,
            elapsed_s=elapsed_s,
            per_s=sum(lane.per_s for lane in lanes) if self._items is None else rate_of(self._item_looks),
            average_per_s=done / elapsed_s if elapsed_s > 0 else 0.0,
            in_flight=sum(lane.in_flight for lane in lanes),
            cached=cached,
            spent=spent,
            expected=None if spent is None else self._expected(spent, answered, done),
            left_s=None if is_paused else self._left_s(done, now),
            failures=sum((counts.failures for counts in but_pages), Counter()),
            retries=sum((counts.retries for counts in but_pages), Counter()),
            throttles=sum(one["throttled"] + one["cut"] for one in kinds),
            waits=() if is_paused else shares(span for counts in self._lanes.values() for span in counts.spans),
            lanes=lanes,
            page_failures=dict(self._lanes[WEB].failures) if WEB in self._lanes else {},
            item=self._item,
            calls=calls,
            scores=tuple((str(pair), total / count) for pair, (total, count) in self._scores.items()),
            already=self._already,
            is_paused=is_paused,
        )

    def _calls(self) -> int:
        return sum(counts.done for counts in self._lanes.values())

    def _lane_view(self, model: str, counts: _Counts) -> LaneView:
        route = self._routes.get(model)
        stop = None if route is None else route.lane.stopped
        return LaneView(
            model,
            counts.done,
            rate_of(counts.looks),
            counts.in_flight,
            0 if route is None else route.lane.concurrency,
            () if route is not None and route.lane.is_paused else shares(counts.spans),
            "" if stop is None else stop.reason,
            () if route is None or stop is not None else tuple(key for key, _ in route.lane.stopped_keys),
            ("", 0.0) if route is None or stop is not None else route.lane.found,
        )

    def _spent(self) -> float | None:
        # A free search does not count as a price for models that have none.
        is_priced = any(route.price not in (None, _FREE) for route in self._routes.values())
        return self._budget.spent if is_priced or self._budget.spent > 0 else None

    def _expected(self, spent: float, answered: int, done: int) -> float | None:
        """Returns the expected dollars of the whole run, if the cache answers as often as lately; None: not known."""
        if not done:
            return None
        left = max(0, self._total - self._already - done)
        (answered_then, cached_then), (answered_now, cached_now) = self._fresh[0], self._fresh[-1]
        fresh, stored = answered_now - answered_then, cached_now - cached_then
        if not fresh + stored:
            fresh, stored = answered_now, cached_now
        fresh_share = fresh / max(1, fresh + stored)
        calls = self._calls()
        each = (spent - self._spent_before) / answered if answered else 0.0
        return spent + left * (calls / done) * fresh_share * each

    def _left_s(self, done: int, now: float) -> float | None:
        left = self._total - self._already - done
        if left <= 0:
            return 0.0
        if self._items is not None:
            per_s = rate_of(self._item_looks)
            return left / per_s if per_s > 0 else None
        per_s = sum(
            self._per_s_to_come(counts, self._routes[model].lane, now)
            for model, counts in self._lanes.items()
            if model in self._routes
        )
        return left / per_s if per_s > 0 else None

    @staticmethod
    def _per_s_to_come(counts: _Counts, lane: LaneQueue, now: float) -> float:
        """Returns the expected calls per second of a lane: the present rate, or its quota's if it waits for that."""
        if lane.stopped is not None:
            return 0.0
        seen = rate_of(counts.looks)
        waits = {share.reason: share.share for share in shares(counts.spans)}
        is_at_quota = waits.get("requests", 0.0) + waits.get("tokens", 0.0) >= _QUOTA_SHARE
        if seen > 0 and not is_at_quota:
            return seen
        quota = lane.quota
        requests, used = lane.used(now)
        caps = [] if quota.rpm is None else [quota.rpm]
        for most, tokens in ((quota.tpm, used.total), (quota.itpm, used.input), (quota.otpm, used.output)):
            if most is not None and requests and tokens:
                caps.append(most * requests / tokens)
        return min(caps) * _QUOTA_USED / 60 if caps else seen


def rate_of(looks: Sequence[tuple[float, int]]) -> float:
    """Returns the calls per second between the first and the last look; each has its time and the calls until then."""
    if len(looks) < 2:
        return 0.0
    (began, before), (now, after) = looks[0], looks[-1]
    return (after - before) / (now - began) if now > began else 0.0
