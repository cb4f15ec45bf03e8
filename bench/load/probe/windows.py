"""Tells a sliding minute from one that begins anew, and how much either holds.

A state machine as a generator, for what is seen where the first call's minute ends. Knows no clock and no provider.
"""

from __future__ import annotations

from collections.abc import Generator

from .rounds import Round, Rounds
from .steps import Seen, Step, Steps

MINUTE_S = 60.0
_APART_S = 2.0
# A part of what is known to be there, by which more is tried.
_SPARE = 32
_SLIGHT, _SURE, _CHECKS = 0.02, 0.975, 6
_MINUTES_MOST = 2.9


class Windows:
    """What is asked for, and what follows from it, once no bucket explains what was seen."""

    EDGE_S = 1.5

    def __init__(self, rounds: Rounds) -> None:
        self._rounds = rounds
        self._found = rounds.found

    def told_edge(self) -> float | None:
        """When the wait that two refusals told would be over, if they tell a part of it only."""
        told = [each for each in self._rounds.all[-2:] if each.refused and each.told_s is not None]
        if len(told) < 2:
            return None
        one, two = told
        if one.told_s is None or two.told_s is None or one.refused_s is None or two.refused_s is None:
            return None
        passed, told_less = two.refused_s - one.refused_s, one.told_s - two.told_s
        if not 0.1 * passed < told_less < 0.95 * passed:
            return None
        return two.refused_s + two.told_s * passed / told_less + 2 * self._rounds.late_s

    def at_the_edge(self, before: int, told_at_s: float | None, edge_s: float) -> Steps:
        """The first call has left a sliding minute, the others have not: of two, a sliding one admits one. Where
        Retry-After asks for longer, it can only be true of a window that ended during the burst."""
        rounds = self._rounds
        made = yield from rounds.ask(2)
        if told_at_s is not None and told_at_s > edge_s + _APART_S:
            # Told in whole seconds, it may have ended one sooner.
            sure = sum(each.admitted for each in rounds.all[:-1] if each.at_s > told_at_s - MINUTE_S)
            sure = sure or rounds.all[-2].admitted
            if made.admitted == 2 and sure:
                self.settle("fixed", (yield from self.fill(sure, 2, before)))
        elif made.admitted == 1 and made.refused:
            self.settle("sliding", before)
        elif made.admitted == 2 and told_at_s is not None and told_at_s > edge_s:
            self.settle("fixed", (yield from self.fill(before - rounds.all[0].admitted, 2, before)))
        elif made.admitted == 2:
            # One that ended just after the first call's minute did not hold that call.
            self.settle("fixed", before - (rounds.all[0].admitted if told_at_s is None else 0))
        else:
            yield from self._find_edge_in_burst(made, before)

    def fill(self, least: int, admitted: int, most: int) -> Generator[Step, list[Seen], int]:
        """Use up a window that has just begun and so many calls are in. It is likely to hold `least`; more than `most`
        were in two, and what holds more is none. 0: it is none."""
        while admitted <= most:
            count = least - admitted if admitted < least else max(1, least // _SPARE)
            made = yield from self._rounds.ask(min(self._rounds.most, count))
            admitted += made.admitted
            if made.refused and admitted <= most:
                return admitted
        return 0

    def _find_edge_in_burst(self, refused: Round, before: int) -> Steps:
        """A fixed window ended during the burst itself: what came after its end is what a window holds."""
        rounds = self._rounds
        last = refused
        burst = [each for each in rounds.all if each.admitted and each.at_s < refused.at_s]
        guessed = self.told_edge()
        if guessed is not None:
            yield from rounds.wait(guessed)
            if (yield from rounds.ask(1)).admitted:
                self.settle("fixed", sum(each.admitted for each in burst if each.at_s > guessed - MINUTE_S))
            return
        counted, passed = before - burst[0].admitted, 0
        for each in burst[1:]:
            at = max(each.at_s + MINUTE_S - 0.1, last.at_s + (last.told_s or 0.0))
            passed += each.admitted
            # Few more or less make no difference, and what is refused again and again is not asked for more often.
            is_slight = at <= rounds.now + 0.2 or passed < max(_SLIGHT * counted, before / _CHECKS)
            if is_slight and each is not burst[-1]:
                continue
            yield from rounds.wait(at)
            last = yield from rounds.ask(1)
            if last.admitted:
                yield from self._settle_between(counted - passed + each.admitted, counted, before)
                return
            counted, passed = counted - passed, 0
        yield from rounds.wait(rounds.now + self.EDGE_S + (last.told_s or 0.0))
        if (yield from rounds.ask(1)).admitted:
            # It ended while the last calls were on their way: on which side they fell, nobody can tell.
            self.settle("fixed", before - burst[-1].admitted)

    def _settle_between(self, least: int, most: int, before: int) -> Steps:
        """A window has just begun, and one call is in."""
        if least < _SURE * most and self._rounds.calls + most < _MINUTES_MOST * most:
            least = yield from self.fill(least, 1, before)
        self.settle("fixed", least)

    def settle(self, window: str, count: int) -> None:
        if count < 1:
            return
        self._found.window = "fixed" if window == "fixed" else "sliding"
        self._found.rpm = self._found.burst = float(count)
