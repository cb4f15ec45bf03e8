"""The live display of a load test: looks at what was measured twice a second.

Its work in the loop that measures delays the test itself, so a look may cost some tenths of a millisecond, and a call
some hundreds of nanoseconds.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TextIO

import numpy as np

from ...bench.load.arrivals import rate_at
from ...bench.load.session import LoadSession
from ...bench.load.timing import CallTimes
from .load_lines import LoadView, ModelView, Percentiles, plain_lines, screen_lines
from .painter import Painter
from .run_progress import rate_of

LOOK_EVERY_S = 0.5
LATELY_S = 5.0
# The number of latest answers whose times are shown; if the last seconds had more, these are the newest.
_RING = 2_048


class _ModelTally:
    """Counts and latest times of one model's calls."""

    def __init__(self) -> None:
        self.ended = 0
        self.errors: Counter[str] = Counter()
        # When each ended, its latency, and its first token.
        self.ring = np.full((3, _RING), np.nan)
        # When it was looked at, and the calls begun until then.
        self.looks: deque[tuple[float, int]] = deque(maxlen=round(LATELY_S / LOOK_EVERY_S) + 1)

    def take(self, timed: CallTimes) -> None:
        self.ended += 1
        if not timed.is_answered:
            self.errors[timed.status] += 1
            return
        first = timed.first_token_s
        self.ring[:, self.ended % _RING] = timed.ended, timed.latency_s, np.nan if first is None else first

    def lately(self, now: float) -> tuple[Percentiles | None, Percentiles | None]:
        """Returns latency and first token of the last seconds."""
        fresh = self.ring[:, self.ring[0] >= now - LATELY_S]
        return _quick(fresh[1]), _quick(fresh[2])


def _quick(times: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Percentiles | None:
    numbers = times[~np.isnan(times)]
    if not numbers.size:
        return None
    p50, p99 = np.quantile(numbers, (0.5, 0.99))
    return Percentiles(float(p50), float(p99))


class LoadDisplay:
    """The live display of a load test. `stream` None: shows nothing."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._tallies: dict[str, _ModelTally] = {}

    @contextmanager
    def showing(self, session: LoadSession) -> Iterator[None]:
        """Shows the test from the first call to the last, and leaves the stream clean."""
        if self._stream is None:
            yield
            return
        self._tallies = {model: _ModelTally() for model in session.spec.models}
        session.on_end.append(self._note)
        painter = Painter(self._stream)
        task = asyncio.create_task(self._show(session, painter), name="load display")
        try:
            yield
        finally:
            task.cancel()
            view = self._view(session)
            painter.end(partial(screen_lines, view, is_last=True), partial(plain_lines, view))

    def _note(self, model: str, timed: CallTimes, step: int, *, measured: bool) -> None:
        self._tallies[model].take(timed)

    async def _show(self, session: LoadSession, painter: Painter) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            now = session.since()
            for model, tally in self._tallies.items():
                tally.looks.append((now, _begun(session, model)))
            if painter.is_due(now):
                view = self._view(session)
                painter.show(partial(screen_lines, view), partial(plain_lines, view), now)

    def _view(self, session: LoadSession) -> LoadView:
        spec, now = session.spec, session.since()
        of_s = spec.plan.ends_s if spec.search is None else None
        reasons = (run.verdict(model).reasons for model, run in session.under_way.items())
        return LoadView(
            elapsed_s=now,
            calls=sum(_begun(session, model) for model in spec.models),
            models=tuple(self._model_view(session, model, now) for model in spec.models),
            of_s=of_s,
            of_calls=spec.plan.limits.calls if spec.search is None else None,
            spent=session.money.spent if any(map(session.is_priced, spec.models)) else None,
            cap=spec.plan.limits.max_cost,
            client=next((reason for each in reasons for reason in each), ""),
            is_draining=session.ending is not None or (of_s is not None and now > of_s),
        )

    def _model_view(self, session: LoadSession, model: str, now: float) -> ModelView:
        tally, run = self._tallies[model], session.under_way.get(model)
        latency, first_token = tally.lately(now)
        return ModelView(
            model=model,
            asked=None if session.ending is not None or run is None else rate_at(run.plan.arrivals, now - run.begins_s),
            sent=rate_of(tally.looks),
            in_flight=_begun(session, model) - tally.ended,
            ended=tally.ended,
            errors=tally.errors,
            latency=latency,
            first_token=first_token,
            step=session.standings.get(model, ""),
        )


def _begun(session: LoadSession, model: str) -> int:
    """Returns the calls begun until now, in the runs that have ended and in the present one."""
    run = session.under_way.get(model)
    return session.wholes[model].measured.begun + (0 if run is None else run.models[model].begun)
