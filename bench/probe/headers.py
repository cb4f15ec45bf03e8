"""What headers say of a model's quota: its limit a minute, whether it is unused, and by which kind of window it counts.

Pure: answers in. Knows no clock and no provider.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...engine.limits import Amount, Limit
from .answers import TimedAnswer, Window
from .least import MINUTE_S

# By how many seconds the reset in a header may err: many are rounded to whole seconds, and the call was under way.
_ERR_S = 1.5


def _reports(of: Amount, seen: Sequence[TimedAnswer]) -> Iterator[tuple[TimedAnswer, Limit]]:
    for one in seen:
        for limit in one.answer.limits:
            if limit.of == of and limit.limit is not None and limit.window_s == MINUTE_S:
                yield one, limit


def limit_of(of: Amount, seen: Sequence[TimedAnswer]) -> float | None:
    """Returns the limit a minute that the last of these answers reports; None: none does."""
    return next((limit.limit for _, limit in reversed(list(_reports(of, seen)))), None)


def left_of(of: Amount, seen: Sequence[TimedAnswer]) -> float | None:
    """Returns what is left of the limit by the last of these answers; None: none says it."""
    return next((limit.remaining for _, limit in reversed(list(_reports(of, seen)))), None)


def is_unused(seen: Sequence[TimedAnswer]) -> bool:
    """Returns whether headers say that these answers alone used the quota of requests."""
    return any(
        limit.remaining is not None and limit.limit is not None and limit.remaining >= limit.limit - len(seen)
        for _, limit in _reports("requests", seen)
    )


def window_of(seen: Sequence[TimedAnswer]) -> Window | None:
    """Returns the kind of window that fits when, by the headers, the whole quota is free again: as what was used
    refills (bucket), always at one second of the minute (fixed), or a minute after the last call (sliding). None:
    headers name no such time, or it fits several kinds or none."""
    resets = [
        (one.sent_s + limit.reset_s, limit.reset_s, MINUTE_S * (1 - limit.remaining / limit.limit))
        for one, limit in _reports("requests", seen)
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
