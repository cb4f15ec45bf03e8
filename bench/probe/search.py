"""Finds one quota of a model, requests or tokens: a burst to the first refusal, then polls, each to the next.

Owns when how much is sent, and when the answers show enough. What follows from them: ranges. Caps, money and the pauses
that a provider asks for: calls.
"""

from __future__ import annotations

import math

from .calls import ModelCalls
from .ranges import MINUTE_S, Use, late_s, ranges
from .units import Requests

# A poll comes so long after a refusal, and each later one after twice the time, up to half of a window of ten seconds:
# longer polls can't exclude such windows. It is polled for so long at the most.
_FIRST_S, _LONGEST_S, _POLLS_MOST_S = 1.0, 5.0, 3.5 * MINUTE_S
# A window gives all back at once: if so much of the header's limit is back after a minute, it is no hour's. So much is
# sent then, and so much a minute is enough, since the minute is not exactly over then.
_BACK, _BACK_LEAST = 0.25, 0.2
# As long a poll takes.
_FILL_S = 4.0
# A refusal of more than so many steps is tried again with half, unless the provider asks for a longer wait.
_CLOSE, _PATIENCE_S = 1.5, 8.0
# How much later than a minute a call has left it for sure; and how long after a pause that is asked for it is polled,
# since a pause may end with the minute.
_SPARE_S, _AFTER_S = 0.1, 0.5
# Where no header names a limit, so long before the burst one call goes.
APART_S = 11.0


