"""Decides what follows from a failed attempt, by its fault and what was before it: one table for calls, keys and lanes.

Pure. Others carry a verdict out: the call's tries count it, the key's gate and the lane's queue learn from it.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, structs

from .attempts.retry import RetryPolicy
from .endpoint import Fault, Quota

Again = Literal["never", "pending", "now", "otherwise", "soon", "later"]
"""Whether the call is sent again, and when. `now`: it queues at once, and goes when its lane admits it; `otherwise`:
the same, at the next tier of service; `soon`: when the retry budget grants it; `later`: the same, after a back-off.
`pending`: it stays pending if its lane has stopped, else it fails."""

Trouble = Literal["failure", "refusal", "pause", "rest"]
Learns = Literal["nothing", "success", "rejection", Trouble, "doubt", "dead_key", "empty_account", "redirect"]
"""What the lane, or its API key, learns. `success`: it answers, so its troubles are over; `rejection`: the same, and it
counts among equal rejections. `failure`: one more in a row; `refusal`: the same, because of the quota. `pause`: calls
are refused for some time; `rest`: the same, but our own machine is the cause. `doubt`: the key may be dead, which a
probe shows. `dead_key` and `empty_account` stop the key, `redirect` stops the lane."""


class History(Struct, frozen=True):
    """What counts beside a fault; the defaults are those of a first attempt with the only API key. `attempts`: those
    before it that counted, `maybe_billed` those that may have been billed; their limits are those of `policy`.

    `is_refused`: the API key has refused the call before, `is_doubted`: because it looked dead. `has_another`: a
    healthy key has not refused it. `has_instead`: the request has another tier of service. `is_suspect`: the key looks
    dead to its gate. `is_again`: the attempt was sent after the key's troubles had begun, beside others, and nothing
    has been answered since. `pause_s`: the seconds that the limits beside the answer imply.
    """

    attempts: int = 0
    maybe_billed: int = 0
    policy: RetryPolicy = RetryPolicy()
    is_refused: bool = False
    is_doubted: bool = False
    has_another: bool = False
    has_instead: bool = False
    is_suspect: bool = False
    is_probe: bool = False
    is_again: bool = False
    pause_s: float = 0.0


FIRST = History()


class Verdict(Struct, frozen=True):
    """What follows from a failed attempt. `counts`: it counts against the limit of attempts. `mark`: what the call
    notes of the API key. `cuts_rate`: an adaptive lane lowers its rate. `quota`: what becomes of the reserved tokens.
    `money`: whether what was reserved counts, as the attempt may have been billed, or was for a useless answer."""

    again: Again
    learns: Learns
    counts: bool = True
    mark: Literal["", "refused", "doubted"] = ""
    cuts_rate: bool = False
    pause_s: float = 0.0
    quota: Quota = "keep"
    money: Literal["none", "maybe", "sure"] = "none"


class Tries(Struct, gc=False):
    """The attempts of one call. `attempts` are those that count, `sent` all. `refused_by` has a bit for each API key
    that has refused the call, `doubted_by` for each that looked dead: key n has bit n."""

    policy: RetryPolicy
    attempts: int = 0
    sent: int = 0
    maybe_billed: int = 0
    refused_by: int = 0
    doubted_by: int = 0

    def note(self, verdict: Verdict, key: int) -> None:
        """Counts a failed attempt with the API key number `key`, from 0."""
        self.sent += 1
        self.attempts += verdict.counts
        self.maybe_billed += verdict.money == "maybe"
        self.refused_by |= bool(verdict.mark) << key
        self.doubted_by |= (verdict.mark == "doubted") << key


RESTED = Verdict("soon", "nothing")
"""What follows from a back-off that is over."""


def verdict(fault: Fault, history: History = FIRST) -> Verdict:
    """Returns what follows from an attempt that ended with `fault`."""
    policy, attempts = history.policy, history.attempts + 1
    billed = history.maybe_billed + fault.is_billed_maybe
    is_spent = attempts >= policy.attempts_max or billed > policy.billed_repeats_max
    is_spent |= fault.is_repeated_once and attempts > 1
    repeat: Again = "never" if is_spent else "soon" if fault.is_immediate and not history.attempts else "later"
    # Another key may take what this one refuses for the first time, which costs no attempt.
    is_free = history.has_another and not history.is_refused
    pause_s = history.pause_s if fault.retry_after_s is None else fault.retry_after_s or 1.0
    match fault.action:
        case _ if fault.action == "otherwise" or (history.has_instead and (fault.is_full or fault.kind == "timeout")):
            row = Verdict("otherwise", "nothing", counts=False)
        case "retry":
            row = Verdict(repeat, "failure", cuts_rate=fault.cuts_rate)
        case "never":
            row = Verdict("never", "rejection" if fault.kind == "rejected" else "success")
        case "wait":
            row = Verdict("now", "rest", counts=False, pause_s=fault.retry_after_s or 1.0)
        case "throttle" if pause_s > 0:
            # Refused again after a pause: too many calls were let go after it, so fewer go next time.
            row = Verdict("now", "pause", counts=False, mark="refused", cuts_rate=history.is_again, pause_s=pause_s)
        case "throttle":
            again = "now" if is_free or (history.has_another and not is_spent) else repeat
            row = Verdict(again, "refusal", counts=not is_free, mark="refused", cuts_rate=fault.cuts_rate)
        case "confirm":
            learns: Learns = "doubt" if not history.is_suspect else "dead_key" if history.is_probe else "nothing"
            # Where the probe found the key alive, it is this call alone that is forbidden: that one counts.
            counts = history.is_doubted and not is_free
            row = Verdict("pending" if counts and is_spent else "now", learns, counts=counts, mark="doubted")
        case "stop" if fault.kind == "redirect":
            row = Verdict("never", "redirect")
        case _:
            row = Verdict("now", "empty_account", counts=not is_free, mark="refused")
    money = "maybe" if fault.is_billed_maybe else "sure" if fault.quota == "settle" else "none"
    return structs.replace(row, quota=fault.quota, money=money)
