"""Decides what follows from a failed attempt, by its fault and what was before it: one table for calls, keys and lanes.

Pure: counts nothing, waits for nothing and sends nothing. The others carry a verdict out: the call's tries count it,
the key's gate and the lane's queue learn from it.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, structs

from .endpoint import Fault, Quota

Again = Literal["never", "pending", "now", "otherwise", "soon", "later"]
"""Whether the call is sent again, and when.

never      it fails
pending    it stays pending if its lane has stopped, else it fails
now        as soon as its lane admits it
otherwise  the same, as the request's `instead`: at the next tier of service
soon       when the retry budget grants it
later      the same, after a back-off
"""

Learns = Literal[
    "nothing", "success", "rejection", "failure", "refusal", "pause", "rest", "doubt", "dead_key", "empty_account",
    "redirect",
]  # fmt: skip
"""What the lane, or its API key, learns.

nothing        nothing
success        the lane answers, so its troubles are over
rejection      the same, and it counts among equal rejections
failure        a failure in a row
refusal        the same, because of its quota: it is paced more evenly
pause          calls are refused for some time
rest           the same, but our own machine is the cause
doubt          the key may be dead: it waits for one probe
dead_key       the key is dead and stops; so with `empty_account`
redirect       the whole lane stops
"""


class History(Struct, frozen=True):
    """What counts beside a fault. The defaults are those of a first attempt with the only API key."""

    attempts: int = 0
    """The attempts that counted before this one."""
    maybe_billed: int = 0
    """The attempts before this one that may have been billed."""
    attempts_max: int = 6
    """The most attempts that count; see RetryPolicy."""
    billed_repeats_max: int = 2
    """The most repeats of a call whose attempts may have been billed."""
    is_refused: bool = False
    """Whether the API key has refused this call before."""
    is_doubted: bool = False
    """Whether that was because the key looked dead."""
    has_another: bool = False
    """Whether there is a healthy API key that has not refused the call."""
    has_instead: bool = False
    """Whether the request has another tier of service left."""
    is_suspect: bool = False
    """Whether the API key already looks dead to its gate."""
    is_probe: bool = False
    """Whether the attempt was the probe of a key or lane in trouble."""
    is_again: bool = False
    """Whether the attempt was sent after a pause, beside others, and the lane has not answered since."""
    pause_s: float = 0.0
    """The pause in seconds that the limits beside the answer imply; 0.0: none."""


FIRST = History()


class Verdict(Struct, frozen=True):
    """What follows from a failed attempt."""

    again: Again
    """Whether the call is sent again, and when."""
    learns: Learns
    """What the lane or its API key learns."""
    counts: bool = True
    """Whether the attempt counts; one that only had to wait does not."""
    mark: Literal["", "refused", "doubted"] = ""
    """What the call notes of the API key."""
    cuts_rate: bool = False
    """Whether an adaptive lane lowers its rate."""
    pause_s: float = 0.0
    """How long a pause lasts, in seconds."""
    quota: Quota = "keep"
    """What becomes of the reserved tokens; see Fault."""
    money: Literal["none", "maybe", "sure"] = "none"
    """Whether the reserved money counts: the attempt was not billed, may have been, or was for a useless answer."""


def verdict(fault: Fault, history: History = FIRST) -> Verdict:
    """Returns what follows from an attempt that ended with `fault`."""
    money: Literal["none", "maybe", "sure"] = "sure" if fault.quota == "settle" else "none"
    return structs.replace(_row(fault, history), quota=fault.quota, money="maybe" if fault.is_billed_maybe else money)


def _row(fault: Fault, history: History) -> Verdict:
    """Returns the row of the table, but for quota and money."""
    limit = min(history.attempts_max, fault.attempts_max or history.attempts_max)
    is_spent = (
        history.attempts + 1 >= limit or history.maybe_billed + fault.is_billed_maybe > history.billed_repeats_max
    )
    # Another key may take what this one refuses for the first time.
    is_moved = history.has_another and not history.is_refused
    later: Again = "never" if is_spent else "soon" if fault.is_immediate and not history.attempts else "later"
    if fault.action == "otherwise" or (history.has_instead and (fault.is_full or fault.kind == "timeout")):
        return Verdict("otherwise", "nothing", counts=False)
    match fault.action:
        case "retry":
            return Verdict(later, "failure", cuts_rate=fault.cuts_rate)
        case "never":
            return Verdict("never", "rejection" if fault.kind == "rejected" else "success")
        case "wait":
            return Verdict("now", "rest", counts=False, pause_s=fault.retry_after_s or 1.0)
        case "throttle" if fault.retry_after_s is not None or history.pause_s:
            pause_s = history.pause_s if fault.retry_after_s is None else fault.retry_after_s or 1.0
            return Verdict("now", "pause", counts=False, mark="refused", cuts_rate=history.is_again, pause_s=pause_s)
        case "throttle":
            again: Again = "now" if is_moved or (history.has_another and not is_spent) else later
            return Verdict(again, "refusal", counts=not is_moved, mark="refused", cuts_rate=fault.cuts_rate)
        case "confirm":
            learns: Learns = "doubt" if not history.is_suspect else "dead_key" if history.is_probe else "nothing"
            # Where the probe found the key alive, it is this call alone that is forbidden: that one counts.
            counts = history.is_doubted and not is_moved
            return Verdict("pending" if counts and is_spent else "now", learns, counts=counts, mark="doubted")
        case "stop" if fault.kind == "redirect":
            return Verdict("never", "redirect")
        case "stop":
            return Verdict("now", "empty_account", counts=not is_moved, mark="refused")