class Search:
    """The search for one quota. `header`, `left`: the limit a minute and what is left of it, as headers report (None:
    they don't); no minute is sent more than `most`. `limit`: what was found (infinite: nothing); `burst`: what is
    admitted at once after a rest; `ranges`: what agrees with the answers so far."""

    def __init__(
        self, calls: ModelCalls, unit: Requests, header: float | None, left: float | None, most: float
    ) -> None:
        self._calls, self._unit = calls, unit
        self._before = len(calls.seen)
        # 0: headers name no limit that may be tried.
        self._header = header if header is not None and header <= most else 0.0
        self._left = math.inf if left is None else max(1.0, left)
        self._most = most
        # What a window is expected to admit.
        self._full = self._header
        self._early_s = self._ended_s = math.inf
        self.ranges = ranges([])
        self.limit = math.inf
        self.burst = 0.0

    @property
    def is_refused(self) -> bool:
        return any(one.is_refused for one in self._calls.seen[self._before :])

    async def run(self) -> float | None:
        """Returns the limit a minute; None if it was not found."""
        calls = self._calls
        first = max(self._step(), ranges(self._uses()).sliding.least / 2)
        if not self._header:
            # What this used is back first where a sliding minute counts, but with all the rest where a fixed one does.
            self._early_s = calls.now()
            await self._fill(self._step(), self._step())
            await calls.wait(self._early_s + APART_S)
        else:
            first = min(self._header - self._used(), self._left)
        begun_s = calls.now()
        admitted = await self._fill(first, math.inf)
        self.ranges = ranges(self._uses())
        if not self.is_refused:
            return None
        self._ended_s = max((one.sent_s for one in calls.seen if one.is_admitted), default=begun_s)
        self._full = min(self.ranges.sliding)
        await self._poll()
        limit = min(self.ranges.least, self.ranges.most) * (1 - self._unit.unsure)
        limit = self._header if self._is_confirmed else limit
        if limit < 1:
            return None
        self.limit = limit
        # What a bucket got while the burst lasted, by the most that its rate can be.
        refilled = limit * (self._ended_s - begun_s + late_s(self._uses())) / MINUTE_S / self._unit.precise
        self.burst = min(limit, admitted - refilled if self.ranges.is_bucket else self.ranges.sliding.least)
        return limit

    async def _poll(self) -> None:
        """Polls until the answers show enough."""
        calls, gap_s = self._calls, _FIRST_S
        while not self._is_enough() and calls.now() < self._ended_s + _POLLS_MOST_S:
            now_s, refused_s = calls.now(), self._refused_s()
            due = [each + MINUTE_S + _SPARE_S for each in (self._early_s, self._ended_s)]
            until_s = min([refused_s + gap_s, *(each for each in due if each > now_s)])
            await calls.wait(max(calls.earliest_s + _AFTER_S, until_s))
            step, bucket = self._step(), self.ranges.bucket.least
            if self.ranges.is_bucket:
                waited_s = calls.now() - refused_s
                await self._fill(min(self._full, 1.1 * bucket * waited_s / MINUTE_S) + 2 * step, math.inf)
                # In three times the gap it would be full.
                gap_s = min(2 * gap_s, max(_FIRST_S, min(_LONGEST_S, MINUTE_S * self._full / max(1.0, bucket) / 3)))
            else:
                # After a minute a window has all back.
                goal, is_back = self._goal(), calls.now() >= self._ended_s + MINUTE_S
                admitted = await self._fill(0.9 * self._full if is_back and goal == math.inf else step, goal)
                self._full = max(self._full, admitted)
                gap_s = _FIRST_S if admitted else min(_LONGEST_S, 2 * gap_s)

    def _goal(self) -> float:
        """Returns how much of a window shows that it is back. Where it may be a bucket, or the provider asked for a
        pause before the burst had come close, only a refusal does."""
        least, most = self.ranges.fixed if self.ranges.sliding.is_excluded else self.ranges.sliding
        if not self._is_met and (most - least > 2 * self._step() or self.ranges.bucket.most > most):
            return math.inf
        since_s = self._calls.now() - self._refused_s()
        share = _BACK if self._is_met else min(1.0, (since_s + _FILL_S) / MINUTE_S)
        return share * self._full + 2 * self._step()

    async def _fill(self, first: float, goal: float) -> float:
        """Sends `first` and then more until so much is sent or it is refused, then less until a step is refused, and
        returns what was admitted."""
        calls, unit = self._calls, self._unit
        # What was sent, without what is known to be refused; and what of that was answered.
        sent = answered = 0.0
        amount, is_over = first, False
        goal, over_s = min(goal, self._most - self._used()), calls.now() + MINUTE_S
        while sent + self._step() <= goal + 1e-6 and calls.now() < over_s:
            sizes = unit.sizes(min(max(self._step(), amount), goal - sent), self._step())
            if not sizes:
                await calls.wait(calls.now() + _LONGEST_S)
            elif await calls.send(sizes, unit.moment_s):
                sent += sum(map(unit.of_size, sizes))
                amount = amount / 2 if is_over else self._next(sent, first)
            else:
                answers = await calls.answers()
                sent = answered = answered + sum(unit.of(one) for one in answers if one.is_admitted)
                unit.note_failures([one.size for one in answers if one.is_failed])
                over = min((unit.of(one) for one in answers if one.is_refused), default=math.inf)
                is_over = is_over or over < math.inf
                # Less is left than was refused; what is admitted beyond that came back meanwhile.
                amount, goal = min(over / 2, amount), min(goal, sent + over)
                is_close = over <= _CLOSE * self._step()
                if is_close or (is_over and calls.earliest_s > calls.now() + _PATIENCE_S):
                    break
                await calls.wait(calls.earliest_s)
        answers = await calls.answers()
        return answered + sum(unit.of(one) for one in answers if one.is_admitted)

    def _next(self, sent: float, first: float) -> float:
        """Returns how much comes after so much: up to what a window is expected to admit as much again as came after
        the first, and beyond that first a step."""
        left = self._full - sent
        if self.ranges.is_bucket:
            return self._unit.growth * sent
        if left >= self._step():
            return min(sent - first, left / 2)
        return (min(1 / 2, self._unit.growth) if self._full else self._unit.growth) * (sent - self._full)

    def _refused_s(self) -> float:
        """Returns when the last call that was refused was sent."""
        return max(one.sent_s for one in self._calls.seen if one.is_refused)

    def _step(self) -> float:
        return self._unit.step(max(self._full, self._used()))

    def _used(self) -> float:
        """Returns what was admitted in the last minute."""
        since_s = self._calls.now() - MINUTE_S
        return sum(self._unit.of(one) for one in self._calls.seen if one.is_admitted and one.done_s > since_s)

    def _uses(self) -> list[Use]:
        seen = [one for one in self._calls.seen if one.is_admitted]
        seen += [one for one in self._calls.seen[self._before :] if one.is_refused]
        return [
            Use(one.sent_s, one.done_s, self._unit.of(one), one.is_admitted, one.retry_after_s or 0.0) for one in seen
        ]

    # When it ends

    @property
    def _is_met(self) -> bool:
        """Whether the limit that headers report was admitted, and a step more was not."""
        least, most = self.ranges.sliding
        step, header = self._step(), self._header
        return header > 0 and header - step <= least and header <= most <= 1.05 * header + step

    @property
    def _is_confirmed(self) -> bool:
        """Whether the limit that headers report is met, and comes back within a minute."""
        return self._is_met and self.ranges.bucket.least >= _BACK_LEAST * self._header

    def _is_enough(self) -> bool:
        """Notes what follows from the answers so far, and returns whether polling longer would show no more."""
        self.ranges = ranges(self._uses())
        most = self.ranges.most
        return self._is_confirmed or self.ranges.least >= min(self._unit.precise * most, most - self._step())
