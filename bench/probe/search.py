"""Finds one quota of a model, requests or tokens: a burst to the first refusal, then a minute of polls to more of them.

Owns when how much is sent. What follows from the answers: least. Knows no caps, no money and no provider.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from .answers import TimedAnswer
from .least import MINUTE_S, Least, Use, late_s, least

# The first poll comes so long after a refusal, or when a step may be back, and each later one after twice the time, up
# to a seventh of a minute. A bucket that holds less is polled more often once a poll gives less than its share.
_FIRST_S, _LONGEST_S, _NEARLY = 1.0, 8.0, 0.9
# A bucket's rate is as precise as this, or is polled on, for two minutes at the most. A header's limit is confirmed by
# nearly as much: both and the jitter of a call stay within 5% of the truth.
_PRECISE, _CONFIRMED, _POLLS_MOST_S = 0.04, 0.96, 2 * MINUTE_S
# A window gives all back at once: if so much of the header's limit is back after a minute, it is no hour's.
_BACK = 0.25
# A burst grows by a third of itself, so that few of its calls are refused.
GROWTH = 1 / 3
# What tokens are refused is tried again at a quarter, down to steps of 2% of what was admitted.
_CLOSER, STEP, CLOSE, _TRIES = 1 / 4, 0.02, 1.5, 3
# Where a pause came between, the next burst goes through what was refused in so many parts.
_PARTS, _CLOSER_TIMES = 12, 2
# After a poll that was given nothing, a bucket gives no more than two or three steps.
_SUDDEN = 8
# A bucket refills steadily: refusals after which some spans gave back this many times as much as all together were for
# another reason.
_UNSTEADY = 1.6
# A refusal that asks for a longer wait ends the burst.
_PATIENCE_S = 8.0
# How much later than a minute a call has left it for sure.
SPARE_S = 0.1


class Sender(Protocol):
    """The interface of what sends calls to one model. `send` begins calls together and returns whether more may follow:
    none of the burst was refused or failed yet. `answers` waits for all calls in flight and returns what was answered
    since the last time. `sent_at`: when each call was sent, also of those in flight; `seen`: all answers so far;
    `earliest_s`: when the provider's pause is over."""

    sent_at: list[float]
    seen: list[TimedAnswer]

    @property
    def earliest_s(self) -> float: ...

    def now(self) -> float: ...

    async def wait(self, until_s: float) -> None: ...

    async def send(self, sizes: Sequence[int]) -> bool: ...

    async def answers(self) -> list[TimedAnswer]: ...


class Burst(NamedTuple):
    """What one burst showed: the amount admitted, and the least that was refused (None: nothing was)."""

    admitted: float
    refused: float | None


