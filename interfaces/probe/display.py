"""What a probe is finding out, as it goes on: a line that changes on a terminal, lines one after the other in a log.

Owns the words and the stream. Knows no quota; what was found at the end: writing.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from typing import TextIO

from ...bench.load.probe.run import calls
from ...bench.load.probe.steps import SMALL, Seen
from ..output import cut, inert

_TOLD_FROM_S = 1.0
_WIDTH_MIN = 20
_DETAIL_MAX = 160
_CLEAR = "\r\x1b[K"


class Display:
    """Watches a probe. `spent` gives its calls and dollars so far (None: not known). `stream` None: shows nothing and
    still counts. `at_once`: the most calls of each model that were admitted together."""

    def __init__(self, stream: TextIO | None, spent: Callable[[], tuple[int, float | None]]) -> None:
        self._stream = stream
        self._spent = spent
        self._is_screen = stream is not None and _can_redraw(stream)
        self._model = ""
        self._shown = ""
        self._until: float | None = None
        self._why = ""
        self._timer: asyncio.TimerHandle | None = None
        self.at_once: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<Display [{self._shown or 'nothing shown'}]>"

    def begins(self, model: str) -> None:
        self._model = model
        self._show("begins with one call")

    def got(self, model: str, seen: Sequence[Seen], unsent: int) -> None:
        admitted = sum(one.is_admitted for one in seen)
        self.at_once[model] = max(self.at_once.get(model, 0), admitted)
        self._show(round_line(seen, unsent))

    def waits(self, model: str, seconds: float, *, is_at_end: bool) -> None:
        if seconds < _TOLD_FROM_S:
            return
        self._why = ", until what was used has come back" if is_at_end else ""
        if self._is_screen:
            self._until = asyncio.get_running_loop().time() + seconds
            self._tick()
        else:
            self._show(f"waits {seconds:,.0f} s{self._why}")

    def close(self) -> None:
        """Leave the stream clean: others write to it now."""
        self._stop_counting()
        if self._is_screen:
            self._write(_CLEAR)
        self._stream = None

    def _tick(self) -> None:
        """A wait that counts down."""
        loop = asyncio.get_running_loop()
        left_s = (self._until or 0.0) - loop.time()
        if self._until is None or left_s < 0:
            return
        self._paint(f"waits {left_s:,.0f} s{self._why}")
        self._timer = loop.call_later(1.0, self._tick)

    def _stop_counting(self) -> None:
        self._until = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _show(self, text: str) -> None:
        self._stop_counting()
        self._paint(text)

    def _paint(self, text: str) -> None:
        count, cost = self._spent()
        so_far = calls(count) if cost is None else f"{calls(count)}, ${cost:.4f}"
        self._shown = inert(f"{self._model}: {text} ({so_far})")
        if self._is_screen:
            width = max(_WIDTH_MIN, shutil.get_terminal_size().columns - 1)
            self._write(f"{_CLEAR}{cut(self._shown, width)}")
        else:
            self._write(f"{self._shown}\n")

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        encoding = self._stream.encoding or "utf-8"
        try:
            self._stream.write(text.encode(encoding, "replace").decode(encoding))
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None  # whoever read it is gone; what is found is worth more


def round_line(seen: Sequence[Seen], unsent: int) -> str:
    """`a burst of 40: 37 admitted, 1 refused, 2 not sent any more`."""
    size = max(one.size for one in seen)
    count = len(seen) + unsent
    what = "1 call" if count == 1 else f"a burst of {count:,}"
    of = f" of {size:,} tokens" + (" each" if count > 1 else "") if size > SMALL else ""
    counted = (
        (sum(one.is_admitted for one in seen), "admitted"),
        (sum(one.is_refused for one in seen), "refused"),
        (sum(one.answer.verdict == "failed" for one in seen), "failed"),
        (unsent, "not sent any more"),
    )
    told = [f"{number:,} {word}" if count > 1 else word for number, word in counted if number]
    waits = [one.answer.retry_after_s for one in seen if one.answer.retry_after_s is not None]
    told += [f"told to wait {max(waits):,.3g} s"] if waits else []
    told += [cut(one.answer.detail, _DETAIL_MAX) for one in seen if one.answer.verdict == "failed"][:1]
    return f"{what}{of}: {', '.join(told)}"


def _can_redraw(stream: TextIO) -> bool:
    if not stream.isatty():
        return False
    from rich.console import Console

    return not Console(file=stream).is_dumb_terminal
