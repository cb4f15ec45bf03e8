"""Finds how many tokens a minute a provider admits, with few large calls after those that found its requests.

A generator that yields steps and receives answers, until all limits that agree with them are within 4% of each other;
then it takes the lowest. Knows no clock, no provider and no budget.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence

from .boxes import Event
from .choice import Means, RoundChoice
from .hints import guesses
from .hypotheses import FOUND_WITHIN
from .pace import Pace
from .phase import ANY, Spans, beginnings, together
from .result import FoundQuota
from .steps import SMALL, Ask, Step, Steps, TimedAnswer, Wait, Window, told_wait_s
from .token_hypotheses import TokenHypotheses

# A minute and a little more: the requests' quota is free again, under each kind of window.
_REST_S = 61.5
# The range of limits: at least this share of what requests used; more tokens a request than this are no limit in
# practice.
_LEAST_SHARE, _WORTH_A_REQUEST, _WORTH = 0.8, 6_000, 500_000
# A call's usage includes a little output, which a limit on input alone does not count.
_SURE, _TWICE = 0.9985, 1.9
# The most rounds of a probe that never finds a limit.
_ROUNDS_MAX = 400
# No limit counts as met once the probability of one that matters is below this.
_UNLIKELY = 0.02
# Smaller calls show which tokens are counted beside the prompt: for larger ones the estimate errs by more.
_SMALLISH = 200
# After a refusal that names no wait; how many calls may be left where no limit of requests was met.
_PAUSE_S, _UNBOUNDED = 1.0, 100_000
# A call answered later than this was worked on; its decision was not that late.
_LATE_MAX_S = 0.25
# Calls larger than any that was answered go alone first: a context may be smaller.
_UNTRIED, _UNTRIED_TIMES = 4_000, 1.5
# After this many failed rounds, each of half the size of the one before, size is not the cause.
_FAILED_MAX = 4
# This many refusals in a row without information are enough.
_IDLE_MAX = 6
# The bits that a second, and all calls that are left, must give; below this many calls left, time is cheaper.
_A_SECOND, _ALL_CALLS, _MANY_CALLS = 0.002, 6.0, 20


class TokenProbe:
    """The part of a probe that finds one model's quota of tokens. `calls_left`: calls that may still be sent (None: any
    number); `now_s`: the clock after the requests' part; `at_once`: the most calls admitted together; `beside`: the
    most tokens that a call used beyond its size; `before`: the answers of the requests' part; `tokens_most`: the
    most tokens a minute to try."""

    def __init__(
        self,
        found: FoundQuota,
        *,
        now_s: float,
        tokens_a_call: int,
        at_once: int,
        calls_left: int | None,
        beside: int = 0,
        before: Sequence[TimedAnswer] = (),
        tokens_most: float = math.inf,
    ) -> None:
        self.found = found
        self._now = now_s
        self._a_call = float(tokens_a_call)
        self._most = min(at_once, found.concurrency or at_once)
        self._calls_left = _UNBOUNDED if calls_left is None else calls_left
        self._beside = beside
        self._before, self._tokens_most = before, tokens_most
        added = [one.answer.tokens - one.size for one in before if one.is_admitted and one.size < _SMALLISH]
        self._beside_least = min(added, default=_LEAST_SHARE * beside)
        self._ratio = 1.0
        self._late_s = min([_LATE_MAX_S, *(_late(one) for one in before)])
        self._phases: Spans = ANY
        if found.window == "fixed" and found.rpm is not None:
            self._phases = beginnings(before, found.rpm, self._late_s)
        self._not_before = now_s
        self._in_vain = self._possible = 0
        self._told_nothing: list[float] = []
        self._largest = 0
        self._failed = 0
        self._rounds: list[list[TimedAnswer]] = []

    @property
    def _are_requests_known(self) -> bool:
        """Whether a refusal can only be for tokens; else it may be for the number of calls, or for those in flight."""
        ceiling = self.found.concurrency or math.inf
        few = [group for group in together(self._before) if len(group) <= ceiling]
        return self.found.rpm is not None or not any(one.is_refused for group in few for one in group)

    def steps(self) -> Steps:
        # If the bound is below what the smallest call uses, hundreds of small calls would give no information.
        if not self._are_requests_known or self._tokens_most < self._beside + SMALL:
            return
        self._now = self._not_before = self._now + _REST_S
        yield Wait(self._now)
        self._pace = Pace(self.found, self._now)
        self._hypotheses = self._rebuilt()
        for _ in range(_ROUNDS_MAX):
            choice = self._next()
            if choice is None or (yield from self._try(choice)):
                break
            if self._hypotheses.is_void and self._phases != ANY:
                # Tokens may be counted in other windows than requests.
                self._phases = ANY
                self._hypotheses = self._rebuilt()
            if self._hypotheses.is_void or self._is_known():
                break
        if self._is_narrow:
            yield from self._confirm()
        self._conclude()

    def _is_known(self) -> bool:
        return self._hypotheses.limited < _UNLIKELY or self._is_narrow

    @property
    def _is_narrow(self) -> bool:
        return not self._hypotheses.is_void and self._hypotheses.high <= FOUND_WITHIN * self._hypotheses.low

    def _conclude(self) -> None:
        if not self._is_narrow:
            return
        self.found.tpm = tpm = self._hypotheses.low * _SURE
        if self.found.rpm is not None and tpm <= FOUND_WITHIN * self.found.rpm * (self._beside + SMALL):
            # The small calls that found the requests' limit used up these tokens: they may have been refused for that.
            self.found.tested_rpm = max(self.found.tested_rpm, int(self.found.rpm))
            self.found.rpm = self.found.burst = None
        if (
            self.found.window is None
            and len(self._hypotheses.kinds) == 1
            and not any(one.is_refused for one in self._before)
        ):
            self.found.window = self._hypotheses.kinds[0]

    def _confirm(self) -> Generator[Step, list[TimedAnswer], None]:
        """Checks that the same amount is admitted again a minute later, since a window may be longer than a minute."""
        low = self._hypotheses.low
        used = sum(one.answer.tokens for seen in self._rounds for one in seen if one.is_admitted)
        amount = 0.985 * low
        calls = max(1, math.ceil(amount / self._tokens_of(self._a_call)))
        if self._hypotheses.kinds == ["bucket"] or used > _TWICE * low or calls > self._calls_left:
            return
        self._not_before = max(self._not_before, self._now + _REST_S)
        while calls > 0 and not self._hypotheses.is_void:
            at_once = min(calls, self._at_once())
            at_s = self._pace.ready(at_once, max(self._now, self._not_before))
            yield from self._try(RoundChoice(at_s, at_once, amount / calls, 0.0))
            amount, calls = amount * (1 - at_once / calls), calls - at_once

    # What is sent

    def _at_once(self) -> int:
        return int(min(self._most, self._pace.at_once, self._calls_left))

    def _next(self) -> RoundChoice | None:
        at_once = self._at_once()
        if at_once < 1:
            return None
        left = max(1.0, self._calls_left)
        means = Means(
            lambda count: self._pace.ready(count, max(self._now, self._not_before)),
            at_once,
            self._tokens_of(self._a_call),
            self._tokens_of(SMALL),
            left,
            _A_SECOND * min(1.0, left / _MANY_CALLS),
            _ALL_CALLS / left,
            self._tokens_most,
            self._told_nothing,
        )
        chosen = self._hypotheses.choose(means)
        size = self._size_of(chosen.a_call)
        if chosen.calls > 1 and size > max(_UNTRIED, _UNTRIED_TIMES * self._largest):
            return chosen._replace(calls=1, at_s=means.ready(1))
        return chosen

    def _try(self, choice: RoundChoice) -> Generator[Step, list[TimedAnswer], bool]:
        """Sends the chosen calls and learns from the answers; returns True if nothing more can be learned."""
        if self._within_a_minute() + choice.calls * choice.a_call > max(self._tokens_most, choice.a_call):
            choice = choice._replace(at_s=max(choice.at_s, self._now + _REST_S))
        if choice.at_s > self._now:
            self._now = choice.at_s
            yield Wait(self._now)
        seen = yield Ask((self._size_of(choice.a_call),) * choice.calls)
        self._calls_left -= len(seen)
        self._now = max([self._now, *(one.done_s for one in seen)])
        self._pace.note(max(one.sent_s for one in seen), len(seen))
        answered = [one for one in seen if one.is_admitted or one.is_refused]
        if not answered:
            return self._note_failure(choice)
        self._failed = 0
        if any(one.is_admitted and not one.answer.tokens for one in answered):
            # The provider doesn't report what a call used.
            self._hypotheses.boxes = []
            return True
        self._note(answered)
        return len(self._told_nothing) >= _IDLE_MAX

    def _note_failure(self, choice: RoundChoice) -> bool:
        """Halves the size of calls if the failed one was the largest so far; returns True after four failed rounds in a
        row."""
        self._failed += 1
        if self._size_of(choice.a_call) > self._largest:
            self._a_call = max(SMALL, self._size_of(choice.a_call) // 2)
        return self._failed >= _FAILED_MAX

    def _note(self, seen: list[TimedAnswer]) -> None:
        admitted = [one for one in seen if one.is_admitted]
        refused = [one for one in seen if one.is_refused]
        self._rounds.append(seen)
        self._largest = max([self._largest, *(one.size for one in seen)])
        told_s = told_wait_s(refused)
        self._in_vain = 0 if admitted else self._in_vain + 1
        if refused:
            pause_s = _PAUSE_S * 2 ** max(0, self._in_vain - 1) if told_s is None else told_s
            self._not_before = max(self._not_before, self._now + min(pause_s, max(_REST_S, told_s or 0.0)))
        self.found.tested_tpm = max(self.found.tested_tpm, self._within_a_minute())
        if self._is_measured_anew(seen):
            self._hypotheses = self._rebuilt()
        else:
            for event in self._events(seen):
                self._hypotheses.learn(event)
            self._hypotheses.guess(guesses(self.found, self._rounds, self._tokens_of))
        possible = sum(len(each) for each in self._hypotheses.boxes)
        if possible < 0.98 * self._possible or possible > self._possible:
            self._told_nothing = []
        else:
            self._told_nothing.append(sum(self._tokens_of(one.size) for one in seen))
        self._possible = possible

    def _within_a_minute(self) -> int:
        since = self._now - 60.0
        return sum(one.answer.tokens for seen in self._rounds for one in seen if one.is_admitted and one.sent_s > since)

    # What it means

    def _tokens_of(self, size: float) -> float:
        return size * self._ratio + self._beside

    def _size_of(self, tokens: float) -> int:
        return max(SMALL, min(int(self._a_call), round((tokens - self._beside) / self._ratio)))

    def _is_measured_anew(self, seen: list[TimedAnswer]) -> bool:
        """Returns whether the tokens of a refused call, or how late calls are decided, are now known better than
        before."""
        late_s = min(self._late_s, *(_late(one) for one in seen))
        counted = [one for each in self._rounds for one in each if one.is_admitted]
        beside = max([self._beside, *(one.answer.tokens - one.size for one in counted if one.size < _SMALLISH)])
        large = max((one for one in counted if one.size >= _SMALLISH), key=lambda one: one.size, default=None)
        # Estimated high rather than low: for a refused call the provider reports no usage.
        ratio = self._ratio if large is None else max(0.1, (large.answer.tokens - self._beside_least) / large.size)
        is_new = late_s < 0.8 * self._late_s or beside > self._beside or abs(ratio / self._ratio - 1) > 0.001
        if is_new:
            self._late_s, self._beside, self._ratio = late_s, beside, ratio
        return is_new

    def _events(self, seen: list[TimedAnswer]) -> list[Event]:
        return [self._event(group) for group in together(seen)]

    def _event(self, group: list[TimedAnswer]) -> Event:
        counted = [one.answer.tokens for one in group if one.is_admitted]
        refused = min((self._tokens_of(one.size) for one in group if one.is_refused), default=None)
        sent_s = group[0].sent_s
        return Event(sent_s, sent_s + self._late_s, float(sum(counted)), len(counted), refused, sent_s)

    def _rebuilt(self) -> TokenHypotheses:
        rpm = self.found.rpm or self.found.burst
        least = max(20.0, _LEAST_SHARE * (rpm or 0.0) * self._beside)
        if rpm is None:
            most = max(_WORTH, self._a_call * self._most)
        else:
            most = min(self._a_call * rpm, max(_WORTH, _WORTH_A_REQUEST * rpm))
        kinds: tuple[Window, ...] = (self.found.window,) if self.found.window else ("fixed", "sliding", "bucket")
        most = min(most, self._tokens_most)
        hypotheses = TokenHypotheses(kinds, least, max(most, 2 * least), self._late_s, self._phases)
        hypotheses.guess(guesses(self.found, self._rounds, self._tokens_of))
        for seen in self._rounds:
            for event in self._events(seen):
                hypotheses.learn(event)
        return hypotheses


def _late(one: TimedAnswer) -> float:
    """Returns the seconds after sending by which a call was decided at the latest: one and a half times its duration,
    and a little more."""
    return 1.5 * (one.done_s - one.sent_s) + 0.01
