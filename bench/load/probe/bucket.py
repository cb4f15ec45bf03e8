"""Measures a bucket: how fast it fills, how much it holds, and whether it admits all of that at once.

A state machine as a generator, given all that was sent before it knew that there is a bucket. Knows no clock, no
provider and no budget but that of its calls.
"""

from __future__ import annotations

import math

from .plan import best, guesses
from .rate import RATE_MAX, FillRate, Guess
from .rounds import Round, Rounds
from .steps import Steps
from .tanks import Event, Tanks

MINUTE_S = 60.0
_ROUNDS_MAX, _DRAINED_MAX = 36, 8
_EMPTY_MOST = 4
_DRAIN_SHARE, _AMPLE = 0.8, 1.2
_SURE_SHARE, _AT_LEAST = 0.9705, 0.9
# How many calls it may all cost, in minutes' worth: the rest is for tokens.
_MINUTES, _MINUTES_MOST, _CALLS_LEAST = 2.0, 2.4, 12.0
_FEW_A_MINUTE, _MINUTES_FEW = 25, 2.97
_SLOWEST = 4.5
_SHARE_LEAST = 0.09
# Nor is one believed that is full so soon, unless it holds few.
_SMALL_BURST = 20
_FLOOR_S = 3.0
_SOME = 60
# Where more comes than this while a call is on its way, or after so many rounds, it is drained; then it fills so long.
_CLOSELY, _COARSE, _FILLED_S = 12, 5.0, 20.0
_CONFIRM_MOST = 16
_LOST_MAX = 0.25
_AHEAD_S = 90.0
# Of few, hardly any holds a part of one, least of all if it is a usual share of a minute's worth: what lies so little
# below a whole number is that.
_FEW, _NEAR_WHOLE, _NEAR_USUAL = 40, 0.02, 0.4
# From here on one less is hardly less.
_FINE_FROM = 34
_USUAL_SHARES, _USUALLY = (1.0, 0.75, 0.5, 0.25, 0.2, 0.1), 0.002
_SMALL, _REFUSALS, _SMALL_PART = 60, 4, 3
_LESS = 0.95
# By so many times longer than a bucket takes for one.
_ELSE = 3.0
# What a bucket may hold, in minutes' worth, and how likely that is.
_SHARES = ((1.0, 4.0), (0.5, 1.0), (0.25, 0.6), (0.1, 0.8), (0.2, 0.4), (0.75, 0.3))
_TOLD = 4.0


