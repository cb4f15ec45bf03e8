"""Sentences and JSON that say why a run or a batch ended as it did."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import structs

from ....configuration import errors as refusal
from ....engine.pairs import Reason
from ....format import count_text
from ....report.text import cut
from ....wiring.running import RunEnd

SAID_MAX = 240
_MEANINGS = {
    refusal.LOCAL_FAULT: "a fault of this machine: fix it, then start again",
    refusal.RESUMABLE: "stopped before the end, and can be resumed",
    refusal.WITH_FAILURES: "finished, with failures",
}

Failed = Mapping[str, tuple[int, Reason | None]]


def kinds_of(failed: Failed) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, (count, _) in failed.items())


def reasons_of(failed: Failed) -> Iterator[str]:
    """Yields the most frequent reason of each kind of failure."""
    for kind, (count, reason) in failed.items():
        if reason is not None:
            alike = f"{reason.count:,} of {count:,}" if reason.count < count else f"all {count:,}" if count > 1 else "1"
            yield f"  {kind}, {alike}: {cut(reason.said, SAID_MAX)}"


def why(end: RunEnd) -> str:
    """Returns why work is pending."""
    if end.fault is not None:
        return str(end.fault)
    if end.stops:
        return "; ".join(dict.fromkeys(" ".join(stop.detail.split()) for stop in end.stops))
    return "not asked yet" if end.signal is None else f"interrupted by {signal.Signals(end.signal).name}"


def remarks_of(what: str, end: RunEnd, unsure: int) -> Iterator[str]:
    """Yields remarks on API keys and money. `what` is "run" or "batch"; `unsure`: attempts that may have been billed,
    of calls with an outcome."""
    for key, stop in end.lost_keys:
        yield f"{key} was left out of {stop.lane} ({stop.reason}): {stop.detail}"
    if unsure + end.maybe_billed:
        attempts = count_text(unsure + end.maybe_billed, "attempt")
        yield f"{attempts} brought no whole answer and may have been billed all the same"
    if end.in_flight_at_kills:
        yield (
            f"this {what} was killed before: at most {count_text(end.in_flight_at_kills, 'call')} in flight then may "
            f"have been billed as well"
        )


def meaning_of(code: int, number: int | None, *, has_failures: bool = True) -> Iterator[str]:
    """Yields a line with the meaning of an exit code, none for 0. `number`: the signal that ended the run, None: no
    signal did. `has_failures`: whether calls failed; if not, code 3 means that something was not measured."""
    if code:
        meaning = _MEANINGS[code] if number is None else f"interrupted by {signal.Signals(number).name}"
        if code == refusal.WITH_FAILURES and not has_failures:
            meaning = "finished, but not everything was measured (why: see above)"
        yield f"exit code {code}: {meaning}"


def failures_as_json(failed: Failed) -> dict[str, Any]:
    return {
        kind: {"count": count, "commonest": None if reason is None else {"detail": reason.said, "count": reason.count}}
        for kind, (count, reason) in failed.items()
    }


def ending_as_json(end: RunEnd) -> dict[str, Any]:
    return {
        "stops": [structs.asdict(stop) for stop in end.stops],
        "lost_keys": [{"key": key, **structs.asdict(stop)} for key, stop in end.lost_keys],
        "fault": None if end.fault is None else str(end.fault),
        "signal": end.signal,
    }
