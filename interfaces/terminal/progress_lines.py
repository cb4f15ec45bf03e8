"""A run's progress in words: the plain line of a log, and the lines of a terminal.

Pure functions from numbers to texts without control characters. Knows no stream; contains no text of a model.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...engine.call import WEB
from ...format import by_kind, clock, count_text, dollars, figure_text, rate_text
from ...report.text import cut, printable
from .bottleneck import CONCURRENCY, CPU, LEASE, POLITENESS, RETRY, SHARED, WaitShare
from .painter import PaintedLine, TextPiece, bar_line, cropped, packed
from .run_progress import LaneView, RunView

LANES_SHOWN = 8
_WAITS_SHOWN = 3
# The reasons for waiting in words that say what could be changed.
_WORDS = {
    "requests": "the quota of requests",
    "tokens": "the quota of tokens",
    CONCURRENCY: "a free slot (concurrency)",
    "back-off": "the rate that the provider accepts",
    RETRY: "the next attempt",
    LEASE: "another process that asks the same",
    SHARED: "the shared cache",
    "breaker": "the server to come back",
    CPU: "this machine's CPU",
    POLITENESS: "pauses between pages of a host",
    "budget": "--max-cost: the rest is reserved for calls in flight",
}


def plain_line(view: RunView) -> str:
    """Returns the state of a run on one line, for logs."""
    parts = [
        f"{_count(view)} ({percent(view)})",
        f"{rate_text(view.per_s)}/s",
        f"{view.in_flight:,} in flight",
        _cached(view),
        *_money(view),
        *([", ".join(_scores(view))] if view.scores else []),
        *([f"{clock(view.left_s)} left"] if view.left_s is not None and view.done < view.total else []),
        *(["paused"] if view.is_paused else []),
        *([f"waiting for {_share(view.waits[0])}"] if view.waits else []),
        *_found(view),
        *_troubles(view),
    ]
    return " | ".join(parts)


def waits_of(view: RunView) -> list[str]:
    """Returns the reasons for which a run is no faster, each with its share of the time, the largest first."""
    return [_share(share) for share in view.waits[:_WAITS_SHOWN]]


def last_line(view: RunView) -> str:
    """Returns the end of a run on one line."""
    parts = [
        f"{_count(view)} ({percent(view)})",
        f"in {clock(view.elapsed_s)}",
        f"{rate_text(view.average_per_s)}/s",
        _cached(view),
        *([] if view.spent is None else [dollars(view.spent)]),
        *_troubles(view),
    ]
    return " | ".join(parts)


def screen_lines(view: RunView, width: int, *, is_last: bool = False) -> list[PaintedLine]:
    """Returns the lines for a terminal, none longer than `width`: a narrow terminal gets more lines. The last
    picture leaves out what was still expected."""
    done = 1.0 if view.done >= view.total else view.done / view.total
    lines = [bar_line(done, (TextPiece(_count(view), "strong"), TextPiece(percent(view))), width)]
    flow = [
        *([] if is_last else [TextPiece(f"{rate_text(view.per_s)}/s", "strong")]),
        TextPiece(f"average {rate_text(view.average_per_s)}/s"),
        *([TextPiece(f"in {clock(view.elapsed_s)}")] if is_last else [TextPiece(f"{view.in_flight:,} in flight")]),
        TextPiece(_cached(view)),
        *(TextPiece(text) for text in _money(view)),
    ]
    if view.left_s is not None and view.done < view.total and not is_last:
        flow.append(TextPiece(f"{clock(view.left_s)} left", "strong"))
    lines += packed(flow, width)
    if not is_last:
        lines += packed([TextPiece(text) for text in _scores(view)], width)
    if view.is_paused and not is_last:
        lines += packed([TextPiece("paused: `millstream ctl` resumes it", "strong")], width)
    if view.waits and not is_last:
        waits = [TextPiece(_share(share), "faint") for share in view.waits[1:_WAITS_SHOWN]]
        lines += packed([TextPiece(f"waiting for {_share(view.waits[0])}", "strong"), *waits], width)
    if not is_last:
        lines += packed([TextPiece(text, "faint") for text in _found(view)], width)
    lines += packed([TextPiece(text, "bad") for text in _troubles(view)], width)
    if len(view.lanes) > 1:
        lines += _lane_lines(view.lanes, width)
    return lines


def _count(view: RunView) -> str:
    return f"{view.done:,} of {view.total:,}{f' {view.item}s' if view.item else ''}"


def _cached(view: RunView) -> str:
    # An answer of several calls is from the cache only if all of them are, so that calls are counted as such here.
    of = f" of {count_text(view.calls, 'call')}" if view.item else ""
    return f"{view.cached:,}{of} from the cache"


def percent(view: RunView) -> str:
    """Returns the percentage done, rounded down, so that only a whole run has 100%."""
    if view.done >= view.total:
        return "100%"
    return f"{int(1000 * view.done / view.total) / 10}%"


def _share(share: WaitShare) -> str:
    return f"{_WORDS.get(share.reason, share.reason)} {share.share:.0%}"


def _found(view: RunView) -> list[str]:
    """Returns what lanes without a known quota found out about themselves."""
    texts = []
    for lane in view.lanes[:LANES_SHOWN]:
        name = f"{printable(lane.model)}: " if len(view.lanes) > 1 else ""
        match lane.found:
            case ("refused", per_s):
                texts.append(f"{name}{figure_text(per_s)}/s, the provider refuses more")
            case ("slow", most):
                texts.append(f"{name}answers get slower beyond {most:,.0f} in flight")
    return texts


def _money(view: RunView) -> list[str]:
    if view.spent is None:
        return []
    if view.expected is None or view.done >= view.total:
        return [dollars(view.spent)]
    return [f"{dollars(view.spent)} of ~{dollars(view.expected)}"]


def _scores(view: RunView) -> list[str]:
    """Returns the mean score so far, of each model if there are several."""
    means = [(f"{printable(name)} ", mean) for name, mean in view.scores[:LANES_SHOWN]]
    texts = [f"{name if len(view.scores) > 1 else ''}{mean:.3f}" for name, mean in means]
    of = f"after the first {view.already:,}" if view.already else "so far"
    return [f"score {of}: {texts[0]}", *texts[1:]] if texts else []


def _troubles(view: RunView) -> list[str]:
    troubles = []
    if view.retries:
        troubles.append("failed attempts: " + by_kind(view.retries))
    if view.throttles:
        troubles.append(f"throttled {view.throttles:,}")
    if view.failures:
        troubles.append("failed calls: " + by_kind(view.failures))
    if view.page_failures:
        troubles.append("failed pages: " + by_kind(view.page_failures))
    for lane in view.lanes[:LANES_SHOWN]:
        if lane.stopped:
            troubles.append(f"stopped {printable(lane.model)}: {lane.stopped}")
        elif lane.lost:
            troubles.append(f"{printable(lane.model)} without {', '.join(lane.lost)}")
    return troubles


def _lane_lines(lanes: Sequence[LaneView], width: int) -> list[PaintedLine]:
    """Returns the busiest lanes in their own order, so that lines don't jump, and the number of the others."""
    busiest = sorted(lanes, key=lambda lane: (lane.in_flight, lane.per_s, lane.done), reverse=True)[:LANES_SHOWN]
    rows = [lane for lane in lanes if lane in busiest]
    names = ["pages" if lane.model == WEB else printable(lane.model) for lane in rows]
    column = min(max(map(len, names)), max(12, width // 3))
    lines = []
    for lane, name in zip(rows, names, strict=True):
        most = f"/{lane.concurrency:,}" if lane.concurrency else ""
        texts = [f"{lane.done:,} done", f"{rate_text(lane.per_s)}/s", f"{lane.in_flight:,}{most} in flight"]
        if lane.stopped:
            texts = [f"{lane.done:,} done", f"stopped: {lane.stopped}"]
        elif lane.waits:
            texts.append(_share(lane.waits[0]))
        # Models of one family differ at the end of their names.
        label = TextPiece((name if len(name) <= column else f"…{name[1 - column :]}").ljust(column))
        lines.append(cropped((label, *(TextPiece(text, "faint") for text in texts)), width))
    if len(lanes) > len(rows):
        lines.append((TextPiece(cut(f"and {len(lanes) - len(rows):,} more lanes", width), "faint"),))
    return lines
