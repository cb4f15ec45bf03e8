"""Finds one quota of a model, requests or tokens: a burst to the first refusal, then polls, each to the next.

Owns when how much is sent, and when the answers show enough. What follows from them: least. Caps, money and the pauses
that a provider asks for: calls.
"""

from __future__ import annotations

import math

from .answers import SMALL, TimedAnswer
from .calls import ModelCalls
from .least import MINUTE_S, Least, Use, late_s, least, most

# A poll comes so long after a refusal, and each later one after twice the time, up to half of a window of ten seconds:
# longer polls can't exclude such windows. It is polled for so long at the most.
_FIRST_S, _LONGEST_S, _POLLS_MOST_S = 1.0, 5.0, 2.5 * MINUTE_S
# What is found is as precise as this, or is polled on.
_PRECISE = 0.965
# A window gives all back at once: if so much of the header's limit is back after a minute, it is no hour's.
_BACK = 0.25
# A burst grows by such a part of itself every moment, so that few of its calls are refused: with few and large calls by
# a third, and the moments are longer.
_GROWTH, _MOMENT_S = 1 / 12, 0.0625
# A bucket refills steadily: what came back this many times as fast as all together was refused for another reason.
_UNSTEADY = 1.1
# The smallest amount of tokens worth sending, as a share of what was admitted. A refusal of more than so many steps is
# tried again in smaller calls, so often, unless the provider asks for a longer wait.
STEP, _CLOSE, _TRIES, _PATIENCE_S = 0.02, 1.5, 3, 8.0
# Where no more than so many steps were refused and then nothing came back for a while, so many at once are a window's
# end: a bucket gives two or three.
_NEAR, _SUDDEN = 4, 8
# Where a pause came between, the next burst goes through what was refused in so many parts.
_PARTS, _AGAIN = 12, 2
# How much later than a minute a call has left it for sure.
SPARE_S = 0.1
# Where no header names a limit, so long before the burst one call goes.
APART_S = 11.0


