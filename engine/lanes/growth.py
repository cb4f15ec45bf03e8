"""How many calls a lane has in flight while nobody says how many it may have: it begins with few, and doubles them as
long as that brings more answers.

A round counts as many answers as calls may be in flight, after the calls that were in flight at its beginning have been
answered. Knows no call and no provider; times are passed in, in seconds. Refusals: adaptive.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

START = 16
# Doubled calls in flight bring twice the answers while there is room, and none more if the server is full, or this
# process. In between, the last doubling was right; half a doubling decides.
_PAYS = 1.5
# A gain that is smaller than this is none. With a larger one the server needs as many more, and some to spare.
_NOISE = 1.05
_SPARE = 1.1
# So many rounds later it is tried again, each time twice as many: calls may have become slower, or the server larger.
_TRIED_AFTER = 4
# Fewer answers say too little of how many there are in a second.
_ROUND = 32
# What was answered lately is counted over so many seconds and answers at least: the time before a limit was found, or
# after a cut that went too deep, would make it less than what may be sent now.
_LATELY_S = 20.0
_LATELY = 60

Found = Literal["", "slow", "refused"]


class GrownIn(NamedTuple):
    """What a growth takes, in latencies of a call, and the calls that are answered meanwhile."""

    latencies: float
    calls: float


def grown_in(calls: float, most: float) -> GrownIn:
    """Returns what it takes from the first call on until `most` are in flight, or until so many are answered, if
    every doubling pays."""
    ceiling, latencies, answered = START, 0.0, 0.0
    while ceiling < most and answered < calls:
        answers = max(_ROUND, ceiling) + ceiling  # a round, then one answer for each call more
        latencies += min(answers, calls - answered) / ceiling
        answered += answers
        ceiling *= 2
    return GrownIn(latencies, min(answered, calls))


class Growth:
    """The calls in flight of one API key. `ceiling`: the most now, up to `most`. `answers`: those since the round or
    its last step began; at `turn_at` of them, `turn` is due. `is_full`: a call had to wait for a place in this round.
    `found`: why it stopped growing; empty: it did not. `per_s`: the answers a second of the last round, 0.0: there was
    none."""

    def __init__(self, most: int, ceiling: int = START, reason: Found = "") -> None:
        self.most = most
        self.ceiling = self._aim = min(most, ceiling)
        self._patient = 1
        self.turn_at = 1
        self.answers = 0
        self.is_full = False
        self.found = reason
        self._is_trial = True
        # The ceiling and the answers a second before the trial.
        self._base: tuple[int, float] | None = None
        self._rounds_left = self._pause = _TRIED_AFTER
        self._round_began: float | None = None
        self.per_s = 0.0
        self._total = 0
        # Two times not long ago, and the answers until then.
        self._before = self._lately = (0.0, 0)

    @property
    def _round(self) -> int:
        """How many answers a round has: after the first stop more, since there is time to be sure."""
        return self._patient * max(_ROUND, self.ceiling)

    @property
    def has_answers(self) -> bool:
        return self._total + self.answers > 0

    @property
    def proven(self) -> int:
        """The calls in flight, without a doubling that has not shown yet whether it brings more answers."""
        return self._base[0] if self._is_trial and self._base is not None else self.ceiling

    def fix(self, most: int) -> None:
        """Lets so many calls be in flight for good, since a quota sets the pace."""
        self.most = self.ceiling = self._aim = most
        self.turn_at = self._round
        self._is_trial, self.found = False, ""

    def turn(self, now: float, sent_at: float) -> None:
        """Ends a round, or lets one more call be in flight for each answer on the way to twice as many: not all at
        once, since a provider may refuse a burst that it would bear over time. `sent_at`: when the call was sent that
        was answered now."""
        if self._round_began is None:
            self._begin(sent_at)
            return
        self._total += self.answers
        answers, self.answers = self.answers, 0
        if self.ceiling < self._aim:
            self.ceiling = min(self._aim, self.ceiling + answers)
            if self.ceiling == self._aim:
                self.turn_at, self._round_began = self._round, now
            return
        if now - self._lately[0] >= _LATELY_S and self._total - self._lately[1] >= _LATELY:
            self._before, self._lately = self._lately, (now, self._total)
        per_s = self.per_s = answers / max(1e-3, now - self._round_began)
        self._round_began = now
        was_full, self.is_full = self.is_full, False
        if not was_full:
            return
        if not self._is_trial:
            self._rounds_left -= 1
            if self._rounds_left <= 0:
                self._double(per_s)
        elif self._base is None or per_s >= _PAYS * self._base[1]:
            self._double(per_s)
        else:
            gain = per_s / self._base[1]
            self._stop("slow", round(self._base[0] * (_SPARE * gain if gain >= _NOISE else 1.0)))

    def _double(self, per_s: float) -> None:
        self._is_trial, self._base = self.ceiling < self.most, (self.ceiling, per_s)
        if self._is_trial:
            self._aim, self.turn_at = min(2 * self.ceiling, self.most), 1

    def _begin(self, sent_at: float) -> None:
        """Begins to count at the send of one of the first calls."""
        if self._round_began is None:
            self._round_began, self.turn_at = sent_at, self._round
            self._before = self._lately = (sent_at, 0)

    def refused(self, now: float, *, is_cut: bool) -> None:
        """Ends the growth for now, since a call was refused. `is_cut`: that cut the rate, so that what was answered
        before says nothing of what will be."""
        if self._is_trial:
            self._stop("refused", self.ceiling)
        if is_cut:
            self.found = "refused"
            self._before = self._lately = (now, self._total + self.answers)

    def _stop(self, found: Found, ceiling: int) -> None:
        self.ceiling = self._aim = min(ceiling, self.most)
        self._patient = 4
        self.turn_at = self._round
        self._is_trial, self._base, self.found = False, None, found
        self._rounds_left = self._pause
        self._pause *= 2

    def accepted(self, now: float, sent_at: float) -> float:
        """Returns how many calls a second were answered lately, as one that was sent then is refused."""
        self._begin(sent_at)
        since, before = self._before
        return (self._total + self.answers - before + 0.5) / max(1.0, now - since)
