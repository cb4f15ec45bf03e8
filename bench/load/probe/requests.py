"""Finds how many requests a provider admits: in a minute, at once, in flight, and by which kind of window.

A state machine as a generator: it yields steps and is sent what was seen. One burst to the first refusal, then the
times at which something is admitted again tell the kind. Knows no clock, no provider and no budget.
"""

from __future__ import annotations

import math
from collections.abc import Generator

from .bucket import MINUTE_S, Bucket
from .result import Found
from .rounds import Round, Rounds
from .steps import Seen, Step, Steps
from .windows import Windows

# Between the first call and the others: so much earlier it leaves a sliding minute.
APART_S = 4.0
_JUST_S = 0.05
# A burst has to end before its first calls leave a sliding minute.
_BURST_MAX_S = 54.0
# After so long, larger steps.
_SLOW_S = 20.0
_PAUSE_S = 1.0
# A refusal for what is in flight asks for no longer wait.
_FLIGHT_S = 2.0
_FEW, _FEW_SENT, _SMALL_BURST = 4, 12, 20
_CALLS_CLOSELY = 6
# No bucket is believed to be full sooner.
_FULL_SOON_S = 2.0
# So often what was refused may have been too many in flight.
_CHANCES, _HALVED_S = 3, 12.0
# Calls that take so long meet all the others of their round.
_LONG_S = 0.75
# Where few come back so soon, a bucket is as likely as a window.
_SOON_S = 15.0
# A bucket holds a minute's worth at the most: it has one again by then.
_ONE_AGAIN = 1.1


