"""The live display of a load test: collects its figures and looks at them twice a second.

Its work in the loop that measures delays the test itself, so a look may cost some tenths of a millisecond, and a call
some hundreds of nanoseconds.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TextIO

import numpy as np

from ...bench.load.arrivals import rate_at
from ...bench.load.histogram import Histogram
from ...bench.load.plan import LoadPlan
from ...bench.load.run import ModelRun
from ...bench.load.session import LoadSession
from ...bench.load.timing import CallTimes
from ...bench.load.watch import CPU_MOST, TIMER_S, allowed_error_s
from ...format import measured_time
from .load_lines import AnswerTimes, LoadView, ModelView, Percentiles, plain_lines, screen_lines
from .painter import Painter

LOOK_EVERY_S = 0.5
LATELY_S = 5.0
_SAMPLE_S = 0.05
_CPU_OVER_S = 1.0
# The number of latest answers whose times are shown; if the last seconds had more, these are the newest.
_RING = 2_048
_LAGS = round(LATELY_S / _SAMPLE_S)


class _ModelTally:
    """Counts and latest times of one model's calls."""

    def __init__(self) -> None:
        self.measured: ModelRun | None = None
        self.plan: LoadPlan | None = None
        self.begins_s = 0.0
        self.begun = 0
        self.ended = 0
        self.errors: Counter[str] = Counter()
        # When each ended, its latency, and its first token.
        self.ring = np.full((3, _RING), np.nan)
        self.so_far = AnswerTimes()
        self.looks: deque[tuple[float, int]] = deque(maxlen=round(LATELY_S / LOOK_EVERY_S) + 1)

    def take(self, timed: CallTimes, begins_s: float) -> None:
        self.ended += 1
        if not timed.is_answered:
            self.errors[timed.status] += 1
            return
        place = self.ended % _RING
        first = timed.first_token_s
        self.ring[0, place] = begins_s + timed.ended
        self.ring[1, place] = timed.latency_s
        self.ring[2, place] = np.nan if first is None else first

    def lately(self, now: float) -> AnswerTimes:
        fresh = self.ring[:, self.ring[0] >= now - LATELY_S]
        return AnswerTimes(_quick(fresh[1]), _quick(fresh[2]))

    def read(self) -> Iterator[None]:
        """Reads the percentiles from the meters; each `yield` is a pause in which other tasks may run."""
        if self.measured is not None:
            meter = self.measured.meter
            latency = _both(meter.latency)
            yield
            self.so_far = AnswerTimes(latency, _both(meter.first_token))

    def look(self, now: float) -> None:
        self.looks.append((now, self.begun))

    def sent_per_s(self) -> float:
        if not self.looks:
            return 0.0
        (began, before), (last, after) = self.looks[0], self.looks[-1]
        return (after - before) / (last - began) if last > began else 0.0