class Bucket:
    """What the rounds from a refusal on tell of one. `burst`: the rounds up to it, from a full one on. `rates`: between
    which it fills, a second."""

    def __init__(self, rounds: Rounds, refusal: Round, rates: tuple[float, float]) -> None:
        self._rounds = rounds
        self._found = rounds.found
        place = rounds.all.index(refusal)
        self._burst = rounds.all[: place + 1]
        self._refused_s = refusal.refused_s or refusal.at_s
        self.fill = FillRate(refusal.taken, rounds.doubt_s, rates[0], min(rates[1], self._fastest()))
        self._is_first = True
        # Few can all be followed from the first call on.
        self._tanks: Tanks | None = None
        if sum(each.admitted for each in self._burst) <= _SMALL:
            self._tanks = Tanks([self._event(each) for each in self._burst], self._found.told_rpm, rates)
        self._hint(refusal)
        for made in rounds.all[place + 1 :]:
            self.learn(made)

    # What is known

    def _event(self, made: Round) -> Event:
        # What was refused before that was for those in flight.
        is_refused = made.refused > 0 and (made is self._burst[-1] or made not in self._burst)
        is_refused = is_refused and made.asked <= (self._found.concurrency or math.inf)
        is_refused = is_refused and not self._rounds.is_for_flight(made)
        to_s = max(made.sent_s + self._rounds.late_s, made.ended_s or made.at_s, made.refused_done_s or made.at_s)
        kept, broken = self._found.promises_kept, self._found.promises_broken
        told_s = made.told_s if broken <= kept / 4 else None
        return Event(made.at_s, to_s, made.admitted, is_refused, made.failed, told_s)

    @property
    def is_contradicted(self) -> bool:
        return self.fill.is_contradicted if self._tanks is None else self._tanks.is_contradicted

    @property
    def is_narrow(self) -> bool:
        return self.fill.is_narrow if self._tanks is None else self._tanks.is_narrow

    @property
    def rates(self) -> tuple[float, float]:
        known = self.fill if self._tanks is None else self._tanks
        return known.least, known.most

    def learn(self, made: Round) -> None:
        if self._tanks is not None:
            if not self._tanks.is_contradicted:
                self._tanks.learn(self._event(made))
            return
        self.fill.late_s = self._rounds.doubt_s
        holds = self._holds()
        self.fill.learn(made.taken, holds[0])
        if self.fill.is_contradicted:
            return
        if self.fill.lost > _LOST_MAX and made.refused:
            self._begin_again(made)
        self._hint(made)

    def _begin_again(self, made: Round) -> None:
        least, most = self.fill.least, self.fill.most
        self.fill = FillRate(made.taken, self._rounds.doubt_s, least, most)
        self._is_first = False

    def _hint(self, made: Round) -> None:
        """What the provider itself says of when there will be more."""
        kept, broken = self._found.promises_kept, self._found.promises_broken
        if made.told_s is not None and made.refused_s is not None and broken <= kept / 4:
            at_s = made.refused_s + made.told_s
            self.fill.hint(at_s + self._rounds.late_s / 2, self.fill.taken + 1.0)
            if made.told_s == int(made.told_s):
                self.fill.hint(at_s - 0.5, self.fill.taken + 1.0)
        if made.asked == 1 and made.remaining is not None and made.remaining != int(made.remaining):
            self.fill.hint(made.at_s + self._rounds.late_s / 3, self.fill.taken + made.remaining)
            if made.reset_s is not None:
                holds = math.ceil(self._holds()[0] - 1e-6)
                self.fill.hint(made.at_s + made.reset_s + self._rounds.late_s / 3, self.fill.taken + holds)

    def _lack(self, rate: float, *, is_late: bool = True) -> float:
        """How much below full the first refusal left it at the most, had it filled so fast; or, if no call was late."""
        lack, before_s = 0.0, self._burst[0].at_s
        for each in self._burst:
            # The later they were admitted, the less of what came was lost while it was full.
            by_s = min((each.admitted_by_s if is_late else None) or each.at_s, self._refused_s)
            lack = max(0.0, lack - rate * max(0.0, by_s - before_s)) + each.admitted
            before_s = max(before_s, by_s)
        return lack - rate * max(0.0, self._refused_s - before_s)

    def _lacked(self, rate: float, burst: list[Round]) -> tuple[float, float]:
        """How much below full it was at the least when the last was admitted, and when it was most: so much more was
        taken than came meanwhile."""
        lack = most = 0.0
        before_s, admitted = -math.inf, 0
        for each in burst:
            if each.ended_s is not None:
                # Either from here on, or together with those before.
                lack = max(-rate * (each.ended_s - each.at_s), lack - rate * (each.ended_s - before_s)) + each.admitted
                most, before_s, admitted = max(most, lack), each.ended_s, admitted + each.admitted
        # Of many calls some come late, and find what came in the meantime.
        late = min(rate * self._rounds.doubt_s, max(0, admitted - _FEW) / _SOME)
        return lack - late, most - late

    def _fastest(self) -> float:
        """The rate of which what the burst took at the most is no believable part."""
        least, most, failed = 0.0, RATE_MAX, sum(each.failed for each in self._burst)
        if sum(each.admitted for each in self._burst) <= _SMALL_BURST:
            return most
        while most - least > 1e-6 + 1e-3 * least:
            rate = (least + most) / 2
            is_believed = _FLOOR_S * rate <= self._lack(rate) + 1 + failed
            least, most = (rate, most) if is_believed else (least, rate)
        return most

    def _holds(self) -> tuple[float, float]:
        """Between which numbers what it holds lies."""
        if self._tanks is not None:
            return self._tanks.holds
        slow, fast = self.fill.least, self.fill.most
        high = self._lack(slow) + 1.0 + sum(each.failed for each in self._burst)
        while fast - slow > 1e-3 * fast:
            rate = (slow + fast) / 2
            # The faster, the less of the burst it held, but the more it has to hold.
            slow, fast = (rate, fast) if self._lacked(rate, self._burst)[1] > _FLOOR_S * rate else (slow, rate)
        low = self._lacked(fast, self._burst)[1]
        return max(1.0, low), high

    def _whole(self) -> tuple[int, int]:
        """How many it admits at once, at the least and at the most."""
        low, high = self._holds()
        if self._is_first and self._tanks is None:
            # What was left then is a part of what it holds.
            by_s = max(each.admitted_by_s for each in self._burst if each.admitted_by_s is not None) - self.fill.since_s
            lacks = [self._lacked(rate, self._burst)[0] for _, rate in self.fill.region]
            left = [max(0.0, level + rate * by_s) for level, rate in self.fill.region]
            low = max(low, min(map(sum, zip(lacks, left, strict=True))))
            ends = [level + self._lack(rate) for level, rate in self.fill.region]
            high = min(high, max(ends) + sum(each.failed for each in self._burst))
        whole = math.floor(high + 1e-6)
        minute = (self.rates[0] * MINUTE_S, self.rates[1] * MINUTE_S)
        if low < _FEW and low <= whole and minute[0] <= whole <= minute[1]:
            # A whole minute's worth, and that a whole number.
            return whole, whole
        return self._at_least(low, whole), whole

    def _at_least(self, low: float, most: int) -> int:
        """The whole number that what it holds is not below."""
        number = min(most, math.ceil(low))
        if number >= _FINE_FROM:
            return math.floor(low + 1e-6)
        shares = [number / (rate * MINUTE_S) for rate in self.rates if rate > 0]
        is_usual = any(
            min(shares) < (1 + _USUALLY) * one and max(shares) > (1 - _USUALLY) * one for one in _USUAL_SHARES
        )
        return number if low > number - (_NEAR_USUAL if is_usual else _NEAR_WHOLE) else math.floor(low)

    def _left(self, rate: float) -> float:
        """What the first refusal left, if it holds a whole number."""
        if not self._is_first:
            return -math.inf
        lack = self._lack(rate, is_late=False)
        return math.ceil(lack - 1e-6) - lack

    def likely(self) -> list[Guess]:
        told = self._found.told_rpm
        holds = math.ceil(self._holds()[0] - 1e-6)
        pointed = [(holds / share / MINUTE_S, weight) for share, weight in _SHARES]
        if told is not None:
            pointed += [(told / MINUTE_S * times, _TOLD * weight) for times, weight in ((1, 1.0), (0.5, 0.2), (2, 0.2))]
        # More than a minute's worth is hardly ever held, and few a minute hardly ever allowed.
        return guesses(self.fill, pointed, self._left, max(holds / 2, _SLOWEST) / MINUTE_S)

    # What is sent

    def next(self, most: int, least: int = 1) -> tuple[float, int] | None:
        rounds, fill = self._rounds, self.fill
        if self._tanks is not None:
            counts = (least, min(rounds.most, rounds.at_once, most))
            at_s = max(rounds.now, rounds.earliest_s)
            # Where nothing tells more now, one less does.
            return self._tanks.next(at_s, rounds.now + _AHEAD_S, counts) or (at_s, 1)
        holds = self._holds()[0]
        earliest_s = max(rounds.now, rounds.earliest_s) - fill.since_s
        latest_s = rounds.now - fill.since_s + _AHEAD_S
        # More than ever before at once may be refused for those in flight.
        most = min(rounds.most, rounds.at_once, most, max(1, int(holds) - 1))
        step = best(fill, self.likely(), earliest_s=earliest_s, latest_s=latest_s, holds=holds, counts=(least, most))
        return None if step is None else (step.at_s + fill.since_s, step.calls)

    def measure(self) -> Steps:
        yield from self._narrow()
        if self.is_narrow:
            yield from self._confirm() if self._tanks is None else self._make_sure(self._tanks)
        is_narrow = self.is_narrow or (self._tanks is not None and self._tanks.is_likely_narrow)
        if not is_narrow or self._is_told_otherwise():
            # Nor is it sure that there is a bucket at all.
            self._found.window = None
            return
        self._found.rpm = self.rates[0] * MINUTE_S
        yield from self._measure_capacity()

    def _is_told_otherwise(self) -> bool:
        """A bucket has one again after the same time; waits that are true, some short and some long, are another's."""
        told = [each.told_s for each in self._rounds.all if each.told_s is not None]
        if not told or self._found.promises_broken or not self._found.promises_kept:
            return False
        return max(told) > _ELSE * (1 / self.rates[0] + 1) and _ELSE * min(told) < max(told)

    def _confirm(self) -> Steps:
        """Where calls are not dear: as much as should be there after a while is, and no more."""
        rounds, rate = self._rounds, self.fill.least
        left = int((_MINUTES * rate * MINUTE_S - rounds.calls) / 2) if rate * MINUTE_S >= _FEW_A_MINUTE else 0
        most = min(rounds.most, rounds.at_once - 1, _CONFIRM_MOST, left, int(self._holds()[0]) - 2)
        if most < 2:
            return
        yield from rounds.wait(max(rounds.earliest_s, rounds.now + (most - 1) / rate))
        made = yield from rounds.ask(most + 1)
        self.learn(made)

    def _make_sure(self, tanks: Tanks) -> Steps:
        """What is refused now and then for no reason looks like one: but not when one more is asked for at once, nor
        when more than it holds is."""
        rounds = self._rounds
        count = 1
        while sum(each.is_refused for each in tanks.events) < _REFUSALS and not tanks.is_contradicted:
            if rounds.calls + count > self._calls_most(tanks.least * MINUTE_S):
                break
            yield from rounds.wait(rounds.earliest_s)
            made = yield from rounds.ask(count)
            self.learn(made)
            # Where more comes than one after the other, several are asked for at once.
            count = 1 if made.refused else min(2 * count, rounds.at_once)
        if tanks.is_contradicted:
            return
        holds, minute = math.floor(tanks.holds[1]) + 1, tanks.least * MINUTE_S
        most = rounds.in_flight_max if self._found.concurrency is None else rounds.most
        if holds <= min(most, minute / _SMALL_PART, self._calls_most(minute) - rounds.calls):
            yield from rounds.wait(max(rounds.earliest_s, rounds.now + holds / tanks.least))
            made = yield from rounds.ask(holds)
            # What is refused may be for those in flight.
            tanks.learn(self._event(made)._replace(is_refused=False))

    def _calls_most(self, minute: float) -> float:
        """What it may all cost; of few calls a larger part, since fewer tell nothing."""
        return min(3 * minute - 0.9, minute * (_MINUTES_FEW if minute < _FEW_A_MINUTE else _MINUTES_MOST))

    def _narrow(self) -> Steps:
        rounds, drained = self._rounds, 0
        for number in range(_ROUNDS_MAX):
            if self.is_contradicted or self.is_narrow:
                return
            likely = self.likely() if self._tanks is None else []
            # None holds less than a tenth of a minute's worth.
            middle = _middle(likely) if self._tanks is None else self._tanks.middle
            minute = min(MINUTE_S * middle, self._holds()[1] / _SHARE_LEAST)
            left = int(max(_CALLS_LEAST, self._calls_most(minute)) - rounds.calls)
            if left < 1:
                return
            is_coarse = rounds.doubt_s * middle > _COARSE or (number > _CLOSELY and middle > 1)
            is_coarse = is_coarse and self._tanks is None
            step = None if is_coarse else self.next(min(left, max(2, left // 2)))
            if step is None:
                drained += 1
                if drained > _DRAINED_MAX:
                    return
                yield from self._drain()
                continue
            yield from rounds.wait(step[0])
            self.learn((yield from rounds.ask(step[1])))

    def _drain(self) -> Steps:
        """Wait while most of it fills, but surely not all, and take what has come, to the next refusal: how much came
        since the one before tells the rate, the better the more often."""
        rounds, fill = self._rounds, self.fill
        refused_s = max((each.refused_s for each in rounds.all if each.refused_s is not None), default=rounds.now)
        room_s = max(0.0, _DRAIN_SHARE * self._holds()[0] - 1) / fill.most
        yield from rounds.wait(max(rounds.earliest_s, refused_s + min(room_s, _FILLED_S)))
        # In few rounds, since while answers come it fills again.
        rate, taken = _AMPLE * _middle(self.likely()), 0
        while taken <= _EMPTY_MOST * self._holds()[1]:
            count = 2 + int(rate * (rounds.now - refused_s)) - taken
            made = yield from rounds.ask(max(1, min(count, rounds.most, rounds.at_once)))
            self.learn(made)
            taken += made.admitted
            if made.refused or self.fill.is_contradicted:
                return
            if count <= rounds.at_once:
                rate *= _AMPLE

    def _measure_capacity(self) -> Steps:
        """What the first burst tells, or, where that is not enough, what a bucket holds after a minute of rest."""
        rounds = self._rounds
        least, most = self._whole()
        left = self._calls_most(MINUTE_S * self.rates[0]) - rounds.calls
        is_sure = least >= _SURE_SHARE * most
        is_seen_at_once = self._found.concurrency is not None or rounds.at_once >= min(rounds.most, least)
        if least >= _AT_LEAST * most:
            self._found.burst = float(least)
        if (is_sure and is_seen_at_once) or left < most + 2 + (0 if is_seen_at_once else least // 2):
            return
        yield from rounds.wait(max(rounds.earliest_s, rounds.now + MINUTE_S + 1))
        place = len(rounds.all)
        if self._found.concurrency is None:
            rounds.most = rounds.in_flight_max
        made = yield from rounds.ask(min(rounds.most, most + 1))
        admitted, begun_s = made.admitted, made.at_s
        if made.refused and admitted < _LESS * least and self._found.concurrency is None:
            yield from rounds.wait(rounds.earliest_s)
            made = yield from rounds.ask(admitted + 1)
            if made.refused and made.admitted == admitted:
                self._found.concurrency = rounds.most = admitted
            admitted += made.admitted
        if is_sure:
            return
        while self._found.concurrency is not None or not made.refused:
            if admitted > 1 + most + self.rates[1] * (rounds.now - begun_s):
                # No such bucket has so many.
                self._found.window = self._found.rpm = None
                return
            made = yield from rounds.ask(min(rounds.most, max(1, most // 4)))
            admitted += made.admitted
            if made.refused and made.admitted < rounds.most:
                break
        if self._tanks is not None:
            for each in rounds.all[place:]:
                self.learn(each)
            if not self.is_contradicted:
                self._found.burst = float(self._whole()[0])
                return
        # What came back meanwhile is no part of what it holds.
        held = self._lacked(self.rates[1], rounds.all[place:])[1]
        held = max(1, self._at_least(held, most))
        self._found.burst = float(held if not least <= held <= most else max(held, least))


def _middle(likely: list[Guess]) -> float:
    """The rate that half of all that is likely lies below."""
    passed = 0.0
    for guess in sorted(likely, key=lambda each: each.rate):
        passed += guess.weight
        if passed >= 0.5:
            return guess.rate
    return likely[-1].rate if likely else 0.0
