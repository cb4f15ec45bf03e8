"""The estimates of a pilot as lines for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ....engine.call import WEB
from ....format import count_text, decimal_text, dollars, rough_minutes
from ....report.text import table
from ..running.stop_reasons import reasons_of, remarks_of, why
from .pilot import Pilot
from .pilot_figures import Figure, LaneFigures, PilotFigures

_COLUMNS = ("lane", "calls", "input tokens", "output tokens", "cost")
_MEANING = (
    "in brackets: 95% intervals, of calls, tokens and cost by Student's t over the pilot's {noun}s, of times by "
    "samples of them, of shares the exact ones; the figures are those of a run of which everything left is answered at "
    "its first sending"
)
_STEPS = "; time is at least what quotas, calls in flight and items at once allow"


def tell(pilot: Pilot, parts: Sequence[PilotFigures]) -> str:
    """Returns a pilot's estimates as lines for people."""
    texts = ["\n".join(_lines(part, pilot)) for part in parts]
    if any(part.lanes is not None for part in parts):
        texts.append(_MEANING.format(noun=pilot.noun) + ("" if pilot.is_of_calls else _STEPS))
    unsure = sum(ended.maybe_billed for stratum in pilot.strata for ended in stratum.ended)
    return "\n\n".join([*texts, *remarks_of("pilot", pilot.end, unsure)])


def _lines(part: PilotFigures, pilot: Pilot) -> Iterator[str]:
    cost = "" if part.spent is None else f"; it cost {dollars(part.spent)}"
    yield (
        f"pilot of {', '.join(part.models)}: {part.items:,} of {count_text(part.of, pilot.noun)}, "
        f"{count_text(part.sent, 'call')} sent, {part.from_cache:,} from the cache{cost}"
    )
    if part.pending:
        yield f"  pending        {part.pending:,} of them: {why(pilot.end)}"
    if part.lanes is None:
        yield f"  no estimate    {_why_none(part, pilot.noun)}"
    else:
        yield from _estimates(part, part.lanes, pilot)
    line = pilot.noun if pilot.is_of_calls else pilot.run.benchmark.unit
    for share, what in ((part.failed, "failed"), (part.refused, "refused"), (part.truncated, "cut short")):
        if share.ci95 is not None:
            low, high = share.ci95
            yield f"  {what:13}  {share.count:,} of {count_text(share.of, line)} ({low:.1%} to {high:.1%})"
    if pilot.is_of_calls and any(2 * share.count >= share.of > 0 for share in (part.refused, part.truncated)):
        yield "  no score       a run of which half is refused or cut short has none"
    yield from reasons_of(part.failures)


def _why_none(part: PilotFigures, noun: str) -> str:
    if not part.whole:
        return f"no {noun} was answered" if part.pending == part.items else f"no {noun} ran to its end"
    if not part.measured:
        return "no answer came with its usage: this provider reports none"
    return "not every temperature has an answer with its usage"


def _estimates(part: PilotFigures, lanes: Sequence[LaneFigures], pilot: Pilot) -> Iterator[str]:
    yield f"  still to send  {count_text(part.left, pilot.noun)}"
    yield from (f"  {line}" for line in table([_COLUMNS, *(_cells(lane) for lane in lanes)]).splitlines())
    no_price = f"not known: no price for {', '.join(part.unpriced)}"
    yield f"  cost           {no_price if part.cost is None else _text(part.cost, dollars)}"
    if part.minutes is None:
        no_quota = "nothing was sent, and --rpm and --tpm were not given"
        yield f"  time           unknown: {no_quota if pilot.is_of_calls else f'no {pilot.noun} was timed'}"
    else:
        least = "" if pilot.is_of_calls else "at least "
        by = f", bound by {part.minutes.bound_by}{f' of {part.minutes.lane}' if part.minutes.lane else ''}"
        yield f"  time           {least}{_text(part.minutes, rough_minutes)}{by if part.left else ''}"
    if part.measured < part.whole:
        yield f"  left out       {pilot.noun}s without the usage of every answer: {part.whole - part.measured:,}"


def _cells(lane: LaneFigures) -> tuple[str, ...]:
    tokens = (lane.input_tokens, lane.output_tokens)
    has_tokens = any(figure.estimate for figure in tokens)
    return (
        "pages" if lane.lane == WEB else lane.lane,
        _text(lane.calls, decimal_text),
        *(_text(figure, decimal_text) if has_tokens else "-" for figure in tokens),
        "no price" if lane.cost is None else "-" if lane.lane == WEB else _text(lane.cost, dollars),
    )


def _text(figure: Figure, write: Callable[[float], str]) -> str:
    if figure.ci95 is None:
        return f"{write(figure.estimate)} (too few for an interval)"
    low, high = map(write, figure.ci95)
    return write(figure.estimate) if low == high else f"{write(figure.estimate)} ({low} to {high})"
