"""What a probe's calls are answered, and what headers say: the values that pass between the search for a quota and the
code that sends.

Pure: knows no clock and no provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from ...engine.limits import MINUTE_S, Amount, Limit

Verdict = Literal["admitted", "refused", "failed"]
Window = Literal["fixed", "sliding", "bucket"]
# The smallest size of a call, in tokens of prompt.
SMALL = 1
# By how many seconds the reset in a header may err: many are rounded to whole seconds, and the call was under way.
_ERR_S = 1.5


class Answer(Struct, frozen=True):
    """The answer to one call: admitted, refused for a quota, or failed. `tokens`: used, as the provider counted them
    (0: not reported); `cost`: dollars; `retry_after_s`: the wait that it asks for (None: none); `limits`: those in
    its headers; `is_fatal`: no other call can succeed; `size`: the call's prompt in tokens; `sent_s`, `done_s`: the
    moments, in seconds of the clock, at which it was sent and answered."""

    verdict: Verdict
    tokens: int = 0
    cost: float = 0.0
    retry_after_s: float | None = None
    limits: tuple[Limit, ...] = ()
    detail: str = ""
    is_fatal: bool = False
    size: int = SMALL
    sent_s: float = 0.0
    done_s: float = 0.0

    @property
    def is_admitted(self) -> bool:
        return self.verdict == "admitted"

    @property
    def is_refused(self) -> bool:
        return self.verdict == "refused"

    @property
    def is_failed(self) -> bool:
        return self.verdict == "failed"


def reports(of: Amount, seen: Sequence[Answer]) -> list[tuple[Answer, Limit]]:
    """Returns what headers report of a limit a minute, in the order of the answers."""
    return [
        (one, limit)
        for one in seen
        for limit in one.limits
        if limit.of == of and limit.limit is not None and limit.window_s == MINUTE_S
    ]


def window_of(seen: Sequence[Answer]) -> Window | None:
    """Returns the kind of window that fits when, by the headers, the whole quota is free again: as what was used
    refills (bucket), always at one second of the minute (fixed), or a minute after the last call (sliding). None:
    headers name no such time, or it fits several kinds or none."""
    resets = [
        (one.sent_s + limit.reset_s, limit.reset_s, MINUTE_S * (1 - limit.remaining / limit.limit))
        for one, limit in reports("requests", seen)
        if one.is_admitted and limit.limit and limit.remaining is not None and limit.reset_s is not None
    ]
    half_s = MINUTE_S / 2
    fits: dict[Window, bool] = {
        "bucket": all(abs(reset_s - refill_s) <= _ERR_S for _, reset_s, refill_s in resets),
        "fixed": all(abs((at_s - resets[0][0] + half_s) % MINUTE_S - half_s) <= _ERR_S for at_s, _, _ in resets),
        "sliding": all(abs(reset_s - MINUTE_S) <= _ERR_S for _, reset_s, _ in resets),
    }
    kinds = [kind for kind, does_fit in fits.items() if does_fit]
    return kinds[0] if len(kinds) == 1 else None
