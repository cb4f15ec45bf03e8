"""What arrivals ask for over time: calls that are expected between two instants, and the steps that a rate has.

Pure arithmetic on arrivals; knows no test that ran.
"""

from __future__ import annotations

import math
from itertools import accumulate

from msgspec import structs

from ...bench.load.arrivals import Arrivals, Open

# A ramp has no steps of its own; these many tell how a server bears it.
RAMP_PARTS = 10


def asked_between(arrivals: Arrivals, low_s: float, high_s: float) -> float | None:
    """Calls expected in that time; None: nothing is asked by rate, as in a closed loop or a trace."""
    if not isinstance(arrivals, Open):
        return None
    calls = begins = 0.0
    for each in arrivals.stretches:
        low, high = max(low_s, begins) - begins, min(high_s, begins + each.seconds) - begins
        if high > low:
            slope = 0.0 if math.isinf(each.seconds) else (each.last_rate - each.rate) / each.seconds
            calls += (high - low) * (each.rate + slope * (low + high) / 2)
        begins += each.seconds
    return calls


def rate_at(arrivals: Arrivals, at_s: float) -> float | None:
    """Calls a second asked for at that moment."""
    asked = asked_between(arrivals, at_s, at_s + 0.001)
    return None if asked is None else asked / 0.001


def in_parts(arrivals: Arrivals) -> Arrivals:
    """The same arrivals, with each ramp cut into steps, so that each of them is measured by itself."""
    if not isinstance(arrivals, Open):
        return arrivals
    cut = (each.cut(RAMP_PARTS) if each.rate != each.last_rate else (each,) for each in arrivals.stretches)
    return structs.replace(arrivals, stretches=tuple(part for parts in cut for part in parts))


def spans(arrivals: Arrivals, ended_s: float) -> list[tuple[float, float]]:
    """When each of the steps begins and ends, by number, of a test that ended then."""
    if not isinstance(arrivals, Open):
        return [(0.0, ended_s)]
    ends = list(accumulate(each.seconds for each in arrivals.stretches))
    return [(min(low, ended_s), min(high, ended_s)) for low, high in zip([0.0, *ends], ends, strict=False)]
