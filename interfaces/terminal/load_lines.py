"""A load test under way in words: the lines of a terminal, and the plain lines of a log.

Pure functions from numbers to texts without control characters. Knows no stream; contains no text of a server.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ...format import by_kind, clock, count_text, dollars, measured_time, rate_text
from ...report.text import printable
from .painter import GAP, PaintedLine, TextPiece, bar_line, packed


class Percentiles(Struct, frozen=True):
    """The median and the 99th percentile, in seconds."""

    p50_s: float
    p99_s: float


class ModelView(Struct, frozen=True, kw_only=True):
    """One model at one look. `asked`: the calls per second due now, None in a closed loop or a trace; `sent`: calls per
    second of the last seconds, as `latency` and `first_token`. `errors` are by kind; `step`: the present step of a
    search."""

    model: str
    asked: float | None
    sent: float
    in_flight: int
    ended: int
    errors: Mapping[str, int]
    latency: Percentiles | None = None
    first_token: Percentiles | None = None
    step: str = ""


class LoadView(Struct, frozen=True, kw_only=True):
    """A test at one look. `of_s` (seconds), `of_calls` and `cap` (dollars) are its limits, None: no limit; `client`:
    why the client is the bottleneck now, empty: it is not."""

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
        """The share of the test that is over, from 0 to 1, by the limit that is nearest; None: it has no limit."""
        shares = [
            each / most
            for each, most in ((self.elapsed_s, self.of_s), (self.calls, self.of_calls), (self.spent, self.cap))
            if each is not None and most
        ]
        return min(1.0, max(shares)) if shares else None


def plain_lines(view: LoadView) -> list[str]:
    """Returns a line for each model, for logs."""
    lines = []
    for model in view.models:
        parts = [
            " ".join([_clock(view), *([_calls(view)] if len(view.models) == 1 else [])]),
            f"{printable(model.model)}: {', '.join(_flow(model))}",
            *([model.step] if model.step else []),
            *_times(model),
            *_errors(model),
            *_money(view),
            *([f"CLIENT-BOUND: {view.client}"] if view.client else []),
            *_draining(view),
        ]
        lines.append(" | ".join(parts))
    return lines


def screen_lines(view: LoadView, width: int, *, is_last: bool = False) -> list[PaintedLine]:
    """Returns the lines for a terminal, none longer than `width`: a narrow terminal gets more lines. The last picture
    (`is_last`) shows no rates of the moment."""
    lines = [bar_line(view.share, (TextPiece(f"{_clock(view)}{GAP}{_calls(view)}", "strong"),), width)]
    for model in view.models:
        lines += packed(
            [TextPiece(printable(model.model), "strong"), *map(TextPiece, _flow(model, is_last=is_last))], width
        )
        times = [] if is_last else _times(model)
        for texts in ([model.step] if model.step else [], ["last 5 s:", *times] if times else []):
            lines += _indented([TextPiece(text) for text in texts], width)
        lines += _indented([TextPiece(text, "bad") for text in _errors(model)], width)
    lines += packed(map(TextPiece, _money(view)), width)
    if view.client and not is_last:
        lines += packed([TextPiece("the client is the bottleneck:", "bad"), TextPiece(view.client, "bad")], width)
    if not is_last:
        lines += packed([TextPiece(text, "strong") for text in _draining(view)], width)
    return lines


def _indented(pieces: list[TextPiece], width: int) -> list[PaintedLine]:
    return [(TextPiece(GAP), *line) for line in packed(pieces, max(1, width - len(GAP)))]


def _clock(view: LoadView) -> str:
    return clock(view.elapsed_s) + (f" of {clock(view.of_s)}" if view.of_s else "")


def _calls(view: LoadView) -> str:
    return f"{view.calls:,}{f' of {view.of_calls:,}' if view.of_calls else ''} calls"


def _flow(model: ModelView, *, is_last: bool = False) -> list[str]:
    return [
        *([] if model.asked is None or is_last else [f"asked {rate_text(model.asked)}/s"]),
        *([] if is_last else [f"sent {rate_text(model.sent)}/s", f"{model.in_flight:,} in flight"]),
        f"{model.ended:,} ended",
    ]


def _times(model: ModelView) -> list[str]:
    return [
        f"{name} p50 {measured_time(quick.p50_s)}, p99 {measured_time(quick.p99_s)}"
        for name, quick in (("latency", model.latency), ("first token", model.first_token))
        if quick is not None
    ]


def _errors(model: ModelView) -> list[str]:
    failed = sum(model.errors.values())
    return [f"errors {failed / model.ended:.2%}: {by_kind(model.errors)}"] if failed and model.ended else []


def _money(view: LoadView) -> list[str]:
    if view.spent is None:
        return []
    return [f"{dollars(view.spent)} spent" + ("" if view.cap is None else f" of {dollars(view.cap)}")]


def _draining(view: LoadView) -> list[str]:
    in_flight = sum(model.in_flight for model in view.models)
    return [f"waiting for {count_text(in_flight, 'call')} in flight"] if view.is_draining and in_flight else []
