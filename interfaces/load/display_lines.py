"""A load test under way in words: the lines of a terminal, and the plain lines of a log.

Pure functions from numbers to texts. Knows no stream; a text never holds a control character and never anything that a
server said.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ..progress_lines import Line, Piece, by_kind, dollars, duration, packed, printable, shortened

_BAR_MIN, _BAR_MAX = 10, 40
_INDENT = "  "


class Quick(Struct, frozen=True):
    """Two percentiles, in seconds; None: there was nothing to tell them from."""

    p50_s: float
    p99_s: float


class Lately(Struct, frozen=True):
    latency: Quick | None = None
    first_token: Quick | None = None


class ModelView(Struct, frozen=True, kw_only=True):
    """One model at one look. `asked`: calls a second now, None in a closed loop or a trace; `sent`: those of the last
    seconds. `step`: where a search is."""

    model: str
    asked: float | None
    sent: float
    in_flight: int
    ended: int
    errors: Mapping[str, int]
    lately: Lately
    so_far: Lately
    step: str = ""


class LoadView(Struct, frozen=True, kw_only=True):
    """A test at one look. `of_s`, `of_calls`, `cap`: its limits; `client`: why the client is the bottleneck now."""

    elapsed_s: float
    calls: int
    models: tuple[ModelView, ...]
    of_s: float | None = None
    of_calls: int | None = None
    spent: float | None = None
    cap: float | None = None
    client: str = ""
    is_draining: bool = False

    @property
    def share(self) -> float | None:
        """How much of the test is over, by the limit that is nearest; None: it has none that can be told."""
        shares = [
            each / most
            for each, most in ((self.elapsed_s, self.of_s), (self.calls, self.of_calls), (self.spent, self.cap))
            if each is not None and most
        ]
        return min(1.0, max(shares)) if shares else None


def time_text(seconds: float) -> str:
    """Three digits, in the unit that a person reads."""
    if seconds < 0.9995:
        milliseconds = 1000 * seconds
        return f"{milliseconds:.0f} ms" if milliseconds >= 100 else f"{milliseconds:.3g} ms"
    return f"{seconds:.0f} s" if seconds >= 100 else f"{seconds:.3g} s"


def rate_text(per_s: float) -> str:
    return f"{per_s:,.0f}/s" if per_s >= 100 else f"{per_s:.3g}/s"


def plain_lines(view: LoadView) -> list[str]:
    """For logs: a line for each model."""
    lines = []
    for own in view.models:
        told = [
            " ".join([_clock(view), *([_calls(view)] if len(view.models) == 1 else [])]),
            f"{printable(own.model)}: {', '.join(_flow(own))}",
            *([own.step] if own.step else []),
            *_times(own.lately),
            *_errors(own),
            *_money(view),
            *([f"CLIENT-BOUND: {view.client}"] if view.client else []),
            *_draining(view),
        ]
        lines.append(" | ".join(told))
    return lines


def screen_lines(view: LoadView, width: int, *, is_last: bool = False) -> list[Line]:
    """What a terminal shows, in lines no longer than `width`: narrow ones get more lines, not longer ones."""
    lines = [_bar_line(view, width)]
    for own in view.models:
        lines += packed([Piece(printable(own.model), "strong"), *map(Piece, _flow(own, is_last=is_last))], width)
        told = [
            [own.step] if own.step else [],
            [] if is_last else _labelled("last 5 s:", own.lately),
            _labelled("so far:" if not own.step else "this step:", own.so_far),
        ]
        for texts in told:
            lines += _indented([Piece(text) for text in texts], width)
        lines += _indented([Piece(text, "bad") for text in _errors(own)], width)
    lines += packed(map(Piece, _money(view)), width)
    if view.client and not is_last:
        lines += packed([Piece("the client is the bottleneck:", "bad"), Piece(view.client, "bad")], width)
    if not is_last:
        lines += packed([Piece(text, "strong") for text in _draining(view)], width)
    return lines


def _indented(pieces: list[Piece], width: int) -> list[Line]:
    return [(Piece(_INDENT), *line) for line in packed(pieces, max(1, width - len(_INDENT)))]


def _clock(view: LoadView) -> str:
    return duration(view.elapsed_s) + (f" of {duration(view.of_s)}" if view.of_s else "")


def _calls(view: LoadView) -> str:
    return f"{view.calls:,}{f' of {view.of_calls:,}' if view.of_calls else ''} calls"


def _flow(own: ModelView, *, is_last: bool = False) -> list[str]:
    return [
        *([] if own.asked is None or is_last else [f"asked {rate_text(own.asked)}"]),
        *([] if is_last else [f"sent {rate_text(own.sent)}", f"{own.in_flight:,} in flight"]),
        f"{own.ended:,} ended",
    ]


def _labelled(label: str, lately: Lately) -> list[str]:
    told = _times(lately)
    return [label, *told] if told else []


def _times(lately: Lately) -> list[str]:
    return [
        f"{name} p50 {time_text(quick.p50_s)}, p99 {time_text(quick.p99_s)}"
        for name, quick in (("latency", lately.latency), ("first token", lately.first_token))
        if quick is not None
    ]


def _errors(own: ModelView) -> list[str]:
    failed = sum(own.errors.values())
    return [f"errors {failed / own.ended:.2%}: {by_kind(own.errors)}"] if failed and own.ended else []


def _money(view: LoadView) -> list[str]:
    if view.spent is None:
        return []
    return [f"{dollars(view.spent)} spent" + ("" if view.cap is None else f" of {dollars(view.cap)}")]


def _draining(view: LoadView) -> list[str]:
    in_flight = sum(own.in_flight for own in view.models)
    return [f"waiting for {in_flight:,} calls in flight"] if view.is_draining and in_flight else []


def _bar_line(view: LoadView, width: int) -> Line:
    told = f"{_clock(view)}  {_calls(view)}"
    room = width - len(told) - 2
    share = view.share
    if room < _BAR_MIN or share is None:
        return (Piece(shortened(told, width), "strong"),)
    cells = min(room, _BAR_MAX)
    full = cells if share >= 1 else int(cells * share)
    return (Piece("━" * full, "good"), Piece("─" * (cells - full), "faint"), Piece("  "), Piece(told, "strong"))
