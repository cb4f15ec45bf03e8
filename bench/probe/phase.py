"""When a fixed window of requests begins, by all calls that were sent to find it: tokens are counted in the same ones.

Pure arithmetic over calls that were seen. Knows no clock and no provider.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .boxes import MINUTE_S, Event, FixedWindows
from .result import TRUE_TO
from .steps import TimedAnswer

_CELL_S = 0.5
# Within so many seconds, calls count as sent at once.
_TOGETHER_S = 0.02
ANY = ((0.0, MINUTE_S),)
Spans = tuple[tuple[float, float], ...]


def together(seen: Iterable[TimedAnswer]) -> list[list[TimedAnswer]]:
    """Calls that were answered, those sent at once side by side."""
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
    """Within which seconds of the clock's minute a window of so many requests, or a few more, can begin."""
    edges = np.linspace(0.0, MINUTE_S, int(MINUTE_S / _CELL_S) + 1)
    limit = np.full(len(edges) - 1, float(requests))
    windows = FixedWindows(limit, limit * TRUE_TO, edges[:-1], edges[1:], late_s)
    groups = together(seen)
    # More than were ever admitted at once may be refused for being in flight.
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
