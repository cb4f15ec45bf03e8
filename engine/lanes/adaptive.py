"""A lane's own estimate of its rate, for a provider that says "slow down" without saying how far.

The rate is cut once an episode, which lasts until a call that was sent after the cut is answered. The recovery stays
for long near the rate that failed. Of a known quota it reaches the full rate after four minutes without another 429. A
hidden one it goes on testing, ever more rarely while the same rate is found. Pure arithmetic on times, in seconds, that
are passed in.
"""

from __future__ import annotations

from math import sqrt

CUT = 0.5
RECOVERY_S = 240.0
RATE_MIN = 0.1
# A hidden rate is looked for just below the one that failed, and a cut goes hardly deeper: a provider refuses at once
# what is too much, so the search need not stay away from the limit to be safe. The product is the least share used.
HIDDEN_BELOW = 0.99
HIDDEN_CUT = 0.03
# Half of the time from one test to the next: the first comes soon and after some calls, since the first estimates are
# poor. The last ones cost a refusal in some four minutes, which is 1% of the calls at a rate of 0.4 a second.
TESTED_S = (8.0, 150.0)
_TESTED_CALLS = 10.0
# A rate that failed at most so far above the last estimate confirms it, and the next test may come later.
_SAME = 1.2
# What was sent lately is at most so many times what was answered.
_SENT_MOST = 8.0
# Where everything was refused for longer than this, the provider counts calls over a long time, such as a minute.
_LONG_S = 25.0
# The least first estimate, since a lane that was hardly used has hardly an answer.
_BEGIN = 1.0
# A limit refuses calls together: until an episode is so old, or while fewer than this share is refused in so many
# seconds, refusals are remains of the last one, or chance.
_EPISODE_S = 1.0
_CHANCE = 0.01
_CHANCE_S = 2.0
# The rate was found by an earlier process: the recovery begins in its middle, at the first send.
_NOT_BEGUN = float("-inf")
# A call that goes this late does not delay the next ones.
_LATE_S = 0.05


