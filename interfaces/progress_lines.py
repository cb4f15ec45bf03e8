"""A run's progress in words: the plain line of a log, and the lines of a terminal.

Pure functions from numbers to texts. Knows no stream; a text never holds a control character and never anything
that a model said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from ..engine.call import WEB
from .bottleneck import Share
from .headway import LaneView, View

LANES_SHOWN = 8
_WAITS_SHOWN = 3
_BAR_MIN, _BAR_MAX = 10, 40
_GAP = "  "

Tone = Literal["plain", "strong", "good", "bad", "faint"]


class Piece(NamedTuple):
    """A text that is never torn between two lines."""

    text: str
    tone: Tone = "plain"


Line = tuple[Piece, ...]


def plain_line(view: View) -> str:
    """Everything on one line, for logs."""
    told = [
        f"{_count(view)} ({percent(view)})",
        f"{_rate(view.per_s)}/s",
        f"{view.in_flight:,} in flight",
        _cached(view),
        *_money(view),
        *([f"{duration(view.left_s)} left"] if view.left_s is not None and view.done < view.total else []),
        *([f"waiting for {_share(view.waits[0])}"] if view.waits else []),
        *_troubles(view),
    ]
    return " | ".join(told)


def last_line(view: View) -> str:
    """How it ended."""
    told = [
        f"{_count(view)} ({percent(view)})",
        f"in {duration(view.elapsed_s)}",
        f"{_rate(view.average_per_s)}/s",
        _cached(view),
        *([] if view.spent is None else [dollars(view.spent)]),
        *_troubles(view),
    ]
    return " | ".join(told)


def screen_lines(view: View, width: int, *, is_last: bool = False) -> list[Line]:
    """What a terminal shows, in lines no longer than `width`: narrow ones get more lines, not longer ones. The last
    time nothing is to come any more, and nothing waited for."""
    lines = [_bar_line(view, width)]
    flow = [
        *([] if is_last else [Piece(f"{_rate(view.per_s)}/s", "strong")]),
        Piece(f"average {_rate(view.average_per_s)}/s"),
        *([Piece(f"in {duration(view.elapsed_s)}")] if is_last else [Piece(f"{view.in_flight:,} in flight")]),
        Piece(_cached(view)),
        *(Piece(text) for text in _money(view)),
    ]
    if view.left_s is not None and view.done < view.total and not is_last:
        flow.append(Piece(f"{duration(view.left_s)} left", "strong"))
    lines += packed(flow, width)
    if view.waits and not is_last:
        waits = [Piece(_share(share), "faint") for share in view.waits[1:_WAITS_SHOWN]]
        lines += packed([Piece(f"waiting for {_share(view.waits[0])}", "strong"), *waits], width)
    lines += packed([Piece(text, "bad") for text in _troubles(view)], width)
    if len(view.lanes) > 1:
        lines += _lane_lines(view.lanes, width)
    return lines


def _count(view: View) -> str:
    return f"{view.done:,} of {view.total:,}{f' {view.item}s' if view.item else ''}"


def _cached(view: View) -> str:
    return f"{view.cached:,} {'calls ' if view.item else ''}cached"


def percent(view: View) -> str:
    """Rounded down, so that nothing but the whole is 100%."""
    if view.done >= view.total:
        return "100%"
    return f"{int(1000 * view.done / view.total) / 10}%"


def duration(seconds: float) -> str:
    """As 0:05, 12:34 or 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 100:
        return f"{hours // 24:,} days"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def dollars(amount: float) -> str:
    """Cents above one cent, the first two digits that say something below."""
    if amount >= 0.01 or amount == 0:
        return f"${amount:,.2f}"
    return f"${amount:.2g}" if amount >= 1e-4 else "$0.0001"


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}" if per_s >= 10 else f"{per_s:.1f}"


def _share(share: Share) -> str:
    return f"{share.reason} {share.share:.0%}"


