"""Finds how many requests a provider admits: in a minute, at once, in flight, and by which kind of window.

A generator that yields steps and receives answers: one burst up to the first refusal, then calls that tell the kinds of
window apart. Knows no clock, no provider and no budget.
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

# The seconds between the first call and the others: it leaves a sliding minute this much earlier.
APART_S = 4.0
# Without a refusal until then no limit that matters is met.
_BURST_MAX_S = 80.0
# After this many seconds and calls the rounds get larger.
_SLOW_S, _MANY = 20.0, 200
_PAUSE_S = 1.0
# How many minutes' worth of calls requests may use. A window gives all back at once; after a bucket's rate tokens need
# some calls too, and its capacity is worth fewer calls than its rate. This many calls are allowed in any case.
_MINUTES_WINDOW, _MINUTES_BUCKET, _MINUTES_CAPACITY, _CALLS_LEAST = 2.95, 2.4, 2.0, 14
# The probability that counts as sure where nothing more can be sent.
_SURE = 0.95
# If a tenth of all calls is refused at random, a burst ends within some 40: only a bucket that holds at most this many,
# and two fifths of a minute's worth, is sent more than it holds. A larger one would cost too many calls.
_DOUBTED, _DOUBTED_SHARE = 60, 0.4
# This many calls more than it holds, and a quarter of what it holds: if a tenth is refused at random, 99% of such
# rounds still admit more than it holds.
_MORE, _MORE_OF = 3, 4
# Below this many calls a minute nearly three minutes' worth may be spent on requests: fewer calls show nothing.
_FEW_A_MINUTE, _MINUTES_FEW = 25, 2.95
# A refusal for calls in flight asks for no longer wait than this.
_FLIGHT_S = 2.0
# A round may be larger than any before it if this share of it is surely left.
_SURELY_LEFT = 0.8
_FEW, _FEW_SENT, _SMALL_BURST = 4, 12, 20
# How often a refusal may be taken as one for calls in flight; seconds after which a halved round may grow again.
_CHANCES, _HALVED_S = 3, 12.0
# Calls that take this long are in flight together with all others of their round.
_LONG_S = 0.75


class RequestProbe:
    """The part of a probe that finds one model's quota of requests. A number is written into `found` as soon as it is
    sure. At most `in_flight_max` calls are sent at once, and no limit above `requests_max` a minute is tried."""

    def __init__(self, found: FoundQuota, *, in_flight_max: int, requests_max: int) -> None:
        self.found = found
        self._rounds = Rounds(found, in_flight_max)
        self._requests_max = requests_max
        # A suspected limit of calls in flight, and the calls admitted in all before it was met.
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
        """Sends ever larger rounds and returns the first that is refused for the quota; None if the caps end the burst
        before."""
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
                # A round that meets a limit in flight has as many admitted as ever before, unless calls take no time;
                # and such a refusal rarely names a wait.
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
                    # Calls that take no time hardly overlap: half as many may be few enough.
                    self._ceiling, rounds.most = None, max(1, min(rounds.most, made.admitted) // 2)
                    halved_s = rounds.now
            elif self._ceiling is not None and made.admitted > self._ceiling[0]:
                # More were admitted at once than before: it was no ceiling, and the quota has refilled.
                self._ceiling, rounds.most = None, rounds.in_flight_max
            elif rounds.now > halved_s + _HALVED_S:
                # Rounds this small are never refused: the quota refills meanwhile.
                rounds.most, chances, halved_s = rounds.in_flight_max, 0, math.inf
            self.found.tested_rpm = max(self.found.tested_rpm, rounds.admitted)
            if rounds.admitted >= self._requests_max or rounds.now - rounds.all[0].at_s > _BURST_MAX_S:
                return None

    def _ceiling_to_check(self) -> int | None:
        """Returns the suspected limit of calls in flight that is yet to be tested; None if there is none, or if so few
        calls were admitted that a test costs too much."""
        if self.found.concurrency is not None or self._ceiling is None:
            return None
        admitted = self._ceiling[0]
        return admitted if admitted > _FEW or self._rounds.admitted > _FEW_SENT else None

    def _next_count(self) -> int:
        """Returns the size of the burst's next round: a quarter to a half of the calls admitted so far, or about what
        headers report as left."""
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
        """Tells the kinds of window apart by what is admitted after the refusal, and notes the limit found."""
        rounds = self._rounds
        burst = [rounds.event(each, is_last=each is refusal) for each in rounds.all]
        known = RequestHypotheses(burst, self.found.told_rpm, rounds.doubt_s)
        if refusal.told_s is not None:
            # One call at exactly that time shows whether the wait is right.
            yield from rounds.wait(rounds.earliest_s)
            known.learn(rounds.event((yield from rounds.ask(1))))
        while (chosen := self._next(known)) is not None:
            yield from rounds.wait(chosen.at_s)
            yield from self._send(known, chosen.calls)
        yield from self._make_sure(known)
        self._conclude(known)

    def _calls_left(self, known: RequestHypotheses) -> int:
        """Returns how many calls may still be spent on requests; the rest of three minutes' worth of calls is kept for
        tokens."""
        least = known.likely_least()
        if not known.is_bucket:
            minutes = _MINUTES_WINDOW
        elif known.bucket_least("limit")[1]:
            minutes = _MINUTES_CAPACITY
        else:
            minutes = _MINUTES_BUCKET
        return int(max(_CALLS_LEAST, minutes * least)) - self._rounds.calls

    def _next(self, known: RequestHypotheses) -> RoundChoice | None:
        """Returns the calls to send next; None if all is known, or if no call that may be sent gives information."""
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
        """Sends this many calls and learns from the answers. For a bucket they go in several rounds where they exceed
        what may be in flight, with the calls that were refilled meanwhile, until one is refused."""
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
                # More than that was surely left, so the refusal was for the calls in flight.
                self._ceiling = (made.admitted, rounds.admitted)
                rounds.most = made.admitted
                event = event._replace(refused=None)
            known.learn(event)
            if made.refused or not is_bucket:
                break
        known.note_sent(sent)

    def _make_sure(self, known: RequestHypotheses) -> Steps:
        """Sends a small, full bucket some calls more than it holds. Random refusals can look like a bucket; if more
        calls are admitted than it holds, no bucket agrees and nothing counts as found."""
        if known.is_void or not known.is_bucket or not known.bucket_least("limit")[1]:
            return
        rounds, (minute, _), holds = self._rounds, known.bucket_least("limit"), known.capacity_most
        count = math.floor(holds) + _MORE + int(holds / _MORE_OF)
        minutes = _MINUTES_FEW if minute < _FEW_A_MINUTE else _MINUTES_BUCKET
        most = rounds.in_flight_max if self.found.concurrency is None else rounds.most
        if count > min(most, _DOUBTED, _DOUBTED_SHARE * minute, minutes * minute - rounds.calls):
            return
        yield from rounds.wait(max(rounds.earliest_s, rounds.now + count * MINUTE_S / minute))
        # A refusal here may be for the calls in flight.
        known.learn(rounds.event((yield from rounds.ask(count)))._replace(refused=None))

    def _conclude(self, known: RequestHypotheses) -> None:
        """Writes what is known into `found`: a bucket's least possible limit and capacity, or a window's limit."""
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
        """Returns how many calls of a bucket to send together: more than ever before only if most of them are surely
        left, so that a refusal for calls in flight is recognised."""
        rounds = self._rounds
        if self.found.concurrency is not None:
            return rounds.most
        is_free = self._ceiling is None or self._ceiling[0] >= calls
        return rounds.in_flight_max if is_free and left >= _SURELY_LEFT * calls else rounds.at_once

    def _safely_at_once(self) -> int:
        """Returns how many calls may be in flight without a refusal, even if answers become slower."""
        most = min(self._rounds.most, self._rounds.at_once)
        return most if self.found.concurrency is not None or most <= _SMALL_BURST else most // 2

    def _judge_ceiling(self) -> None:
        """Notes a limit of calls in flight if a refusal met them while much of the burst was left; drops one that is
        not below the burst."""
        found = self.found
        if found.burst is None:
            return
        if found.concurrency is None and self._ceiling is not None and self._ceiling[1] < found.burst:
            found.concurrency = self._ceiling[0]
        if found.concurrency is not None and found.burst <= found.concurrency:
            found.concurrency = None
