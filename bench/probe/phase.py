"""Finds when a fixed window of requests begins, from all calls that were sent to find its limit; tokens are counted in
the same windows.

Pure arithmetic over answers. Knows no clock and no provider.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .boxes import MINUTE_S, Event, FixedWindows
from .result import TRUE_TO
from .steps import TimedAnswer

_CELL_S = 0.5
# Calls within this many seconds count as sent at once.
_TOGETHER_S = 0.02
ANY = ((0.0, MINUTE_S),)
Spans = tuple[tuple[float, float], ...]


def together(seen: Iterable[TimedAnswer]) -> list[list[TimedAnswer]]:
    """Returns the admitted and refused calls in groups of calls that were sent at once, in order of time; failed ones
    are left out."""
    groups: list[list[TimedAnswer]] = []
    for one in sorted(seen, key=lambda one: one.sent_s):
        if not (one.is_admitted or one.is_refused):
            continue
        if groups and one.sent_s < groups[-1][0].sent_s + _TOGETHER_S:
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def beginnings(seen: Sequence[TimedAnswer], requests: float, late_s: float) -> Spans:
    """Returns the spans of the clock's minute, in seconds from 0 to 60, in which a window of this many requests (or up
    to 5% more) can begin; the whole minute if no span agrees with the answers."""
    edges = np.linspace(0.0, MINUTE_S, int(MINUTE_S / _CELL_S) + 1)
    limit = np.full(len(edges) - 1, float(requests))
    windows = FixedWindows(limit, limit * TRUE_TO, edges[:-1], edges[1:], late_s)
    groups = together(seen)
    # A round larger than any that was admitted may be refused for its calls in flight.
    at_once = max((sum(one.is_admitted for one in group) for group in groups), default=0)
    for group in groups:
        admitted = sum(one.is_admitted for one in group)
        is_refused = admitted < len(group) <= at_once
        sent_s = group[0].sent_s
        event = Event(sent_s, sent_s + late_s, float(admitted), admitted, 1.0 if is_refused else None, sent_s)
        windows.keep(windows.take(event))
    if not len(windows):
        return ANY
    return tuple((float(least), float(most)) for least, most in zip(windows.least, windows.most, strict=True))