class Search(ABC):
    """The search for one quota. `header`, `left`: the limit a minute and what is left of it, as headers report (None:
    they don't); no minute is sent more than `most`.
    `low`: the least limit under each rule; `burst`: what is admitted at once after a rest."""

    # The share of an amount by which the provider's count may differ from the one that it reports.
    unsure = 0.0

    def __init__(self, sender: Sender, header: float | None, most: float, left: float | None = None) -> None:
        self._sender = sender
        self._before, self._sent_before = len(sender.seen), len(sender.sent_at)
        self._left = math.inf if left is None else max(1.0, left)
        self._header = None if header is None or header > most else header
        self._most = most
        # What the first burst admitted, or is expected to admit.
        self._full = 0.0
        # In these parts a burst goes beyond it (0: in doubling steps).
        self._part = 0.0
        # When a minute is over since the burst's first call, and since its last.
        self._minute_s = self._last_s = math.inf
        self._is_met = False
        # What this poll was given, and whether the one before it was given nothing.
        self._given, self._is_silent = 0.0, False
        # Whether something came back before a minute was over, more than once.
        self.refills = False
        self.low = Least(0.0, 0.0, 0.0, 0.0)
        self.burst = 0.0
        self.limit = math.inf

    @property
    def tested(self) -> int:
        """The most that was admitted within a minute."""
        return int(least(self.uses()).sliding)

    @abstractmethod
    def step(self) -> float:
        """Returns the smallest amount worth sending."""

    @abstractmethod
    def sizes(self, amount: float) -> list[int]:
        """Returns the prompt sizes of calls that use about this amount; none if it is below the smallest call."""

    def note_failures(self, sizes: list[int]) -> None:
        """Notes the prompt sizes of calls that failed."""
        return

    @abstractmethod
    def amount_of_size(self, size: int) -> float:
        """Returns what a call of this prompt size probably uses."""

    def amount_of(self, one: TimedAnswer) -> float:
        """Returns what the call used, or would have used if it was refused."""
        return self.amount_of_size(one.size)

    @property
    def is_short_of_calls(self) -> bool:
        """Whether more can be sent soon, when calls are free again."""
        return False

    @abstractmethod
    async def begin(self) -> float:
        """Prepares the first burst where no header names a limit; returns the amount to begin with."""

    @property
    def growth(self) -> float:
        return GROWTH

    def _milestones(self, begun_s: float, ended_s: float, late: float) -> tuple[float, ...]:
        """Returns when polls are due: before a minute is over since the burst began, and after that of its end."""
        return begun_s + MINUTE_S - late, ended_s + MINUTE_S + late

    def _due(self, at_s: float, times: Sequence[float]) -> float:
        """Returns when to send the poll that could go at `at_s`."""
        return at_s

    def refusals(self) -> list[TimedAnswer]:
        return [one for one in self._sender.seen[self._before :] if one.is_refused]

    def uses(self) -> list[Use]:
        seen = [one for one in self._sender.seen if one.is_admitted] + self.refusals()
        return [Use(one.sent_s, one.done_s, self.amount_of(one), one.is_admitted) for one in seen]

    async def run(self) -> float | None:
        """Returns the limit a minute; None if it was not found."""
        sender = self._sender
        begun_s = burst_s = sender.now()
        if self._header is None:
            amount = await self.begin()
            burst_s = sender.now()
            first = await self._burst(amount)
        else:
            self._full = self._header
            first = await self._burst(min(self._header - self._used(), self._left))
        for _ in range(_CLOSER_TIMES):
            if first.refused is None or not first.admitted or first.refused <= 2 * self.step():
                break
            # The provider asked for a pause before the burst had come close: after a rest it begins anew.
            await sender.wait(sender.now() + MINUTE_S + late_s(self.uses()) + SPARE_S)
            begun_s = burst_s = sender.now()
            self._full, self._part = first.admitted, first.refused / _PARTS
            first = await self._burst(first.admitted)
        self.low = least(self.uses())
        if first.refused is None:
            return None
        ended_s = max((one.sent_s for one in sender.seen if one.is_admitted), default=burst_s)
        lasted_s = min(one.sent_s for one in self.refusals() if one.sent_s >= burst_s) - burst_s
        if self._header is not None:
            refilled = self.low.sliding * lasted_s / MINUTE_S
            self._is_met = self._header - first.refused <= self.low.sliding <= 1.05 * self._header + refilled
        self._full = max(self._full, first.admitted) if self._is_met else first.admitted
        await self._poll(begun_s, ended_s)
        if self.refills and self.low.bucket > _UNSTEADY * self._average:
            return None
        self.limit = limit = self._header if self._header is not None and self._is_confirmed else self.low.of_all
        if not self._is_confirmed:
            self.limit = limit = limit * (1 - self.unsure)
        # What a bucket got while the burst lasted, by the most that its rate can be.
        refilled = limit * (lasted_s + late_s(self.uses())) / MINUTE_S / (1 - _PRECISE)
        self.burst = min(limit, first.admitted - refilled if self.refills else self.low.sliding)
        return limit if limit >= 1 else None

    # What is sent

    def _used(self) -> float:
        """Returns what was admitted in the last minute."""
        since_s = self._sender.now() - MINUTE_S
        return sum(self.amount_of(one) for one in self._sender.seen if one.is_admitted and one.done_s > since_s)

    def _next(self, sent: float, first: float) -> float:
        """Returns how much a burst that has sent so much sends next: with doubling steps up to the amount that is
        expected, and with doubling steps again beyond it."""
        if not self._full:
            return max(self.step(), sent * self.growth)
        if sent < self._full:
            return max(self.step(), min(sent - first, self._full - sent))
        return max(self.step(), self._part or sent - self._full)

    async def _burst(self, first: float, *, is_poll: bool = False) -> Burst:
        """Sends `first` and then more until it is refused, and then less until a step is refused; or until a poll shows
        enough."""
        sender, amount, admitted, refused, tries = self._sender, first, 0.0, math.inf, 0
        in_flight, left = 0.0, self._most - self._used()
        while True:
            sizes = self.sizes(min(amount, left - admitted - in_flight))
            if not sizes:
                if left - admitted - in_flight < self.step() or not self.is_short_of_calls:
                    break
                await sender.wait(sender.now() + _FIRST_S)
                continue
            if await sender.send(sizes) and not (is_poll and self._is_stepwise):
                in_flight += sum(self.amount_of_size(size) for size in sizes)
            else:
                in_flight = 0.0
                answers = await sender.answers()
                self._given = admitted = admitted + sum(self.amount_of(one) for one in answers if one.is_admitted)
                self.note_failures([one.size for one in answers if one.answer.verdict == "failed"])
                over = min((self.amount_of(one) for one in answers if one.is_refused), default=math.inf)
                refused = min(refused, over)
                if over <= CLOSE * self.step() or (is_poll and self._is_stepwise and self._is_enough()):
                    break
                tries += over < math.inf
                if tries > _TRIES or sender.earliest_s > sender.now() + _PATIENCE_S:
                    break
                await sender.wait(sender.earliest_s)
                if over < math.inf:
                    amount = max(self.step(), _CLOSER * over)
                    continue
            # Once refused, a burst doubles what was admitted, so that it is never slower than a bucket refills.
            amount = self._next(admitted + in_flight, first) if refused == math.inf else 2 * amount
        admitted += sum(self.amount_of(one) for one in await sender.answers() if one.is_admitted)
        return Burst(admitted, None if refused == math.inf else refused)

    async def _poll(self, begun_s: float, ended_s: float) -> None:
        """Polls until a minute after the first burst, or until its answers show enough."""
        sender, longest_s = self._sender, _LONGEST_S
        gap_s = min(_LONGEST_S, max(_FIRST_S, MINUTE_S * self.step() / self._full)) if self._full else _FIRST_S
        late = late_s(self.uses()) + SPARE_S
        times = self._milestones(begun_s, ended_s, late)
        self._minute_s, self._last_s = times[0], times[-1]
        since_s, is_window_over, is_empty = ended_s, False, False
        while True:
            now_s = sender.now()
            at_s = max(sender.earliest_s, min(each for each in (now_s + gap_s, *times) if each > now_s))
            await sender.wait(self._due(at_s, times))
            self._is_silent = is_empty or sender.now() > since_s + _PATIENCE_S
            poll = await self._burst(self._expected(sender.now() - since_s), is_poll=True)
            is_empty = not poll.admitted
            passed_s, since_s = sender.now() - since_s, sender.now()
            if self._is_enough() or since_s > ended_s + _POLLS_MOST_S:
                return
            if since_s >= self._last_s + _PATIENCE_S and self._is_tight:
                return
            if is_window_over and not poll.admitted and not self.refills:
                return
            gap_s = _FIRST_S if since_s >= self._last_s > now_s else min(2 * gap_s, longest_s)
            if poll.refused is not None and poll.admitted >= (1 - _PRECISE) * self._full:
                # All came back at once. After a window's end nothing more does.
                if sender.earliest_s > since_s + _PATIENCE_S:
                    return
                is_window_over, gap_s = True, _FIRST_S
            elif self.refills and poll.admitted + self.step() < _NEARLY * self.low.bucket * passed_s / MINUTE_S:
                # A bucket was full again.
                longest_s = gap_s = max(_FIRST_S, gap_s / 2)

    def _expected(self, waited_s: float) -> float:
        """Returns how much is probably back: what a bucket gives meanwhile, or all after a minute."""
        if self.low.is_fixed_excluded:
            return max(self.step(), self.low.bucket * waited_s / MINUTE_S)
        return self._back() if self._sender.now() >= self._last_s else self.step()

    def _back(self) -> float:
        """Returns how much to send first when a window must have given all back: what confirms a header's limit."""
        if not self._is_met or self._header is None:
            return self.step()
        return _BACK * self._header * (self._sender.now() - self._minute_s + MINUTE_S) / MINUTE_S + 2 * self.step()

    # When it ends

    @property
    def _is_stepwise(self) -> bool:
        """Whether a poll may end before it is refused: what comes back from a window only confirms the burst."""
        if self.refills:
            return False
        if self.low.is_fixed_excluded:
            return self._is_met or self._sender.now() >= self._minute_s
        return self._is_met or self._is_silent

    @property
    def _is_confirmed(self) -> bool:
        """Whether the limit that headers report was admitted, no more was, and it comes back within a minute."""
        share = _CONFIRMED if self.low.is_fixed_excluded else _BACK
        return self._is_met and self._header is not None and self.low.bucket >= share * self._header

    @property
    def _is_tight(self) -> bool:
        """Whether polling longer would show no more: of a window, or of a bucket's rate."""
        return not self.refills or (self.low.bucket == self.low.of_all and self._precision <= _PRECISE)

    @property
    def _average(self) -> float:
        """What was admitted a minute since the first refusal."""
        since_s = min(one.sent_s for one in self.refusals())
        amount = sum(self.amount_of(one) for one in self._sender.seen if one.is_admitted and one.sent_s > since_s)
        return MINUTE_S * amount / (self._sender.now() - since_s)

    @property
    def _precision(self) -> float:
        """The share by which a bucket's rate may be above what was found."""
        ended = [one.sent_s for one in self.refusals()]
        passed_s = self._sender.now() - min(ended)
        given = self.low.bucket * passed_s / MINUTE_S
        return self.step() / given + late_s(self.uses()) / passed_s if given else math.inf

    def _is_enough(self) -> bool:
        """Notes what follows from the answers so far, and returns whether polling longer would show no more."""
        self.low = least(self.uses())
        if self._is_confirmed:
            return True
        if not self.low.is_fixed_excluded:
            # So much at once after nothing at all is a window's end, and the burst was all of a window.
            is_end = self._is_silent and self._given >= _SUDDEN * self.step()
            return is_end and self.low.bucket >= self.low.fixed >= (1 - _PRECISE) * self._full
        # Before a minute is over, a window that was unused gives nothing back.
        self.refills = self.refills or self._sender.now() < self._minute_s
        if self.refills:
            return self._is_tight
        return self.low.bucket >= self.low.sliding
