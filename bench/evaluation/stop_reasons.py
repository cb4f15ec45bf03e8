"""Sentences and JSON that say why a run or a batch ended as it did."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...configuration import errors as refusal
from ...engine.fault import LocalFault, Stop
from ...engine.runs.pairs import Reason
from ...format import count_text
from ...report.text import cut

SAID_MAX = 240
_MEANINGS = {
    refusal.LOCAL_FAULT: "a fault of this machine: mend it, then start again",
    refusal.RESUMABLE: "stopped before the end, and can be resumed",
    refusal.WITH_FAILURES: "finished, with failures",
}

Failed = Mapping[str, tuple[int, Reason | None]]
LostKeys = Sequence[tuple[str, Stop]]


def kinds_of(failed: Failed) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, (count, _) in failed.items())


def reasons_of(failed: Failed) -> Iterator[str]:
    """Yields the most frequent reason of each kind of failure."""
    for kind, (count, reason) in failed.items():
        if reason is not None:
            alike = f"{reason.count:,} of {count:,}" if reason.count < count else f"all {count:,}" if count > 1 else "1"
            yield f"  {kind}, {alike}: {cut(reason.said, SAID_MAX)}"


def why(fault: LocalFault | None, stops: Sequence[Stop], number: int | None) -> str:
    """Returns why work is pending. `number`: the signal that ended the run (None: no signal did)."""
    if fault is not None:
        return str(fault)
    if stops:
        return "; ".join(dict.fromkeys(" ".join(stop.detail.split()) for stop in stops))
    return "not asked yet" if number is None else f"interrupted by {signal.Signals(number).name}"


def remarks_of(what: str, lost_keys: LostKeys, unsure: int, in_flight_at_kills: int) -> Iterator[str]:
    """Yields remarks on API keys and money. `what` is "run" or "batch"; `unsure`: attempts that may have been
    billed."""
    for key, stop in lost_keys:
        yield f"{key} was left out of {stop.lane} ({stop.reason}): {stop.detail}"
    if unsure:
        yield f"{count_text(unsure, 'attempt')} brought no whole answer and may have been billed all the same"
    if in_flight_at_kills:
        yield (
            f"this {what} was killed before: at most {count_text(in_flight_at_kills, 'call')} in flight then may have "
            f"been billed as well"
        )


def meaning_of(code: int, number: int | None, *, has_failures: bool = True) -> Iterator[str]:
    """Yields a line with the meaning of an exit code, none for 0. `number`: the signal that ended the run, None: no
    signal did. `has_failures`: whether calls failed; if not, code 3 means that something was not measured."""
    if code:
        said = _MEANINGS[code] if number is None else f"interrupted by {signal.Signals(number).name}"
        if code == refusal.WITH_FAILURES and not has_failures:
            said = "finished, but not everything was measured; the reason stands above"
        yield f"exit code {code}: {said}"


def failures_as_json(failed: Failed) -> dict[str, Any]:
    return {
        kind: {"count": count, "commonest": None if reason is None else {"detail": reason.said, "count": reason.count}}
        for kind, (count, reason) in failed.items()
    }


def ending_as_json(
    fault: LocalFault | None, stops: Sequence[Stop], lost_keys: LostKeys, number: int | None
) -> dict[str, Any]:
    return {
        "stops": [_as_json(stop) for stop in stops],
        "lost_keys": [{"key": key, **_as_json(stop)} for key, stop in lost_keys],
        "fault": None if fault is None else str(fault),
        "signal": number,
    }


def _as_json(stop: Stop) -> dict[str, Any]:
    return {"lane": stop.lane, "reason": stop.reason, "detail": stop.detail}
