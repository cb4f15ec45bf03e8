"""Progress while a run goes on: a few lines that change on a terminal, a line now and then in a log.

Owns the stream and the rhythm. A timer of the running loop looks and paints, so that no thread competes with the
run; the cursor is never hidden, so that no end of the process leaves a terminal without one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol, Self, TextIO

from ..engine.events import Events
from ..engine.money import Purse
from ..engine.scheduler import Scheduler
from .headway import LOOK_EVERY_S, Headway, View
from .progress_lines import Line, Tone, last_line, plain_line, screen_lines

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

Style = Literal["auto", "rich", "plain", "none"]
STYLES: tuple[Style, ...] = ("auto", "rich", "plain", "none")

PLAIN_FIRST_S = 2.0
PLAIN_EVERY_S = 10.0
WIDTH_MIN = 20

_STYLES: dict[Tone, str] = {
    "plain": "",
    "strong": "bold",
    "good": "green",
    "bad": "red",
    "faint": "bright_black",
}
# For terminals whose encoding has no better signs.
_ASCII = str.maketrans("━─…", "=-~")


class Watched(Protocol):
    """What progress asks of an engine."""

    @property
    def scheduler(self) -> Scheduler: ...

    @property
    def events(self) -> Events: ...

    @property
    def purse(self) -> Purse: ...


class Progress:
    """Shows an engine's run of `total` items, `already` of which were done before it. Start it inside the running
    loop, while the engine is open. `item`: what is counted, where that is not a call. `auto` is `rich` on a terminal
    that can move its cursor, else `plain`."""

    def __init__(
        self,
        engine: Watched,
        total: int,
        already: int,
        *,
        stream: TextIO,
        style: Style = "auto",
        item: str = "",
        cpu_s: Callable[[], float] = time.process_time,
    ) -> None:
        if style not in STYLES:
            raise ValueError(f"style {style!r} is none of {', '.join(STYLES)}")
        self._engine = engine
        self._total = total
        self._already = already
        self._stream = stream
        self._style = style
        self._item = item
        self._cpu_s = cpu_s
        self._headway: Headway | None = None
        self._painter: _Screen | _Log | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._due = self._looked = self._cpu_before = 0.0

    def __repr__(self) -> str:
        return f"<Progress [{self._style}, {'shown' if self._headway is not None else 'not shown'}]>"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        if self._style == "none" or self._headway is not None:
            return
        now = asyncio.get_running_loop().time()
        scheduler, purse = self._engine.scheduler, self._engine.purse
        self._headway = Headway(
            self._total, self._already, scheduler.routes, purse, now, hosts=scheduler.hosts, item=self._item
        )
        self._unsubscribe = self._engine.events.subscribe(self._headway.hear)
        is_screen = self._style == "rich" or (self._style == "auto" and _can_move_cursor(self._stream))
        self._painter = _Screen(self._stream, is_forced=self._style == "rich") if is_screen else _Log(self._stream, now)
        self._looked, self._cpu_before = now, self._cpu_s()
        self._wait(now)

    def item_ended(self) -> None:
        """One more is done of a run that counts items, since each takes several calls."""
        if self._headway is not None:
            self._headway.item_ended()

    def stop(self) -> None:
        """Paint the last state and leave the stream clean. Safe to call twice."""
        headway, painter = self._headway, self._painter
        self._headway = self._painter = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        if headway is not None and painter is not None:
            painter.end(self._look(headway, 0.0))

    def _wait(self, now: float) -> None:
        self._due = now + LOOK_EVERY_S
        self._timer = asyncio.get_running_loop().call_at(self._due, self._tick)

    def _tick(self) -> None:
        headway, painter = self._headway, self._painter
        if headway is None or painter is None:
            return
        now = asyncio.get_running_loop().time()
        painter.paint(self._look(headway, now - self._due), now)
        self._wait(now)

    def _look(self, headway: Headway, lag_s: float) -> View:
        now, cpu_s = asyncio.get_running_loop().time(), self._cpu_s()
        passed_s = now - self._looked
        # Over a few milliseconds the clock's grain says more than the process does.
        cpu_share = (cpu_s - self._cpu_before) / passed_s if passed_s > LOOK_EVERY_S / 10 else 0.0
        self._looked, self._cpu_before = now, cpu_s
        return headway.look(now, cpu_share, lag_s)


class _Log:
    """A line now and then."""

    def __init__(self, stream: TextIO, now: float) -> None:
        self._stream = stream
        self._next = now + PLAIN_FIRST_S

    def paint(self, view: View, now: float) -> None:
        if now >= self._next:
            self._next = now + PLAIN_EVERY_S
            self._write(plain_line(view))

    def end(self, view: View) -> None:
        self._write(last_line(view))

    def _write(self, line: str) -> None:
        try:
            print(line, file=self._stream, flush=True)
        except OSError:
            # Whoever read the log is gone; the run is worth more than its progress.
            self._next = float("inf")


class _Screen:
    """Lines that are painted over."""

    def __init__(self, stream: TextIO, *, is_forced: bool) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(file=stream, force_terminal=True if is_forced else None, highlight=False)
        # What others print to stderr goes above the lines; stdout holds results and is nobody's to redirect.
        self._live: Live | None = Live(
            console=self._console,
            auto_refresh=False,
            redirect_stdout=False,
            vertical_overflow="crop",
        )
        self._live.start()
        self._console.show_cursor(True)

    def paint(self, view: View, now: float) -> None:
        if self._live is not None:
            try:
                self._live.update(self._text(view), refresh=True)
            except OSError:
                self._live = None  # the terminal is gone

    def end(self, view: View) -> None:
        if self._live is not None:
            try:
                self._live.update(self._text(view, is_last=True), refresh=False)
                self._live.stop()
            except OSError:
                self._live = None

    def _text(self, view: View, *, is_last: bool = False) -> Text:
        lines = screen_lines(view, max(WIDTH_MIN, self._console.width - 1), is_last=is_last)
        return _painted(lines, is_ascii=self._console.options.ascii_only)


def _painted(lines: list[Line], *, is_ascii: bool) -> Text:
    from rich.text import Text

    text = Text(no_wrap=True, overflow="crop")
    for number, line in enumerate(lines):
        if number:
            text.append("\n")
        for piece in line:
            text.append(piece.text.translate(_ASCII) if is_ascii else piece.text, _STYLES[piece.tone])
    return text


def _can_move_cursor(stream: TextIO) -> bool:
    if not stream.isatty():
        return False
    from rich.console import Console

    return not Console(file=stream).is_dumb_terminal
