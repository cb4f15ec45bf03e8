"""What a scraper is told, in Prometheus' words: requests, answers, money, waits, and how the lanes stand.

Owns the names of the metrics and a registry of its own, so that several gateways and other programs live in one
process. Callers stand there by their names, never by a token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ...engine.call import Outcome
from ...engine.events import Event, Events
from ...wiring import Engine
from ..dialects.dialect import Problem
from .callers import Caller

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """Counts since the gateway began. `totals` are for its last line."""

    def __init__(self) -> None:
        self.requests = 0
        self.from_cache = 0
        self.failed = 0
        self.sent = 0
        self._registry = CollectorRegistry()
        self._requests = self._counter("requests", "Requests answered", "dialect", "status", "cached", "caller")
        self._refused = self._counter("refused", "Requests that got past no guard", "status")
        self._seconds = Histogram(
            "millstream_request_seconds",
            "From a request's arrival to its answer",
            ("dialect", "cached"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._tokens = self._counter("tokens", "Tokens of calls that were sent", "direction", "caller")
        self._cost = self._counter("cost_dollars", "Cost of calls that were sent", "caller")
        self._calls = self._counter("calls", "What became of calls that had to be sent", "model", "event")
        self._waits = self._counter("wait_seconds", "How long a lane's first call waited for what", "model", "reason")
        self._in_flight = self._gauge("requests_in_flight", "Requests that wait for their answer")
        self._lanes = self._gauge("lane_in_flight", "Calls in flight to a model", "model")
        self._stopped = self._gauge("lane_stopped", "1: nothing more is sent to this model", "model")
        self._callers = self._gauge("caller_in_flight", "Calls in flight of a caller with bounds", "caller")
        self._left = self._gauge("caller_dollars_left", "What is left of a caller's max_cost", "caller")
        self._children: dict[tuple[str, ...], tuple[Counter, Histogram]] = {}

    def watch(self, events: Events) -> Callable[[], None]:
        return events.subscribe(self._hear)

    def refused(self, problem: Problem) -> None:
        self._refused.labels(str(problem.status)).inc()

    def answered(self, dialect: str, caller: Caller, status: int, outcomes: Sequence[Outcome], seconds: float) -> None:
        is_cached = bool(outcomes) and all(outcome.cached for outcome in outcomes)
        name = caller.settings.name
        self.requests += 1
        self.from_cache += is_cached
        self.failed += not outcomes
        labels = (dialect, str(status), "true" if is_cached else "false", name)
        children = self._children.get(labels)
        if children is None:
            children = self._children[labels] = (
                self._requests.labels(*labels),
                self._seconds.labels(dialect, labels[2]),
            )
        children[0].inc()
        children[1].observe(seconds)
        for outcome in outcomes:
            if not outcome.cached:
                self._spent(outcome, name)

    def page(self, engine: Engine, callers: Mapping[str, Caller], under_way: int) -> tuple[bytes, str]:
        self._in_flight.set(under_way)
        for model, route in engine.scheduler.routes.items():
            self._lanes.labels(model).set(route.lane.in_flight)
            self._stopped.labels(model).set(route.lane.stopped is not None)
        for name, caller in callers.items():
            if caller.is_limited:
                self._callers.labels(name).set(caller.in_flight)
            if caller.spending is not None:
                self._left.labels(name).set(caller.spending.left)
        return generate_latest(self._registry), MEDIA_TYPE

    def _counter(self, name: str, told: str, *labels: str) -> Counter:
        return Counter(f"millstream_{name}", told, labels, registry=self._registry)

    def _gauge(self, name: str, told: str, *labels: str) -> Gauge:
        return Gauge(f"millstream_{name}", told, labels, registry=self._registry)

    def _spent(self, outcome: Outcome, name: str) -> None:
        if outcome.cost is not None:
            self._cost.labels(name).inc(outcome.cost)
        if outcome.reply is not None and outcome.reply.usage is not None:
            self._tokens.labels("input", name).inc(outcome.reply.usage.input)
            self._tokens.labels("output", name).inc(outcome.reply.usage.output)

    def _hear(self, event: Event) -> None:
        if event.kind == "cached":
            return  # told by requests
        if event.kind == "waited":
            self._waits.labels(event.lane, event.detail).inc(event.value)
        elif event.kind != "spent":
            self.sent += event.kind == "sent"
            self._calls.labels(event.lane, event.kind).inc()
