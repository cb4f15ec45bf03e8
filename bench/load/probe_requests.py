"""Finds how many requests a provider admits: in a minute, at once, in flight, and by which kind of window.

A state machine as a generator: it yields steps and is sent what was seen. One burst to the first refusal, then the
times at which something is admitted again tell the kind. Knows no clock, no provider and no budget.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import NamedTuple

from .probe_rate import FillRate
from .probe_result import Found
from .probe_steps import SMALL, Ask, Seen, Step, Steps, Wait, told_wait_s

MINUTE_S = 60.0
# Between the first call and the others: so much earlier it leaves a sliding minute.
APART_S = 4.0
_EDGE_S = 1.5
_JUST_S = 0.05
# A burst has to end before its first calls leave a sliding minute.
_BURST_MAX_S = 50.0
_PAUSE_S = 1.0
_FILL_MAX_S = 25.0
_FILL_MOST = 40
_ROUNDS_MAX = 40
_SURE_SHARE = 0.975
# A part of what is known to be there, by which more is tried.
_SPARE = 32
_LATE_MAX_S = 0.25


class Round(NamedTuple):
    """What came of calls that were sent at once."""

    at_s: float
    admitted: int
    refused: int
    told_s: float | None


class RequestProbe:
    """One model's requests. What it finds stands in `found` as soon as it is sure of it."""

    def __init__(self, found: Found, *, in_flight_max: int, requests_max: int) -> None:
        self.found = found
        self._most = in_flight_max
        self._requests_max = requests_max
        self._now = 0.0
        self.late_s = _LATE_MAX_S
        self.beside = 0
        self._released_s: float | None = None
        self._remaining: float | None = None
        self.at_once = self._capacity = 1
        self._rounds: list[Round] = []

    def steps(self) -> Steps:
        refusal = yield from self._burst()
        if refusal is not None:
            yield from self._watch(refusal)

    # What is sent

    def _ask(self, count: int, last_after_s: float = 0.0) -> Generator[Step, list[Seen], Round]:
        seen = yield Ask((SMALL,) * count, last_after_s)
        self._now = max(one.done_s for one in seen)
        self.late_s = min(self.late_s, *(one.done_s - one.sent_s for one in seen))
        self.beside = max(self.beside, *(one.answer.tokens - one.size for one in seen))
        refusals = [one for one in seen if one.is_refused]
        admitted = sum(one.is_admitted for one in seen)
        told = [limit for one in seen for limit in one.answer.limits if limit.of == "requests"]
        left = [limit.remaining for limit in told if limit.remaining is not None]
        self._remaining = min(left) if left else None
        self.at_once = max(self.at_once, admitted if not last_after_s else 0)
        made = Round(seen[0].sent_s, admitted, len(refusals), told_wait_s(refusals))
        self._rounds.append(made)
        return made

    def _wait(self, until_s: float) -> Steps:
        if until_s > self._now:
            yield Wait(until_s)
            self._now = until_s

    @property
    def _sent(self) -> int:
        return sum(each.admitted for each in self._rounds)

    # The first refusal

    def _burst(self) -> Generator[Step, list[Seen], Round | None]:
        """Ever larger rounds until one is refused for its number; None: nothing is."""
        first = yield from self._ask(1)
        if first.refused:
            return first
        yield from self._wait(self._now + APART_S)
        is_known = False
        while True:
            count = min(self._most, self._next_count())
            made = yield from self._ask(count)
            if made.refused:
                if is_known or self.found.concurrency is not None:
                    return made
                is_known = True
                if not (yield from self._is_ceiling(made)):
                    if self._rounds[-1].refused:
                        return self._rounds[-1]
                    # More than before at once: it was no ceiling, and something came back.
                    self._released_s = made.at_s
            self.found.tested_rpm = max(self.found.tested_rpm, self._sent)
            if self._sent >= self._requests_max or self._now - self._rounds[0].at_s > _BURST_MAX_S:
                return None

    def _next_count(self) -> int:
        """A half more than before, or up to what the headers say is left: as many calls are refused as are too many."""
        sent = self._sent
        count = {1: 2, 3: 4}.get(sent, max(1, sent // 2))
        count = min(count, self._requests_max - sent) if sent < self._requests_max else 1
        if self._remaining is None:
            return count
        # A little more: a bucket fills while answers come.
        return min(count, max(int(self._remaining * 1.125) + 1, sent // 16))

    def _is_ceiling(self, made: Round) -> Generator[Step, list[Seen], bool]:
        """Whether calls were refused for those in flight: then as many as before are admitted as soon as these ended,
        and one more while they last is not."""
        if made.admitted == 0 or made.told_s is not None:
            return False
        known, self._most = self._most, made.admitted
        yield from self._wait(self._now + _PAUSE_S)
        for count in (1 if made.admitted > 4 else made.admitted, made.admitted):
            if (yield from self._ask(count)).refused:
                return False
        over = yield from self._ask(made.admitted + 1, self.late_s / 2)
        if over.admitted > made.admitted:
            self._most = known
        if over.admitted != made.admitted:
            return False
        self.found.concurrency = made.admitted
        return True

    # What is admitted after it

    def _watch(self, refusal: Round) -> Steps:
        """Wait as told, or ever longer, for the first call that is admitted again."""
        begun = self._rounds[0].at_s
        before = self._sent
        edge = begun + MINUTE_S
        fill = FillRate(refusal.at_s, self.late_s)
        # A bucket that holds a minute's requests or less has one again by then.
        pause = max(_PAUSE_S, 0.6 * MINUTE_S / before)
        last, promised = refusal, refusal.told_s
        while True:
            least = self._now if promised is None else last.at_s + promised + self.late_s
            at = least if promised is not None and not self.found.promises_broken else max(least, self._now + pause)
            if at > edge - _JUST_S:
                if least > edge - _JUST_S or last.at_s > edge - 4 * _JUST_S:
                    yield from self._wait(max(least, edge + _EDGE_S))
                    yield from self._at_the_edge(before, None if promised is None else least, edge)
                    return
                at = edge - _JUST_S
            yield from self._wait(at)
            made = yield from self._ask(1)
            if promised is not None:
                self.found.note_promise(kept=made.admitted > 0)
            fill.learn(made.at_s, made.admitted, made.refused > 0)
            if made.admitted:
                yield from self._after_release(refusal, last, made, before, fill)
                return
            pause *= 2
            promised, last = made.told_s, made

    def _after_release(self, refusal: Round, last: Round, made: Round, before: int, fill: FillRate) -> Steps:
        """Something is admitted while the first call still counts in any sliding minute: a window began, or a bucket
        fills. A bucket that had less than one can't have many now."""
        asked_s, held_s = made.at_s - refusal.at_s, last.at_s - refusal.at_s
        most = before // 2 + 2 if held_s <= 0 else min(before, 3 + 2 * asked_s / held_s)
        # No two windows end within a minute.
        is_bucket = self._released_s is not None and made.at_s < self._released_s + MINUTE_S
        admitted, count = 1, 1
        while True:
            count = min(self._most, count if is_bucket else max(1, min(count, before - admitted)))
            more = yield from self._ask(count)
            fill.learn(more.at_s, more.admitted, more.refused > 0)
            admitted += more.admitted
            if more.refused and (is_bucket or admitted < before):
                self.found.window = "bucket"
                yield from self._measure_bucket(fill, more, refusal)
                return
            if not is_bucket and (more.refused or admitted >= min(before, most)):
                self._settle("fixed", before)
                return
            # Quickly, lest a bucket fills meanwhile.
            count *= 4

    def _at_the_edge(self, before: int, told_at_s: float | None, edge_s: float) -> Steps:
        """The first call has left a sliding minute, the others have not: of two, a sliding one admits one. Where
        Retry-After asks for longer, it can only be true of a window that ended during the burst."""
        made = yield from self._ask(2)
        if told_at_s is not None:
            self.found.note_promise(kept=made.admitted > 0)
        if told_at_s is not None and told_at_s > edge_s + APART_S / 2:
            # Told in whole seconds, it may have ended one sooner.
            sure = sum(each.admitted for each in self._rounds[:-1] if each.at_s > told_at_s - MINUTE_S)
            if made.admitted == 2 and sure:
                yield from self._fill_window(sure)
        elif made.admitted == 1:
            self._settle("sliding", before)
        elif made.admitted == 2 and told_at_s is not None and told_at_s > edge_s:
            yield from self._fill_window(before - self._rounds[0].admitted)
        elif made.admitted == 2:
            # One that ended just after the first call's minute did not hold that call.
            self._settle("fixed", before - (self._rounds[0].admitted if told_at_s is None else 0))
        else:
            yield from self._find_edge_in_burst(made, before)

    def _fill_window(self, least: int) -> Steps:
        """Use up a window that has just begun and two calls are in: it holds so many at the least."""
        admitted = 2
        while True:
            count = least - admitted if admitted < least else max(1, least // _SPARE)
            made = yield from self._ask(min(self._most, count))
            admitted += made.admitted
            if made.refused:
                self._settle("fixed", admitted)
                return

    def _find_edge_in_burst(self, refused: Round, before: int) -> Steps:
        """A fixed window ended during the burst itself: what came after its end is what a window holds."""
        last = refused
        burst = [each for each in self._rounds if each.admitted and each.at_s < refused.at_s]
        counted = before - burst[0].admitted
        for each in burst[1:]:
            at = max(each.at_s + MINUTE_S - 0.1, last.at_s + (last.told_s or 0.0))
            if at <= self._now + 0.2 and each is not burst[-1]:
                counted -= each.admitted
                continue
            yield from self._wait(at)
            last = yield from self._ask(1)
            if last.admitted:
                self._settle("fixed", counted)
                return
            counted -= each.admitted
        yield from self._wait(self._now + _EDGE_S + (last.told_s or 0.0))
        if (yield from self._ask(1)).admitted:
            # It ended while the last calls were on their way: on which side they fell, nobody can tell.
            self._settle("fixed", before - burst[-1].admitted)

    def _settle(self, window: str, count: int) -> None:
        self.found.window = "fixed" if window == "fixed" else "sliding"
        self.found.rpm = self.found.burst = float(count)

    # A bucket's own

    def _measure_bucket(self, fill: FillRate, last: Round, refusal: Round) -> Steps:
        self._capacity = self._first_capacity(fill, refusal)[0]
        fill = yield from self._narrow(fill, last)
        if fill.is_narrow:
            self.found.rpm = fill.least * MINUTE_S
        yield from self._measure_capacity(fill, refusal)

    def _narrow(self, fill: FillRate, last: Round) -> Generator[Step, list[Seen], FillRate]:
        """Ask for so much that it is as likely to be there as not, until one rate is left."""
        told = self.found.told_rpm
        # Many buckets hold a whole minute.
        guesses = (self._capacity / MINUTE_S, *(() if told is None else (told / MINUTE_S,)))
        in_vain = refused = 0
        for _ in range(_ROUNDS_MAX):
            if fill.is_narrow:
                break
            most = max(1, min(_FILL_MOST, int(0.6 * self.at_once), self._most - 1))
            while most > 1 and fill.time_of(most, guesses) > self._now + _FILL_MAX_S:
                most -= 1
            at = best = max(fill.time_of(most, guesses), self._now)
            if last.refused and last.told_s is not None:
                at = max(at, last.at_s + last.told_s + self.late_s)
            elif refused > 1:
                # What is refused again and again is left alone for ever longer.
                at = max(at, self._now + min(_FILL_MAX_S, _PAUSE_S * 2 ** (refused - 2)))
            yield from self._wait(at)
            made = yield from self._ask(most)
            if last.refused and last.told_s is not None:
                self.found.note_promise(kept=made.admitted > 0)
            fill.learn(made.at_s, made.admitted, made.refused > 0)
            in_vain = 0 if made.refused else in_vain + (at == best)
            refused = 0 if made.admitted else refused + 1
            last = made
            if in_vain == 2:
                guesses = guesses[1:]
            if in_vain == 3:
                # It fills faster than thought, and may have been full: begin again, from empty.
                guesses, in_vain = (), 0
                last = yield from self._empty()
                fill = FillRate(last.at_s, self.late_s, least=fill.least)
        return fill

    def _empty(self) -> Generator[Step, list[Seen], Round]:
        count = 1
        while True:
            made = yield from self._ask(min(count, self._most))
            if made.refused:
                return made
            count = min(count * 2, max(1, self.at_once))

    def _measure_capacity(self, fill: FillRate, refusal: Round) -> Steps:
        """What the first burst tells, or, where that is not enough, what a bucket holds after a minute of rest."""
        least, most = self._first_capacity(fill, refusal)
        if least >= _SURE_SHARE * most:
            self.found.burst = float(least)
            return
        yield from self._wait(self._now + MINUTE_S + 1)
        admitted, begun, guess = 0, self._now, most
        while True:
            made = yield from self._ask(min(self._most, guess + 1 if not admitted else max(1, guess // 4)))
            admitted += made.admitted
            if made.refused:
                # What came back meanwhile is no part of what it holds.
                self.found.burst = float(max(1, int(admitted - fill.most * (made.at_s - begun + self.late_s))))
                return

    def _first_capacity(self, fill: FillRate, refusal: Round) -> tuple[int, int]:
        """Between which whole numbers a bucket lies that admitted the first burst and no more."""
        least = most = lacks_least = lacks_most = 0.0
        before_s = self._rounds[0].at_s
        for each in self._rounds:
            elapsed = each.at_s - before_s
            # How far below full it was before, had it room enough: both as the rate was highest and lowest.
            lacks_least = max(0.0, lacks_least - fill.most * (elapsed + self.late_s)) + each.admitted
            lacks_most = max(0.0, lacks_most - fill.least * max(0.0, elapsed - self.late_s)) + each.admitted
            least, most, before_s = max(least, lacks_least), max(most, lacks_most), each.at_s
            if each is refusal:
                break
        return math.ceil(least - 1e-6), math.ceil(most - 1e-6)
