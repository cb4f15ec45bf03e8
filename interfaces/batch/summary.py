"""What a batch came to, told to a person in a few sentences, or to a program as one JSON object.

Pure functions of results. Says what to do about everything that is missing.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable
from typing import Any, get_args

from ...engine.call import FailureKind
from ...engine.pairs import failures_of
from .. import refusal
from ..output import cut
from .run import Result

_SAID_MAX = 240
_MEANINGS = {
    refusal.LOCAL_FAULT: "a local file, store or disk can't be used",
    refusal.RESUMABLE: "stopped before the end, and can be gone on with",
    refusal.WITH_FAILURES: "finished, with failures",
}


def tell(result: Result) -> str:
    lines = [_answers(result), *_files(result), *_failures(result)]
    if result.pending or (result.place is None and result.sent.stops):
        how = "go on: the same command" if result.place is not None else "ask again: what was answered is in the cache"
        what = f"{result.pending:,} requests are" if result.pending else "what was not read is"
        lines.append(f"{what} pending: {_why(result)}; {how}")
    elif result.sent.fault is not None:
        lines.append(str(result.sent.fault))
    for key, stop in result.sent.lost_keys:
        lines.append(f"{key} was left out of {stop.lane} ({stop.reason}): {stop.detail}")
    if unsure := result.ended.maybe_billed + result.maybe_billed_pending:
        lines.append(f"{unsure:,} attempts brought no whole answer and may have been billed all the same")
    if result.in_flight_at_kills:
        lines.append(
            f"this batch was killed before: at most {result.in_flight_at_kills:,} calls in flight then may have been "
            f"billed as well"
        )
    if code := result.exit_code:
        lines.append(f"exit code {code}: {_meaning(result)}")
    return "\n".join(lines)


def _answers(result: Result) -> str:
    ended = result.ended
    cost = "no price" if ended.cost is None else f"${ended.cost:,.4f}"
    told = f"{result.requests:,} requests: {ended.answered:,} answers"
    told += f" ({ended.refused:,} of them refusals)" if ended.refused else ""
    told += f", {ended.failures:,} failed" if ended.failures else ""
    told += f", {result.pending:,} pending" if result.pending else ""
    if result.already and not result.pending and result.already >= result.requests:
        return f"{told}; all there before, nothing was sent; {cost}"
    told += f"; {ended.cached:,} from the cache"
    told += f", {result.already:,} there before" if result.already else ""
    return f"{told}; {cost} ({result.seconds:.1f} s)"


def _files(result: Result) -> list[str]:
    place = result.place
    if place is None:
        return []
    told = [f"{place.out}: answers{'' if place.errors else ' and errors'}"]
    return [*told, f"{place.errors}: errors"] if place.errors is not None else told


def _failures(result: Result) -> list[str]:
    failed = failures_of([result.ended])
    if not failed:
        return []
    kinds = ", ".join(f"{kind} {count:,}" for kind, (count, _) in failed.items())
    lines = [f"failed: {kinds}{_again(result, failed.keys())}"]
    for kind, (count, reason) in failed.items():
        if reason is not None:
            alike = f"{reason.count:,} of {count:,}" if reason.count < count else f"all {count:,}" if count > 1 else "1"
            lines.append(f"  {kind}, {alike}: {cut(reason.said, _SAID_MAX)}")
    return lines


def _again(result: Result, failed: Iterable[str]) -> str:
    """Only what was sent can end otherwise the next time."""
    sent = [kind for kind in failed if kind in get_args(FailureKind)]
    if not sent:
        return "; such lines are never sent: mend them in a file of their own"
    return f"; to ask {', '.join(sent)} again: the same command with --retry" if result.place is not None else ""


def _why(result: Result) -> str:
    sent = result.sent
    if sent.fault is not None:
        return str(sent.fault)
    if sent.stops:
        return "; ".join(dict.fromkeys(" ".join(stop.detail.split()) for stop in sent.stops))
    if sent.signal is not None:
        return f"interrupted by {signal.Signals(sent.signal).name}"
    return "not asked yet"


def _meaning(result: Result) -> str:
    if result.sent.signal is not None:
        return f"interrupted by {signal.Signals(result.sent.signal).name}"
    return _MEANINGS[result.exit_code]


def as_json(result: Result) -> dict[str, Any]:
    ended, sent, place = result.ended, result.sent, result.place
    return {
        "exit_code": result.exit_code,
        "out": None if place is None else str(place.out),
        "errors": None if place is None or place.errors is None else str(place.errors),
        "requests": result.requests,
        "answered": ended.answered,
        "refused": ended.refused,
        "failed": ended.failures,
        "pending": result.pending,
        "already": result.already,
        "cached": ended.cached,
        "truncated": ended.truncated,
        "usage": {"input": ended.input_tokens, "output": ended.output_tokens},
        "cost": ended.cost,
        "maybe_billed": ended.maybe_billed,
        "maybe_billed_pending": result.maybe_billed_pending,
        "in_flight_at_kills": result.in_flight_at_kills,
        "seconds": round(result.seconds, 3),
        "failures": {
            kind: {
                "count": count,
                "commonest": None if reason is None else {"detail": reason.said, "count": reason.count},
            }
            for kind, (count, reason) in failures_of([ended]).items()
        },
        "stops": [{"lane": stop.lane, "reason": stop.reason, "detail": stop.detail} for stop in sent.stops],
        "lost_keys": [
            {"key": key, "lane": stop.lane, "reason": stop.reason, "detail": stop.detail}
            for key, stop in sent.lost_keys
        ],
        "fault": None if sent.fault is None else str(sent.fault),
        "signal": sent.signal,
    }