class Search:
    """The search for one quota: of requests, unless a subclass counts something else. `header`, `left`: the limit a
    minute and what is left of it, as headers report (None: they don't); no minute is sent more than `most`.
    `low`: the least limit under each rule; `burst`: what is admitted at once after a rest; `refills`: whether something
    came back before a minute was over, more than once."""

    # The share of an amount by which the provider's count may differ from the one that it reports.
    unsure = 0.0

    def __init__(self, sender: ModelCalls, header: float | None, most: float, left: float | None = None) -> None:
        self._sender = sender
        self._before, self._sent_before = len(sender.seen), len(sender.sent_at)
        self._left = math.inf if left is None else max(1.0, left)
        self._header = None if header is None or header > most else header
        self._most = most
        self._early_s = self._begun_s = self._ended_s = math.inf
        self._is_met = False
        # What the burst admitted, or is expected to admit; and in which parts it goes beyond that (0: doubling steps).
        self._full = self._part = 0.0
        # What was admitted in the minute before the burst: a sliding minute gives it back first.
        self._early = 0.0
        # The least that was refused at the end of the last burst.
        self._over = math.inf
        # What this poll was given, and whether it comes after a time without anything.
        self._given, self._is_silent = 0.0, False
        self.refills = False
        self.low = Least(0.0, 0.0, 0.0, 0.0)
        self.burst = 0.0
        self.limit = math.inf

    @property
    def tested(self) -> int:
        """The most that was admitted within a minute."""
        return int(least(self.uses()).sliding)

    # A quota of requests is counted so; one of tokens: token_search.

    def step(self) -> float:
        """Returns the smallest amount worth sending."""
        return 1.0

    def first(self) -> float:
        """Returns the amount to begin with where no header names a limit."""
        return 1.0

    @property
    def growth(self) -> float:
        return _GROWTH

    @property
    def moment_s(self) -> float:
        """Returns how many seconds a step of a burst waits for a refusal."""
        return _MOMENT_S

    @property
    def is_short_of_calls(self) -> bool:
        """Whether more can be sent soon, when calls are free again."""
        return False

    def sizes(self, amount: float, *, in_parts: bool) -> list[int]:
        """Returns the prompt sizes of calls that use about this amount, if possible `in_parts` of which a refusal shows
        more; none if it is below the smallest call."""
        return [SMALL] * math.floor(amount + 1e-6)

    def amount_of_size(self, size: int) -> float:
        """Returns what a call of this prompt size probably uses."""
        return 1.0

    def amount_of(self, one: TimedAnswer) -> float:
        """Returns what the call used, or would have used if it was refused."""
        return self.amount_of_size(one.size)

    def note_failures(self, sizes: list[int]) -> None:
        """Notes the prompt sizes of calls that failed."""

    def uses(self) -> list[Use]:
        seen = [one for one in self._sender.seen if one.is_admitted] + self.refusals()
        return [Use(one.sent_s, one.done_s, self.amount_of(one), one.is_admitted) for one in seen]

    def refusals(self) -> list[TimedAnswer]:
        return [one for one in self._sender.seen[self._before :] if one.is_refused]

    async def run(self) -> float | None:
        """Returns the limit a minute; None if it was not found."""
        sender = self._sender
        if self._header is None:
            # What this used is back first where a sliding minute counts, but with all the rest where a fixed one does.
            self._early_s = sender.now()
            await sender.send(self.sizes(self.step(), in_parts=False))
            await sender.answers()
            await sender.wait(self._early_s + APART_S)
        begun_s, before, self._early = sender.now(), len(sender.seen), self._used()
        if self._header is None:
            await self._burst(self.first(), is_poll=False)
        else:
            self._full = self._header
            await self._burst(min(self._header - self._used(), self._left), is_poll=False)
        for _ in range(_AGAIN):
            admitted = sum(self.amount_of(one) for one in sender.seen[before:] if one.is_admitted)
            if not admitted or self._over <= 2 * self.step() or self._over == math.inf:
                break
            # The provider asked for a pause before the burst had come close: after a rest it begins anew.
            await sender.wait(sender.now() + MINUTE_S + late_s(self.uses()) + SPARE_S)
            begun_s, before = sender.now(), len(sender.seen)
            self._full, self._part = admitted, self._over / _PARTS
            await self._burst(admitted, is_poll=False)
        self.low = least(self.uses())
        refusals = [one for one in sender.seen[before:] if one.is_refused]
        if not refusals:
            return None
        self._begun_s = begun_s
        lasted_s = refusals[0].sent_s - begun_s
        since = [one for one in sender.seen[before:] if one.is_admitted]
        self._ended_s = max((one.sent_s for one in since), default=begun_s)
        admitted = sum(self.amount_of(one) for one in since)
        self._full = self.low.sliding
        if self._header is not None:
            refilled = self.low.sliding * lasted_s / MINUTE_S
            self._is_met = self._header - self._over <= self.low.sliding <= 1.05 * self._header + refilled
        await self._poll()
        steady = self._steady() if self.refills else math.inf
        if self.low.bucket > _UNSTEADY * steady:
            return None
        if self._is_confirmed:
            assert self._header is not None
            limit = self._header
        else:
            limit = min(self.low.of_all, steady) * (1 - self.unsure)
        self.limit = limit
        # What a bucket got while the burst lasted, by the most that its rate can be.
        refilled = limit * (lasted_s + late_s(self.uses())) / MINUTE_S / _PRECISE
        self.burst = min(limit, admitted - refilled if self.refills else self.low.sliding)
        return limit if limit >= 1 else None

    def _used(self) -> float:
        """Returns what was admitted in the last minute."""
        since_s = self._sender.now() - MINUTE_S
        return sum(self.amount_of(one) for one in self._sender.seen if one.is_admitted and one.done_s > since_s)

    def _next(self, sent: float, amount: float, first: float, *, is_poll: bool) -> float:
        """Returns how much a burst that has sent so much, at last `amount` and at `first` that, sends next."""
        if is_poll:
            if self.refills:
                return sent * self.growth
            back = self._full - sent
            if back >= self.step():
                if sent < 2 * self.step():
                    return self.step()
                if not self._is_stepwise:
                    return sent * self.growth
                # While a sliding minute gives the burst back, no more than that.
                is_mid = self._begun_s <= self._sender.now() - MINUTE_S < self._ended_s
                quarter = _BACK * self._full
                return min(back, quarter if self._is_silent and not is_mid else min(quarter, max(sent, self._back())))
            return self.step() if back > -self.step() else (1 + self.growth) * amount
        if not self._full:
            return sent * self.growth
        if sent < self._full:
            return min(sent - first, self._full - sent)
        return self._part or sent - self._full

    async def _burst(self, first: float, *, is_poll: bool) -> None:
        """Sends `first` and then more until it is refused, and then less until a step is refused; or until a poll shows
        enough."""
        sender, amount, tries, is_over = self._sender, first, 0, False
        # What was sent, without what is known to be refused; and what of that was answered.
        sent = answered = 0.0
        left = self._most - self._used()
        over_s = math.inf
        while sender.now() < over_s:
            amount = min(max(self.step(), amount), left - sent)
            sizes = self.sizes(amount, in_parts=is_poll or is_over)
            if not sizes:
                if left - sent < self.step() or not self.is_short_of_calls:
                    break
                await sender.wait(sender.now() + _FIRST_S)
                continue
            if await sender.send(sizes, self.moment_s) and not (is_poll and self._is_stepwise):
                sent += sum(map(self.amount_of_size, sizes))
                amount = self._next(sent, amount, first, is_poll=is_poll)
                continue
            answers = await sender.answers()
            self.note_failures([one.size for one in answers if one.answer.verdict == "failed"])
            over = self._over = min((self.amount_of(one) for one in answers if one.is_refused), default=math.inf)
            admitted = sum(self.amount_of(one) for one in answers if one.is_admitted)
            sent = answered = answered + admitted
            self._given += admitted
            if is_poll and self._is_enough():
                break
            if over < math.inf:
                tries += 1
                # With few calls what is sent may never reach what a bucket refills meanwhile.
                over_s = min(over_s, sender.now() + MINUTE_S)
                is_close = over <= _CLOSE * self.step() or (is_poll and not self._given)
                if is_close or tries > _TRIES or sender.earliest_s > sender.now() + _PATIENCE_S:
                    break
                await sender.wait(sender.earliest_s)
                is_over, amount = True, over
            else:
                amount = self._next(sent, amount, first, is_poll=is_poll or is_over)
        await sender.answers()

    async def _poll(self) -> None:
        """Polls until the answers show enough."""
        sender, gap_s = self._sender, _FIRST_S
        over_s = self._ended_s + _POLLS_MOST_S
        while not self._is_enough() and sender.now() < over_s:
            before_s = sender.now()
            # A sliding minute gives back what the burst began with alone, a fixed one does not.
            times = (self._early_s, self._begun_s, (self._begun_s + self._ended_s) / 2, self._ended_s)
            due = (before_s + gap_s, *(each + MINUTE_S + SPARE_S for each in times))
            # A pause that is asked for ends with the minute: without headers, a poll at that moment falls into two.
            asked_s = sender.earliest_s + (_FIRST_S if self._header is None else 0.0)
            await sender.wait(max(asked_s, min(each for each in due if each > before_s)))
            self._is_silent = self._over <= _NEAR * self.step() and (
                not self._given or sender.now() > before_s + _PATIENCE_S
            )
            self._given = 0.0
            await self._burst(self._expected(), is_poll=True)
            # In three times the gap a bucket would be full.
            holds_s = MINUTE_S * self._full / self.low.bucket if self.refills else math.inf
            longest_s = max(_FIRST_S, min(_LONGEST_S, holds_s / 3))
            gap_s = _FIRST_S if self._given and not self.refills else min(longest_s, 2 * gap_s)

    def _expected(self) -> float:
        """Returns how much a poll sends first: what a bucket gave meanwhile, or a sliding minute, of which a quarter
        confirms a header's limit."""
        if self.refills:
            waited_s = self._sender.now() - self.refusals()[-1].sent_s
            return min(self._full, 1.1 * self.low.bucket * waited_s / MINUTE_S) + 2 * self.step()
        back = min(self._back(), _BACK * self._full + 2 * self.step()) if self._is_met else self.step()
        return max(back, self._over / 2 if self._over < math.inf else 0.0)

    def _back(self) -> float:
        """Returns how much of the limit a sliding minute has given back."""
        since_s = self._sender.now() - MINUTE_S
        return self._full - sum(use.amount for use in self.uses() if use.is_admitted and use.sent_s > since_s)

    # When it ends

    @property
    def _is_stepwise(self) -> bool:
        """Whether a poll may end before it is refused: what a window gives back at once only confirms the burst."""
        return not self.refills and (self._is_silent or self._sender.now() >= self._ended_s + MINUTE_S)

    @property
    def _is_confirmed(self) -> bool:
        """Whether the limit that headers report was admitted, no more was, and it comes back within a minute."""
        share = _PRECISE if self.low.is_fixed_excluded else _BACK
        return self._is_met and self._header is not None and self.low.bucket >= share * self._header

    def _steady(self) -> float:
        """Returns the most a minute that a bucket can have given since the burst, if it was never full."""
        lasted_s = self.refusals()[-1].sent_s - self._ended_s
        return MINUTE_S * (self._since_burst() + self._over) / max(SPARE_S, lasted_s)

    def _since_burst(self) -> float:
        """Returns what was admitted since the burst."""
        after = (one for one in self._sender.seen if one.is_admitted and one.sent_s > self._ended_s)
        return sum(map(self.amount_of, after))

    def _is_enough(self) -> bool:
        """Notes what follows from the answers so far, and returns whether polling longer would show no more."""
        self.low = least(self.uses())
        if self._is_confirmed:
            return True
        self.refills = self.refills or (
            self.low.is_fixed_excluded
            and self._sender.now() < self._begun_s + MINUTE_S - SPARE_S
            and self._since_burst() > self._early + self.step()
        )
        limit = most(self.uses())
        is_end = self._is_silent and self._given >= _SUDDEN * self.step()
        if self.refills:
            limit = self._steady()
        elif self._sender.now() < self._ended_s + MINUTE_S and not is_end:
            return False
        return self.low.of_all >= min(_PRECISE * limit, limit - self.step())
