"""The display of a probe: a line that changes on a terminal, lines one after the other in a log.

Owns the words. Knows no quota; what was found at the end: bench/probe/lanes_file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TextIO

from ...bench.probe.answers import SMALL, Answer
from ...bench.probe.calls import Watcher
from ...bench.probe.caps import MINUTES
from ...format import clock, count_text, dollars
from ...report.text import cut, inert
from .painter import Painter, TextPiece, packed

_TOLD_FROM_S = 1.0
_DETAIL_MAX = 160


class ProbeDisplay(Watcher):
    """The display of a probe, with the time of each model so far. `spent` returns its calls and dollars (None: not
    known). `stream` None: shows nothing."""

    def __init__(self, stream: TextIO | None, spent: Callable[[], tuple[int, float | None]]) -> None:
        self._painter = Painter(stream)
        self._spent = spent
        self._model = ""
        self._line = ""
        self._began = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<ProbeDisplay [{self._line or 'nothing shown'}]>"

    def begins(self, model: str) -> None:
        self._model = model
        self._began = asyncio.get_running_loop().time()
        self._show("begins with one call")

    def got(self, model: str, seen: Sequence[Answer], unsent: int) -> None:
        self._show(round_line(seen, unsent))

    def waits(self, model: str, seconds: float) -> None:
        if seconds < _TOLD_FROM_S:
            return
        if self._painter.is_screen:
            self._stop_counting()
            self._tick(asyncio.get_running_loop().time() + seconds)
        else:
            self._show(f"waits {seconds:,.0f} s")

    def close(self) -> None:
        """Removes the line and leaves the stream to others."""
        self._stop_counting()
        self._painter.close()

    def _tick(self, until: float) -> None:
        """Shows the seconds that are left of a wait, and again each second."""
        loop = asyncio.get_running_loop()
        if (left_s := until - loop.time()) >= 0:
            self._paint(f"waits {left_s:,.0f} s")
            self._timer = loop.call_later(1.0, self._tick, until)

    def _stop_counting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _show(self, text: str) -> None:
        self._stop_counting()
        self._paint(text)

    def _paint(self, text: str) -> None:
        count, cost = self._spent()
        so_far = count_text(count, "call") if cost is None else f"{count_text(count, 'call')}, {dollars(cost)}"
        passed = clock(asyncio.get_running_loop().time() - self._began)
        so_far = f"{so_far}, {passed} of usually {MINUTES} min"
        self._line = inert(f"{self._model}: {text} ({so_far})")
        if self._painter.is_screen:
            self._painter.paint(lambda width: packed([TextPiece(self._line)], width))
        else:
            self._painter.log([self._line])


def round_line(seen: Sequence[Answer], unsent: int) -> str:
    """Returns one round in words: `a burst of 40: 37 admitted, 1 refused, 2 not sent any more`."""
    size = max(one.size for one in seen)
    count = len(seen) + unsent
    what = "1 call" if count == 1 else f"a burst of {count:,}"
    of = f" of {size:,} tokens" + (" each" if count > 1 else "") if size > SMALL else ""
    counted = (
        (sum(one.is_admitted for one in seen), "admitted"),
        (sum(one.is_refused for one in seen), "refused"),
        (sum(one.is_failed for one in seen), "failed"),
        (unsent, "not sent any more"),
    )
    parts = [f"{number:,} {word}" if count > 1 else word for number, word in counted if number]
    waits = [one.retry_after_s for one in seen if one.retry_after_s is not None]
    parts += [f"told to wait {max(waits):,.3g} s"] if waits else []
    parts += [cut(one.detail, _DETAIL_MAX) for one in seen if one.is_failed][:1]
    return f"{what}{of}: {', '.join(parts)}"
