"""Finds how many requests a provider admits: in a minute, at once, in flight, and by which kind of window.

A state machine as a generator: it yields steps and is sent what was seen. One burst to the first refusal; what is
admitted after it tells the kinds apart. Knows no clock, no provider and no budget.
"""

from __future__ import annotations

import math
from collections.abc import Generator

from .boxes import MINUTE_S
from .choice import RoundChoice
from .request_hypotheses import RequestHypotheses
from .result import FoundQuota
from .rounds import Round, Rounds
from .steps import Step, Steps, TimedAnswer

# Between the first call and the others: so much earlier it leaves a sliding minute.
APART_S = 4.0
# Who was not refused until then is not met by any limit that matters.
_BURST_MAX_S = 80.0
# After so long, larger steps, where there are many.
_SLOW_S, _MANY = 20.0, 200
_PAUSE_S = 1.0
# How many minutes' worth of calls requests may cost: windows give all back at once; a bucket's tokens need calls after
# it, and its capacity is worth fewer than its rate. In any case this many calls.
_MINUTES_WINDOW, _MINUTES_BUCKET, _MINUTES_CAPACITY, _CALLS_LEAST = 2.95, 2.4, 2.0, 14
# What is as good as sure where nothing more can be asked.
_SURE = 0.95
# Refusals without a reason, of a tenth of all calls, end a burst within some 40: only a bucket that holds at most so
# many, and two fifths of a minute's worth, is asked for more than it holds. A larger one would cost too many calls.
_DOUBTED, _DOUBTED_SHARE = 60, 0.4
# So many calls more, and a quarter of what it holds: where a tenth is refused without a reason, 99% of such rounds
# still admit more than it holds.
_MORE, _MORE_OF = 3, 4
# Of fewer calls a minute than this, nearly three minutes' worth may be spent on requests: fewer tell nothing.
_FEW_A_MINUTE, _MINUTES_FEW = 25, 2.95
# A refusal for what is in flight asks for no longer wait.
_FLIGHT_S = 2.0
# This share of a round is surely left where it may be larger than any before it.
_SURELY_LEFT = 0.8
_FEW, _FEW_SENT, _SMALL_BURST = 4, 12, 20
# So often what was refused may have been too many in flight.
_CHANCES, _HALVED_S = 3, 12.0
# Calls that take so long meet all the others of their round.
_LONG_S = 0.75


class RequestProbe:
    """One model's requests. What it finds stands in `found` as soon as it is sure of it."""

    def __init__(self, found: FoundQuota, *, in_flight_max: int, requests_max: int) -> None:
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

    def _burst(self) -> Generator[Step, list[TimedAnswer], Round | None]:
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
        known = RequestHypotheses(burst, self.found.told_rpm, rounds.doubt_s)
        if refusal.told_s is not None:
            # One call, at just that time, tells whether the wait is true.
            yield from rounds.wait(rounds.earliest_s)
            known.learn(rounds.event((yield from rounds.ask(1))))
        while (chosen := self._next(known)) is not None:
            yield from rounds.wait(chosen.at_s)
            yield from self._send(known, chosen.calls)
        yield from self._make_sure(known)
        self._conclude(known)

    def _calls_left(self, known: RequestHypotheses) -> int:
        """Returns how many calls may still be spent on requests; what is left of three minutes' worth is for tokens."""
        least = known.likely_least()
        if not known.is_bucket:
            minutes = _MINUTES_WINDOW
        elif known.bucket_least("limit")[1]:
            minutes = _MINUTES_CAPACITY
        else:
            minutes = _MINUTES_BUCKET
        return int(max(_CALLS_LEAST, minutes * least)) - self._rounds.calls

    def _next(self, known: RequestHypotheses) -> RoundChoice | None:
        """Returns what to send next; None when all is known, or nothing that may be sent tells more."""
        if known.is_void:
            return None
        earliest_s, left = self._rounds.earliest_s, self._calls_left(known)
        if left < 1:
            return None
        chosen = None
        if not known.is_known:
            chosen = known.next(earliest_s, math.inf if known.is_bucket else self._safely_at_once(), left)
        is_window = known.kind[0] != "bucket" and known.kind[1] >= _SURE
        if chosen is None and is_window and 0 < known.unproven <= left:
            return RoundChoice(earliest_s, known.unproven, 1.0, 0.0)
        return chosen

    def _send(self, known: RequestHypotheses, calls: int) -> Steps:
        """Sends these calls, and learns from them. Of a bucket more than may be in flight is taken in several rounds,
        with what comes meanwhile, until one is refused."""
        rounds, begun_s, sent, most = self._rounds, self._rounds.now, 0, self._calls_left(known)
        while sent < calls and not known.is_void:
            count = calls - sent
            if is_bucket := known.is_bucket:
                count += int(known.bucket_least("limit")[0] / MINUTE_S * (rounds.now - begun_s))
                count = min(count, self._bucket_at_once(calls, known.least_left(rounds.now)), most - sent)
            if count < 1:
                break
            made = yield from rounds.ask(count)
            sent += count
            event = rounds.event(made)
            if is_bucket and made.refused and made.admitted + made.failed + 1 <= known.least_left(made.at_s):
                # More than that was left in any case, so that the refusal was for the calls in flight.
                self._ceiling = (made.admitted, rounds.admitted)
                rounds.most = made.admitted
                event = event._replace(refused=None)
            known.learn(event)
            if made.refused or not is_bucket:
                break
        known.note_sent(sent)

    def _make_sure(self, known: RequestHypotheses) -> Steps:
        """Asks a small bucket, when it is full, for some calls more than it holds: refusals without a reason look like
        one until more than it holds are admitted. Then no bucket agrees, and nothing is found."""
        if known.is_void or not known.is_bucket or not known.bucket_least("limit")[1]:
            return
        rounds, (minute, _), holds = self._rounds, known.bucket_least("limit"), known.capacity_most
        count = math.floor(holds) + _MORE + int(holds / _MORE_OF)
        minutes = _MINUTES_FEW if minute < _FEW_A_MINUTE else _MINUTES_BUCKET
        most = rounds.in_flight_max if self.found.concurrency is None else rounds.most
        if count > min(most, _DOUBTED, _DOUBTED_SHARE * minute, minutes * minute - rounds.calls):
            return
        yield from rounds.wait(max(rounds.earliest_s, rounds.now + count * MINUTE_S / minute))
        # A refusal may be for those in flight.
        known.learn(rounds.event((yield from rounds.ask(count)))._replace(refused=None))

    def _conclude(self, known: RequestHypotheses) -> None:
        """Notes what is known: a bucket by its least limit and capacity, a window by its limit."""
        found = self.found
        if known.is_void or known.kind[1] < _SURE:
            return
        if known.kind[0] == "bucket":
            limit, is_sure = known.bucket_least("limit")
            if is_sure:
                found.window, found.rpm = "bucket", limit
                holds, is_sure = known.bucket_least("capacity")
                found.burst = holds if is_sure else None
        elif (limit_of_window := known.window_limit(_SURE)) is not None and not known.unproven:
            found.window = known.kind[0]
            found.rpm = found.burst = float(limit_of_window)

    # What was in flight

    def _bucket_at_once(self, calls: int, left: float) -> int:
        """Returns how many of a bucket's calls to send together: more than ever before only where most of them are
        surely left, so that a refusal for those in flight is known by its number."""
        rounds = self._rounds
        if self.found.concurrency is not None:
            return rounds.most
        is_free = self._ceiling is None or self._ceiling[0] >= calls
        return rounds.in_flight_max if is_free and left >= _SURELY_LEFT * calls else rounds.at_once

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