class AdaptiveRate:
    """A lane's reduced rate after refusals, and its recovery. `declared`: the quota's calls per second; None: not
    known. `is_hidden`: nothing at all is known of a quota. `cut_at`: since when the rate is reduced; None: it is not.
    `begin`: the rate that an earlier process found, and `is_old`: so long ago that it may well have changed."""

    def __init__(
        self, declared: float | None, *, is_hidden: bool = False, begin: float | None = None, is_old: bool = False
    ) -> None:
        self.declared = declared
        self.is_hidden = is_hidden
        self.cut_at = None if begin is None else _NOT_BEGUN
        # The recovery is level at this rate at half its time; it begins at a share `_depth` below, and ends as much
        # above as `_rise` says.
        self._level = self._full = begin or 0.0
        self._depth, self._rise = HIDDEN_CUT, HIDDEN_CUT
        self._half_s = TESTED_S[0] if is_old else TESTED_S[1] / 2
        self._tested_at = self._episode_since = _NOT_BEGUN
        self._is_answered = True
        # How long nothing but refusals came after the latest cut.
        self._refused_s = 0.0
        self._next_at = 0.0
        self._refusals, self._refusals_since = 0, 0.0

    @property
    def rate(self) -> float | None:
        """The rate that the last cut set, in calls per second; None while nothing limits the lane."""
        return max(RATE_MIN, self._level * (1 - self._depth)) if self.cut_at is not None else None

    @property
    def found(self) -> float | None:
        """The hidden rate as far as refusals have shown it; None: they have not."""
        return self._level if self.is_hidden and self.cut_at is not None else None

    def know(self) -> None:
        """Ends the search for a hidden rate, since a quota is known."""
        self.is_hidden = False
        if self.cut_at == _NOT_BEGUN:
            self.cut_at = None

    def note_send(self, now: float) -> None:
        """Notes a send while the rate is reduced."""
        rate = self._rate_at(now)
        if rate is not None:
            self._next_at = max(self._next_at, now - _LATE_S * self.is_hidden) + 1 / rate

    def wait_s(self, now: float) -> float:
        if self.cut_at is None or self._rate_at(now) is None:
            return 0.0
        return max(0.0, self._next_at - now)

    def note_answer(self, sent_at: float) -> None:
        """Notes an answer to a call of that time, while the rate is reduced."""
        if not self._is_answered and sent_at > self._episode_since:
            self._is_answered, self._refused_s = True, sent_at - self._episode_since

    def cut(self, now: float, sent_at: float, accepted: float, *, is_again: bool = False) -> bool:
        """Cuts the rate after a refusal and returns True. Returns False without that for a call sent before the latest
        cut, and for one sent after it while no call has been answered since (then the recovery only starts anew).
        `accepted`: how many calls a second were answered lately. `is_again`: the provider refused again after its
        pause; then the second case cuts too."""
        if self.cut_at is not None:
            if sent_at <= (self._episode_since + _EPISODE_S if self.is_hidden else self.cut_at):
                return False
            if not self._is_answered and not is_again:
                # Refused at the low rate too, which does not show how much is too much: only the recovery begins anew.
                self.cut_at = now
                self._next_at = now + 1 / (self.rate or RATE_MIN)
                return False
        current = self._rate_at(now) if self.cut_at is not None else None
        if self.is_hidden and current is not None:
            if self._is_chance(now, min(current, accepted)):
                return False
            current = self._rate_at(max(sent_at, self.cut_at or now)) or current
        self._episode_since, self._is_answered = now, False
        if self.is_hidden:
            self._find(now, current, accepted)
        else:
            if current is None:
                current = self._full = self.declared or max(RATE_MIN, accepted)
            self._level, self._depth, self._half_s = current, CUT, RECOVERY_S / 2
            self._rise = self._full / current - 1
        self.cut_at = self._tested_at = now
        self._next_at = now + 1 / (self.rate or RATE_MIN)
        return True

    def _is_chance(self, now: float, per_s: float) -> bool:
        """Whether no more calls were refused lately than a provider refuses of any rate."""
        if now > self._refusals_since + _CHANCE_S:
            self._refusals, self._refusals_since = 0, now
        self._refusals += 1
        return self._refusals <= _CHANCE * _CHANCE_S * per_s

    def _find(self, now: float, failed: float | None, accepted: float) -> None:
        """Estimates a hidden rate between the one that failed and what was answered: the first is above it, and the
        second below, since it has times of lower rates. Without an estimate, only the second is known."""
        if failed is None or failed > _SENT_MOST * accepted:
            # Calls were few, or the places for them: the rate that failed was allowed, not sent.
            self._level, self._half_s = max(_BEGIN, accepted), TESTED_S[0]
            self._rise = HIDDEN_CUT if failed else 1.0
        else:
            tested_s = 1.25 * (now - self._tested_at) if failed < _SAME * self._level else 0.0
            answered = min(failed, accepted)
            between = max(failed / 2, sqrt(failed * answered))
            if self._refused_s > _LONG_S:
                # Only the mean counts, and before as much is sent again, the refusals must have had their time.
                between, tested_s = answered, 2 * self._refused_s
            self._level = max(RATE_MIN, HIDDEN_BELOW * between)
            self._half_s = min(TESTED_S[1], max(TESTED_S[0], _TESTED_CALLS / self._level, tested_s))
            self._rise = HIDDEN_CUT
        self._refusals = 0

    def _rate_at(self, now: float) -> float | None:
        """Returns the rate allowed now, in calls per second; None when the recovery is over. In its first half it rises
        to the level, ever slower; afterwards above it, ever faster."""
        assert self.cut_at is not None
        if self.cut_at == _NOT_BEGUN:
            self.cut_at = now - self._half_s
        past = (now - self.cut_at) / self._half_s - 1
        if past >= 1 and not self.is_hidden:
            self.cut_at = None
            return None
        return max(RATE_MIN, self._level * (1 + (self._depth if past < 0 else self._rise) * past**3))