def _quick(times: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Percentiles | None:
    numbers = times[~np.isnan(times)]
    if not numbers.size:
        return None
    p50, p99 = np.quantile(numbers, (0.5, 0.99))
    return Percentiles(float(p50), float(p99))


def _both(histogram: Histogram) -> Percentiles | None:
    p50, p99 = histogram.percentile(50), histogram.percentile(99)
    return None if p50 is None or p99 is None else Percentiles(p50.value_s, p99.value_s)


class LoadDisplay:
    """The live display of a load test, which calls it at each event. `stream` None: shows nothing."""

    def __init__(self, stream: TextIO | None, *, cpu: Callable[[], float] = time.process_time) -> None:
        self._stream = stream
        self._cpu = cpu
        self._seen: dict[str, _ModelTally] = {}
        self._spent = 0.0
        self._lags: deque[float] = deque(maxlen=_LAGS)
        self._cpu_marks: deque[tuple[float, float]] = deque(maxlen=round(_CPU_OVER_S / _SAMPLE_S) + 1)

    # What is seen

    def run_opened(self, plan: LoadPlan, models: Mapping[str, ModelRun], begins_s: float) -> None:
        for model, measured in models.items():
            seen = self._of(model)
            seen.measured, seen.plan, seen.begins_s = measured, plan, begins_s

    def call_began(self, model: str) -> None:
        self._of(model).begun += 1

    def call_ended(
        self, model: str, timed: CallTimes, step: int, begins_s: float, cost: float, *, measured: bool
    ) -> None:
        self._spent += cost
        self._of(model).take(timed, begins_s)

    def _of(self, model: str) -> _ModelTally:
        seen = self._seen.get(model)
        if seen is None:
            seen = self._seen[model] = _ModelTally()
        return seen

    # What is shown

    @contextmanager
    def showing(self, session: LoadSession) -> Iterator[None]:
        """Shows the test from the first call to the last, and leaves the stream clean."""
        if self._stream is None:
            yield
            return
        painter = Painter(self._stream)
        task = asyncio.create_task(self._show(session, painter), name="load display")
        try:
            yield
        finally:
            task.cancel()
            self._end(session, painter)

    async def _show(self, session: LoadSession, painter: Painter) -> None:
        next_look = 0.0
        while True:
            now = await self._sample(session)
            if now < next_look:
                continue
            next_look = now + LOOK_EVERY_S
            for seen in self._seen.values():
                seen.look(now)
            if painter.is_due(now):
                view = await self._look(session)
                painter.show(partial(screen_lines, view), partial(plain_lines, view), now)

    async def _sample(self, session: LoadSession) -> float:
        began = session.since()
        await asyncio.sleep(_SAMPLE_S)
        now = session.since()
        self._lags.append(max(0.0, now - began - _SAMPLE_S))
        self._cpu_marks.append((now, self._cpu()))
        return now

    async def _look(self, session: LoadSession) -> LoadView:
        """Returns the view, made model by model, with pauses for the loop in between."""
        models = []
        for model in session.spec.models:
            for _ in self._of(model).read():
                await asyncio.sleep(0)
            models.append(self._model_view(session, model))
            await asyncio.sleep(0)
        return self._view(session, tuple(models))

    def _model_view(self, session: LoadSession, model: str) -> ModelView:
        seen, now = self._of(model), session.since()
        plan = seen.plan
        is_over = session.ending is not None or plan is None
        return ModelView(
            model=model,
            asked=None if is_over or plan is None else rate_at(plan.arrivals, now - seen.begins_s),
            sent=seen.sent_per_s(),
            in_flight=seen.begun - seen.ended,
            ended=seen.ended,
            errors=seen.errors,
            lately=seen.lately(now),
            so_far=seen.so_far,
            step=session.standings.get(model, ""),
        )

    def _view(self, session: LoadSession, models: tuple[ModelView, ...]) -> LoadView:
        plan, now = session.spec.plan, session.since()
        is_search = session.spec.goal is not None
        of_s = None if is_search else plan.ends_s
        is_draining = session.ending is not None or (of_s is not None and now > of_s)
        is_priced = any(session.is_priced(model) for model in session.spec.models)
        return LoadView(
            elapsed_s=now,
            calls=sum(seen.begun for seen in self._seen.values()),
            models=models,
            of_s=of_s,
            of_calls=None if is_search else plan.limits.calls,
            spent=self._spent if is_priced else None,
            cap=plan.limits.max_cost,
            client=self._client(models),
            is_draining=is_draining,
        )

    def _client(self, models: tuple[ModelView, ...]) -> str:
        """Returns why the client is the bottleneck now, measured as for the verdict at the end; empty: it is not."""
        if len(self._cpu_marks) > 1:
            (began, before), (now, after) = self._cpu_marks[0], self._cpu_marks[-1]
            if now > began and (after - before) / (now - began) > CPU_MOST:
                return f"this process takes {(after - before) / (now - began):.0%} of a core"
        medians = [model.lately.latency.p50_s for model in models if model.lately.latency is not None]
        if len(self._lags) == _LAGS and medians:
            lag_s = sorted(self._lags)[_LAGS * 9 // 10]
            if lag_s > TIMER_S + allowed_error_s(min(medians)):
                return f"its loop lags by {measured_time(lag_s)}"
        return ""

    def _end(self, session: LoadSession, painter: Painter) -> None:
        for seen in self._seen.values():
            deque(seen.read(), maxlen=0)
        view = self._view(session, tuple(self._model_view(session, model) for model in session.spec.models))
        painter.end(partial(screen_lines, view, is_last=True), partial(plain_lines, view))
