"""Finds how many requests a provider admits: in a minute, at once, in flight, and by which kind of window.

A state machine as a generator: it yields steps and is sent what was seen. One burst to the first refusal; what is
admitted after it tells the kinds apart. Knows no clock, no provider and no budget.
"""

from __future__ import annotations

import math
from collections.abc import Generator

from .bucket import Bucket
from .kinds import Kinds, Next
from .result import Found
from .rounds import Round, Rounds
from .steps import Seen, Step, Steps

# Between the first call and the others: so much earlier it leaves a sliding minute.
APART_S = 4.0
# Who was not refused until then is not met by any limit that matters.
_BURST_MAX_S = 80.0
# After so long, larger steps, where there are many.
_SLOW_S, _MANY = 20.0, 200
_PAUSE_S = 1.0
_MINUTES_MOST, _CALLS_LEAST = 2.95, 14
# What is as good as sure where nothing more can be asked.
_SURE = 0.95
# A refusal for what is in flight asks for no longer wait.
_FLIGHT_S = 2.0
_FEW, _FEW_SENT, _SMALL_BURST = 4, 12, 20
# So often what was refused may have been too many in flight.
_CHANCES, _HALVED_S = 3, 12.0
# Calls that take so long meet all the others of their round.
_LONG_S = 0.75


class RequestProbe:
    """One model's requests. What it finds stands in `found` as soon as it is sure of it."""

    def __init__(self, found: Found, *, in_flight_max: int, requests_max: int) -> None:
        self.found = found
        self._rounds = Rounds(found, in_flight_max)
        self._requests_max = requests_max
        # So many were admitted of more in flight, when so many had been in all.
        self._ceiling: tuple[int, int] | None = None

    @property
    def at_once(self) -> int:
        return self._rounds.at_once

    @property
    def beside(self) -> int:
        return self._rounds.beside

    def steps(self) -> Steps:
        refusal = yield from self._burst()
        if refusal is not None and self._rounds.admitted:
            yield from self._watch(refusal)
        self._judge_ceiling()

    # The first refusal

    def _burst(self) -> Generator[Step, list[Seen], Round | None]:
        """Ever larger rounds until one is refused for its number; None: nothing is."""
        rounds = self._rounds
        first = yield from rounds.ask(1)
        if first.refused:
            return first
        yield from rounds.wait(rounds.now + APART_S)
        chances, halved_s = _CHANCES, math.inf
        while True:
            ceiling = self._ceiling_to_check()
            made = yield from rounds.ask(min(rounds.most, self._next_count()) if ceiling is None else ceiling + 1)
            if ceiling is not None and made.admitted == ceiling and made.refused:
                self.found.concurrency = rounds.most = ceiling
            elif made.refused:
                if made.asked == 1 or self.found.concurrency is not None:
                    return made
                # Whoever was met by a ceiling had as many as ever before, unless calls take no time; and hardly any
                # names one.
                is_less = ceiling is not None or made.admitted < rounds.at_once
                is_sure = made.told_s is not None or made.done_s > made.at_s + _LONG_S
                if not chances or (is_sure and is_less) or (made.told_s or 0.0) > _FLIGHT_S:
                    return made
                chances -= 1
                yield from rounds.wait(max(made.told_at_s or 0.0, rounds.now + _PAUSE_S))
                again = yield from rounds.ask(1)
                if again.refused:
                    return again
                if ceiling is None and made.admitted >= rounds.at_once:
                    self._ceiling = (made.admitted, rounds.admitted - again.admitted)
                    rounds.most = made.admitted
                else:
                    # Of calls that take no time hardly any meet: half as many may be none too many.
                    self._ceiling, rounds.most = None, max(1, min(rounds.most, made.admitted) // 2)
                    halved_s = rounds.now
            elif self._ceiling is not None and made.admitted > self._ceiling[0]:
                # More than before at once: it was no ceiling, and something came back.
                self._ceiling, rounds.most = None, rounds.in_flight_max
            elif rounds.now > halved_s + _HALVED_S:
                # So few are never too many: more comes back meanwhile.
                rounds.most, chances, halved_s = rounds.in_flight_max, 0, math.inf
            self.found.tested_rpm = max(self.found.tested_rpm, rounds.admitted)
            if rounds.admitted >= self._requests_max or rounds.now - rounds.all[0].at_s > _BURST_MAX_S:
                return None

    def _ceiling_to_check(self) -> int | None:
        """One that was met once; where calls are few, it is not worth them."""
        if self.found.concurrency is not None or self._ceiling is None:
            return None
        admitted = self._ceiling[0]
        return admitted if admitted > _FEW or self._rounds.admitted > _FEW_SENT else None

    def _next_count(self) -> int:
        """A part more than before, or up to what the headers say is left: as many calls are refused as are too many."""
        sent = self._rounds.admitted
        count = _FEW if sent <= 1 else max(1, sent // (4 if sent < 16 else 3 if sent < 100 else 2))
        if sent >= _MANY and self._rounds.now - self._rounds.all[0].at_s > _SLOW_S:
            count *= 2
        count = min(count, self._requests_max - sent) if sent < self._requests_max else 1
        left = self._rounds.last.remaining
        if left is None:
            return count
        # A little more: a bucket fills while answers come.
        return min(
            2 * count if sent > _FEW_SENT else count, max(int(left * (1.125 if sent > 40 else 1.0)) + 1, sent // 16)
        )

    # What is admitted after it

    def _watch(self, refusal: Round) -> Steps:
        """Tell the kinds of windows apart by what is admitted again, and when."""
        rounds = self._rounds
        burst = [rounds.event(each, is_last=each is refusal) for each in rounds.all]
        kinds = Kinds(burst, self.found.told_rpm, rounds.doubt_s)
        if refusal.told_s is not None:
            # Whether that is true is told by one call, at just that time.
            yield from rounds.wait(rounds.earliest_s)
            kinds.learn(rounds.event((yield from rounds.ask(1))))
        while not kinds.is_void:
            left = max(_CALLS_LEAST, _MINUTES_MOST * kinds.likely_least()) - rounds.calls
            if not kinds.is_known:
                chosen = kinds.next(rounds.earliest_s, self._safely_at_once(), left) if left >= 1 else None
            elif kinds.kind[0] != "bucket" and 0 < kinds.unproven <= left:
                chosen = Next(rounds.earliest_s, kinds.unproven)
            else:
                chosen = None
            if chosen is None:
                break
            yield from rounds.wait(chosen.at_s)
            kinds.learn(rounds.event((yield from rounds.ask(chosen.calls))))
        if kinds.is_void or kinds.kind[1] < _SURE:
            return
        if kinds.kind[0] == "bucket":
            self.found.window = "bucket"
            yield from Bucket(rounds, refusal, kinds.rates()).measure()
        elif (holds := kinds.holds(_SURE)) is not None and not kinds.unproven:
            self.found.window = kinds.kind[0]
            self.found.rpm = self.found.burst = float(holds)

    # What was in flight

    def _safely_at_once(self) -> int:
        """So many that none is refused for those in flight, though answers may be slower than they were."""
        most = min(self._rounds.most, self._rounds.at_once)
        return most if self.found.concurrency is not None or most <= _SMALL_BURST else most // 2

    def _judge_ceiling(self) -> None:
        """Of few calls in flight one was refused when much more was left: that was for those in flight."""
        found = self.found
        if found.burst is None:
            return
        if found.concurrency is None and self._ceiling is not None and self._ceiling[1] < found.burst:
            found.concurrency = self._ceiling[0]
        if found.concurrency is not None and found.burst <= found.concurrency:
            found.concurrency = None
