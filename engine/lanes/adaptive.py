"""A lane's own estimate of its rate, for a provider that says "slow down" without saying how far.

The rate is cut once an episode, which lasts until a call that was sent after the cut is answered. The recovery stays
for long just below the rate that failed, and reaches the full rate after four minutes without another 429. Pure
arithmetic on times, in seconds, that are passed in.
"""

from __future__ import annotations

from collections import deque

CUT = 0.5
RECOVERY_S = 240.0
RATE_MIN = 0.1
_SENDS_SEEN = 256


class AdaptiveRate:
    """A lane's reduced rate after refusals, and its recovery. `declared`: the quota's calls per second; None: not
    known. `cut_at`: since when the rate is reduced; None: it is not."""

    def __init__(self, declared: float | None) -> None:
        self.declared = declared
        self._sends: deque[float] = deque(maxlen=_SENDS_SEEN)
        self._full = 0.0
        self._failed_at = 0.0
        self._low = 0.0
        self.cut_at: float | None = None
        self._episode_since = 0.0
        self._is_answered = False
        self._next_at = 0.0

    @property
    def rate(self) -> float | None:
        """The rate that the last cut set, in calls per second; None while nothing limits the lane."""
        return self._low if self.cut_at is not None else None

    def note_send(self, now: float) -> None:
        if self.cut_at is None:
            self._sends.append(now)
        else:
            rate = self._rate_at(now)
            if rate is not None:
                self._next_at = max(self._next_at, now) + 1 / rate

    def wait_s(self, now: float) -> float:
        if self.cut_at is None or self._rate_at(now) is None:
            return 0.0
        return max(0.0, self._next_at - now)

    def note_answer(self, sent_at: float) -> None:
        """Notes an answer to a call of that time, while the rate is reduced."""
        if sent_at > self._episode_since:
            self._is_answered = True

    def cut(self, now: float, sent_at: float, *, is_again: bool = False) -> bool:
        """Halves the rate after a refusal and returns True. Returns False without halving for a call sent before the
        latest cut, and for one sent after it while no call has been answered since (then the recovery only starts
        anew). `is_again`: the provider refused again after its pause; then the second case halves too."""
        if self.cut_at is not None and sent_at <= self.cut_at:
            return False
        if self.cut_at is not None and not self._is_answered and not is_again:
            # Refused at the low rate too, which does not show how much is too much: only the recovery begins anew.
            self.cut_at = now
            self._next_at = now + 1 / self._low
            return False
        self._episode_since, self._is_answered = now, False
        current = self._rate_at(now) if self.cut_at is not None else None
        if current is None:
            current = self._full = self.declared or self._measured(now)
        self._failed_at = current
        self._low = max(RATE_MIN, current * CUT)
        self.cut_at = now
        self._next_at = now + 1 / self._low
        return True

    def _measured(self, now: float) -> float:
        recent = [at for at in self._sends if at > now - 60]
        if len(recent) < 2:
            return 1.0
        return max(RATE_MIN, (len(recent) - 1) / max(0.05, now - recent[0]))

    def _rate_at(self, now: float) -> float | None:
        """Returns the rate allowed now, in calls per second; None when the recovery is over. In its first half it rises
        to the rate that failed, ever slower; in the second from there to the full rate, ever faster."""
        assert self.cut_at is not None
        half = RECOVERY_S / 2
        since = now - self.cut_at
        if since >= RECOVERY_S:
            self.cut_at = None
            self._sends.clear()
            return None
        if since <= half:
            return self._failed_at - (self._failed_at - self._low) * ((half - since) / half) ** 3
        return self._failed_at + (self._full - self._failed_at) * ((since - half) / half) ** 3