class RequestProbe:
    """One model's requests. What it finds stands in `found` as soon as it is sure of it."""

    def __init__(self, found: Found, *, in_flight_max: int, requests_max: int) -> None:
        self.found = found
        self._rounds = Rounds(found, in_flight_max)
        self._in_flight_max = in_flight_max
        self._requests_max = requests_max
        self._windows = Windows(self._rounds)
        self._retried_s = 0.0
        self._released_s: float | None = None
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
                    self._ceiling, self._retried_s = (made.admitted, rounds.admitted - again.admitted), made.at_s
                    rounds.most = made.admitted
                else:
                    # Of calls that take no time hardly any meet: half as many may be none too many.
                    self._ceiling, rounds.most = None, max(1, min(rounds.most, made.admitted) // 2)
                    halved_s = rounds.now
            elif self._ceiling is not None and made.admitted > self._ceiling[0]:
                # More than before at once: it was no ceiling, and something came back.
                self._ceiling, rounds.most, self._released_s = None, self._in_flight_max, self._retried_s
            elif rounds.now > halved_s + _HALVED_S:
                # So few are never too many: more comes back meanwhile.
                rounds.most, chances, halved_s = self._in_flight_max, 0, math.inf
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
        if self._rounds.now - self._rounds.all[0].at_s > _SLOW_S:
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
        """Wait as told, or ever longer, for the first call that is admitted again."""
        rounds = self._rounds
        begun, before = rounds.all[0].at_s, rounds.admitted
        edge = begun + MINUTE_S
        one_again_s = _ONE_AGAIN * MINUTE_S / before
        is_near = refusal.told_s is None or refusal.told_s <= one_again_s + 1.0
        if before <= _SMALL_BURST and is_near and (yield from self._look_closely(refusal, before, edge)):
            return
        if before <= _FEW and rounds.now > edge:
            return
        pause = max(_PAUSE_S, min(one_again_s, rounds.now - refusal.at_s + one_again_s))
        held = refusal
        while True:
            last = rounds.last
            least = rounds.now if last.told_at_s is None or not last.refused else last.told_at_s + rounds.late_s
            guessed = self._windows.told_edge()
            is_trusted = last.told_at_s is not None and not self.found.promises_broken
            at = least if is_trusted else max(least, guessed if guessed is not None else rounds.now + pause)
            if at > edge - _JUST_S:
                if least > edge - _JUST_S or last.at_s > edge - 4 * _JUST_S:
                    yield from rounds.wait(max(least, edge + self._windows.EDGE_S))
                    yield from self._windows.at_the_edge(before, least if is_trusted else None, edge)
                    return
                at = edge - _JUST_S
            yield from rounds.wait(at)
            held = rounds.last
            made = yield from rounds.ask(1)
            if made.admitted:
                yield from self._after_release(refusal, held, made, before, made.admitted)
                return
            pause *= 2

    def _look_closely(self, refusal: Round, before: int, edge: float) -> Generator[Step, list[Seen], bool]:
        """Where calls are few: ask as for a bucket, until what comes is not one's. Whether all is found."""
        rounds = self._rounds
        bucket = Bucket(rounds, refusal)
        admitted, released = 0, list[float]()
        calls_most = rounds.calls + _CALLS_CLOSELY
        while (
            not bucket.is_contradicted
            and rounds.calls < calls_most
            and bucket.rates[1] * MINUTE_S * _ONE_AGAIN > before
        ):
            # A window that begins has more than one.
            is_to_tell = admitted > 0 and before > _FEW
            step = bucket.next(3 if admitted else 2, least=2 if is_to_tell else 1)
            if step is None or (step[0] > edge - _JUST_S and before > _FEW):
                return False
            yield from rounds.wait(step[0])
            held = rounds.last
            made = yield from rounds.ask(step[1])
            bucket.learn(made)
            admitted += made.admitted
            if made.admitted and held.refused:
                released.append(made.at_s)
            # No two windows end within a minute.
            is_twice = len(released) > 1 and released[-1] < released[0] + MINUTE_S - 1
            is_few = before <= _FEW and admitted > 0
            if (is_few or (made.refused and (is_twice or 0 < admitted < before))) and not bucket.is_contradicted:
                self.found.window = "bucket"
                yield from bucket.measure()
                return True
            is_window = before > _FEW and (made.admitted > 1 or admitted >= before)
            if (admitted and bucket.is_contradicted) or (is_window and len(released) < 2):
                yield from self._after_release(refusal, held, made, before, admitted)
                return True
        return False

    def _after_release(self, refusal: Round, held: Round, made: Round, before: int, admitted: int) -> Steps:
        """Something is admitted while the first call still counts in any sliding minute: a window began, or a bucket
        fills. A bucket that had less than one can't have many now."""
        rounds = self._rounds
        asked_s, held_s = made.at_s - refusal.at_s, held.at_s - refusal.at_s
        most: float = before // 2 + 2
        if held_s > 0:
            # Where calls are few, only as many as no bucket could have.
            sure = 2.5 + (asked_s - held_s + 3.0) / held_s if before <= _SMALL_BURST else 3 + 2 * asked_s / held_s
            most = min(before, sure)
        # No two windows end within a minute; and what holds a minute's worth holds more than a few.
        is_bucket = before <= _FEW or (self._released_s is not None and made.at_s < self._released_s + MINUTE_S)
        count = 1
        while True:
            count = min(rounds.most, rounds.at_once, count if is_bucket else max(1, min(count, before - admitted)))
            more = yield from rounds.ask(count)
            admitted += more.admitted
            if more.refused and (is_bucket or admitted < before):
                self.found.window = "bucket"
                yield from Bucket(rounds, refusal).measure()
                return
            if not is_bucket and (more.refused or admitted >= min(before, most)):
                is_told = refusal.told_s is not None and not self.found.promises_broken
                if held is refusal and refusal.admitted and not is_told and not more.refused:
                    # It may have begun during the round that was refused: both windows were full, and together they
                    # hold all that was admitted.
                    in_next = yield from self._windows.fill(before, admitted, before)
                    if in_next >= before - refusal.admitted:
                        self._windows.settle("fixed", (before + in_next) // 2)
                elif before > _SMALL_BURST and more.refused and (yield from self._is_full_again(asked_s - held_s)):
                    self.found.window = "bucket"
                    yield from Bucket(rounds, refusal).measure()
                elif before > _SMALL_BURST or asked_s - held_s > _SOON_S or (yield from self._is_no_bucket(refusal)):
                    self._windows.settle("fixed", before)
                return
            # Quickly, lest a bucket fills meanwhile.
            count *= 4

    def _is_full_again(self, passed_s: float) -> Generator[Step, list[Seen], bool]:
        """A bucket that was full again so soon has some once more; a window has none."""
        if passed_s < _FULL_SOON_S:
            return False
        yield from self._rounds.wait(max(self._rounds.earliest_s, self._rounds.now + passed_s))
        return (yield from self._rounds.ask(1)).admitted > 0

    def _is_no_bucket(self, refusal: Round) -> Generator[Step, list[Seen], bool]:
        """Where a bucket can still have done all that was seen: when any such has one again, a window has none."""
        rounds = self._rounds
        bucket = Bucket(rounds, refusal)
        if bucket.is_contradicted or bucket.rates[0] <= 0:
            return True
        yield from rounds.wait(max(rounds.earliest_s, rounds.now + _ONE_AGAIN / bucket.rates[0]))
        if not (yield from rounds.ask(1)).admitted:
            return True
        self.found.window = "bucket"
        yield from Bucket(rounds, refusal).measure()
        return False

    # What was in flight

    def _judge_ceiling(self) -> None:
        """Of few calls in flight one was refused when much more was left: that was for those in flight."""
        found = self.found
        if found.burst is None:
            return
        if found.concurrency is None and self._ceiling is not None and self._ceiling[1] < found.burst:
            found.concurrency = self._ceiling[0]
        if found.concurrency is not None and found.burst <= found.concurrency:
            found.concurrency = None
