"""How fast a bucket fills, narrowed by every call that it admits or refuses.

Pure arithmetic: a bucket that was empty but for a rest below one, the amounts taken since, and the rates that agree.
"""

from __future__ import annotations

_RESTS = 64
_NARROW = 1.028
# How far from a guess a rate may be that it stands for.
_BAND = 0.012


class FillRate:
    """The rates (a second) that agree with what was seen since a refusal at `since_s`. A call is decided up to `late_s`
    after it was sent."""

    def __init__(self, since_s: float, late_s: float, least: float = 0.0, most: float = 1e4) -> None:
        self.since_s = since_s
        self.late_s = late_s
        self.taken = 0
        self._by_rest = {place / _RESTS: (least, most) for place in range(_RESTS)}

    def learn(self, at_s: float, admitted: int, is_refused: bool) -> None:
        """At this time so many more were admitted, and perhaps one was refused."""
        elapsed = at_s - self.since_s
        longest, shortest = elapsed + self.late_s, max(1e-9, elapsed - self.late_s)
        agreeing = {}
        for rest, (least, most) in self._by_rest.items():
            if admitted:
                least = max(least, (self.taken + admitted - rest) / longest)
            if is_refused:
                most = min(most, (self.taken + admitted + 1 - rest) / shortest)
            if least <= most:
                agreeing[rest] = (least, most)
        self.taken += admitted
        if agreeing:
            self._by_rest = agreeing

    @property
    def least(self) -> float:
        return min(least for least, _ in self._by_rest.values())

    @property
    def most(self) -> float:
        return max(most for _, most in self._by_rest.values())

    @property
    def is_narrow(self) -> bool:
        return self.least > 0 and self.most <= _NARROW * self.least

    def time_of(self, amount: int, guesses: tuple[float, ...] = ()) -> float:
        """When so much more is as likely to be there as not, if one of these rates is the true one: the first that
        still agrees counts."""
        for guess in guesses:
            bands = [
                (rest, max(least, guess * (1 - _BAND)), min(most, guess * (1 + _BAND)))
                for rest, (least, most) in self._by_rest.items()
            ]
            bands = [(rest, least, most) for rest, least, most in bands if least <= most]
            if bands:
                break
        else:
            bands = [(rest, least, most) for rest, (least, most) in self._by_rest.items()]
        middles = sorted((self.taken + amount - rest) / ((least + most) / 2) for rest, least, most in bands)
        return self.since_s + middles[len(middles) // 2]
