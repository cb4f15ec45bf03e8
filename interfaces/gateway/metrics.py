"""The gateway's Prometheus metrics: requests, answers, money, waits, and the state of lanes and callers.

Owns the names of the metrics and a registry of its own, so that several gateways and other programs live in one
process. Counts are plain numbers until they are read. Callers appear by name, never by token.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ...engine.call import Outcome
from ...engine.events import Event, Events
from ...engine.scheduler import Route
from ...providers.llm.serve_dialect import Problem
from ...wiring import Settings
from .callers import Caller

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_Labels: TypeAlias = tuple[str, ...]
# How many undeclared models without a price have series of their own, once they have answered.
UNDECLARED_SHOWN = 64
OTHER = "other"


class _Durations:
    """A histogram of durations: one more bucket than there are bounds, and their sum in seconds."""

    def __init__(self) -> None:
        self.buckets = [0] * (len(_SECONDS) + 1)
        self.sum_s = 0.0

    def add(self, seconds: float) -> None:
        self.buckets[bisect_left(_SECONDS, seconds)] += 1
        self.sum_s += seconds


class Metrics(Collector):
    """Counts since the gateway began. The public attributes are for the summary at its end and for its page; `unpriced`
    are calls that were sent and whose price is not known, `sent_to` and `cost_of` count calls and dollars by model."""

    def __init__(
        self,
        settings: Settings,
        routes: Mapping[str, Route],
        callers: Mapping[str, Caller],
        under_way: Callable[[], int],
    ) -> None:
        self.requests = 0
        self.from_cache = 0
        self.failed = 0
        self.sent = 0
        self.unpriced = 0
        self.sent_to: Counter[str] = Counter()
        self.cost_of: dict[str, float] = {}
        self._under_way = under_way
        self._routes = routes
        self._callers = callers
        self._requests: Counter[_Labels] = Counter()
        self._durations: dict[_Labels, _Durations] = {}
        self._refused: Counter[_Labels] = Counter()
        self._calls: Counter[_Labels] = Counter()
        self._waits: dict[_Labels, float] = {}
        self._named = {lane.model for lane in settings.lanes} | settings.price_table().models.keys()
        self._named_max = len(self._named) + UNDECLARED_SHOWN
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def watch(self, events: Events) -> Callable[[], None]:
        return events.subscribe(self._hear)

    def refused(self, problem: Problem) -> None:
        self._refused[(str(problem.status),)] += 1

    def answered(self, dialect: str, caller: Caller, status: int, outcomes: Sequence[Outcome], seconds: float) -> None:
        """Counts one request that has ended after `seconds`; empty `outcomes`: it has no answer."""
        is_cached = bool(outcomes) and all(outcome.cached for outcome in outcomes)
        self.requests += 1
        self.from_cache += is_cached
        self.failed += not outcomes
        cached, name = "true" if is_cached else "false", caller.settings.name
        self._requests[dialect, str(status), cached, name] += 1
        durations = self._durations.get((dialect, cached))
        if durations is None:
            durations = self._durations[dialect, cached] = _Durations()
        durations.add(seconds)

    def tokens_of(self, model: str, direction: str) -> int:
        """Returns the tokens of the calls that were sent to a model, `input` or `output`."""
        return sum(caller.tokens[direction, model] for caller in self._callers.values())

    def page(self) -> tuple[bytes, str]:
        return generate_latest(self._registry), MEDIA_TYPE

    def collect(self) -> Iterable[Metric]:
        yield _counter("requests", "Requests", ("dialect", "status", "cached", "caller"), self._requests)
        yield _counter("refused", "Requests that got past no guard", ("status",), self._refused)
        yield self._histogram()
        callers = self._callers
        tokens: Counter[_Labels] = Counter()
        for name, caller in callers.items():
            for (direction, _), count in caller.tokens.items():
                tokens[direction, name] += count
        yield _counter("tokens", "Tokens of calls that were sent", ("direction", "caller"), tokens)
        # At the expense of who pays, even if another caller gets the answer.
        cost: dict[_Labels, float] = {(name,): caller.spent for name, caller in callers.items() if caller.spent}
        yield _counter("cost_dollars", "Cost of calls that were sent", ("caller",), cost)
        yield _counter("calls", "What became of calls that had to be sent", ("model", "event"), self._calls)
        yield _counter("wait_seconds", "How long a lane's first call waited", ("model", "reason"), self._waits)
        yield _gauge("requests_in_flight", "Requests that wait for their answer", (), {(): self._under_way()})
        in_flight: Counter[_Labels] = Counter()
        stopped: Counter[_Labels] = Counter()
        for model, route in self._routes.items():
            in_flight[(self._name(model),)] += route.lane.in_flight
            stopped[(self._name(model),)] += route.lane.stopped is not None
        yield _gauge("lane_in_flight", "Calls in flight to a model", ("model",), in_flight)
        yield _gauge(
            "lane_stopped", "1: nothing more is sent to this model; of other: to how many", ("model",), stopped
        )
        bound: dict[_Labels, float] = {
            (name,): caller.in_flight for name, caller in callers.items() if caller.is_limited
        }
        yield _gauge("caller_in_flight", "Calls in flight of a caller with bounds", ("caller",), bound)
        budgets = ((name, caller.budget) for name, caller in callers.items())
        left: dict[_Labels, float] = {(name,): budget.left for name, budget in budgets if budget is not None}
        yield _gauge("caller_dollars_left", "What is left of a caller's max_cost", ("caller",), left)

    def _histogram(self) -> HistogramMetricFamily:
        text = "From a request's arrival to its answer"
        family = HistogramMetricFamily("millstream_request_seconds", text, labels=("dialect", "cached"))
        bounds = [*(f"{bound:g}" for bound in _SECONDS), "+Inf"]
        for labels, durations in self._durations.items():
            buckets = list(zip(bounds, map(float, accumulate(durations.buckets)), strict=True))
            family.add_metric(labels, buckets, durations.sum_s)
        return family

    def _hear(self, event: Event) -> None:
        if event.kind == "answered" and len(self._named) < self._named_max:
            self._named.add(event.lane)
        if event.kind == "waited":
            labels = (self._name(event.lane), event.detail)
            self._waits[labels] = self._waits.get(labels, 0.0) + event.value
        elif event.kind == "spent":
            self.cost_of[event.lane] = self.cost_of.get(event.lane, 0.0) + event.value
        elif event.kind != "cached":
            if event.kind == "sent":
                self.sent += 1
                self.sent_to[event.lane] += 1
                route = self._routes.get(event.lane)
                self.unpriced += route is not None and route.price is None
            self._calls[self._name(event.lane), event.kind] += 1

    def _name(self, model: str) -> str:
        """Returns the model as a label; `other` for undeclared models beyond the bound, since series stay for good."""
        return model if model in self._named else OTHER


def _counter(name: str, text: str, labels: _Labels, amounts: Mapping[_Labels, float]) -> CounterMetricFamily:
    family = CounterMetricFamily(f"millstream_{name}", text, labels=labels)
    for values, amount in amounts.items():
        family.add_metric(values, amount)
    return family


def _gauge(name: str, text: str, labels: _Labels, amounts: Mapping[_Labels, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"millstream_{name}", text, labels=labels)
    for values, amount in amounts.items():
        family.add_metric(values, amount)
    return family