def _money(view: View) -> list[str]:
    if view.spent is None:
        return []
    if view.expected is None or view.done >= view.total:
        return [dollars(view.spent)]
    return [f"{dollars(view.spent)} of ~{dollars(view.expected)}"]


def _troubles(view: View) -> list[str]:
    told = []
    if view.retries:
        told.append("retried: " + by_kind(view.retries))
    if view.throttles:
        told.append(f"throttled {view.throttles:,}")
    if view.failures:
        told.append("failed: " + by_kind(view.failures))
    if view.page_failures:
        told.append("pages failed: " + by_kind(view.page_failures))
    for lane in view.lanes[:LANES_SHOWN]:
        if lane.stopped:
            told.append(f"stopped {printable(lane.model)}: {lane.stopped}")
        elif lane.lost:
            told.append(f"{printable(lane.model)} without {', '.join(lane.lost)}")
    return told


def by_kind(counts: Mapping[str, int]) -> str:
    """The most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{kind} {number:,}" for kind, number in ordered)


def _bar_line(view: View, width: int) -> Line:
    count = Piece(_count(view), "strong")
    share = Piece(percent(view))
    room = width - len(count.text) - len(share.text) - 2 * len(_GAP)
    if room < _BAR_MIN:
        return cropped((count, share), width)
    cells = min(room, _BAR_MAX)
    full = cells if view.done >= view.total else int(cells * view.done / view.total)
    return (Piece("━" * full, "good"), Piece("─" * (cells - full), "faint"), Piece(_GAP), count, Piece(_GAP), share)


def _lane_lines(lanes: Sequence[LaneView], width: int) -> list[Line]:
    """The busiest lanes, in their own order so that lines don't jump about, and how many more there are."""
    busiest = sorted(lanes, key=lambda lane: (lane.in_flight, lane.per_s, lane.done), reverse=True)[:LANES_SHOWN]
    shown = [lane for lane in lanes if lane in busiest]
    names = ["pages" if lane.model == WEB else printable(lane.model) for lane in shown]
    column = min(max(map(len, names)), max(12, width // 3))
    lines = []
    for lane, name in zip(shown, names, strict=True):
        most = f"/{lane.concurrency:,}" if lane.concurrency else ""
        told = [f"{lane.done:,} done", f"{_rate(lane.per_s)}/s", f"{lane.in_flight:,}{most} in flight"]
        if lane.stopped:
            told = [f"{lane.done:,} done", f"stopped: {lane.stopped}"]
        elif lane.waits:
            told.append(_share(lane.waits[0]))
        # Models of one family differ at the end of their names.
        label = Piece((name if len(name) <= column else f"…{name[1 - column :]}").ljust(column))
        lines.append(cropped((label, *(Piece(text, "faint") for text in told)), width))
    if len(lanes) > len(shown):
        lines.append((Piece(shortened(f"and {len(lanes) - len(shown):,} more lanes", width), "faint"),))
    return lines


def packed(pieces: Iterable[Piece], width: int) -> list[Line]:
    """Pieces one after the other, a new line where the next one does not fit."""
    lines: list[list[Piece]] = []
    used = width
    for piece in pieces:
        piece = piece._replace(text=shortened(piece.text, width))
        if lines and used + len(_GAP) + len(piece.text) <= width:
            lines[-1] += (Piece(_GAP), piece)
            used += len(_GAP) + len(piece.text)
        else:
            lines.append([piece])
            used = len(piece.text)
    return [tuple(line) for line in lines]


def cropped(pieces: Sequence[Piece], width: int) -> Line:
    """As many whole pieces as fit on one line."""
    lines = packed(pieces, width)
    return lines[0] if lines else ()


def shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def printable(name: str) -> str:
    """A model's name is its user's own, but it must not move the cursor or take two cells a character."""
    return "".join(character if character.isascii() and character.isprintable() else "?" for character in name)
