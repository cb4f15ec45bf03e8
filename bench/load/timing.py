"""One call's times: when it was due, begun and sent, when its first and last piece arrived, and when it ended.

The engine calls the stopwatch as its `hear`; the clock is passed in. Latency counts from when the call was due, so it
includes the wait that a stalled server causes. Keeps no totals.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, structs

from ...engine.call import Outcome

Clock = Callable[[], float]

UNFINISHED = "unfinished"
"""Status of a call that had no answer at the end of the test."""


class CallTimes(Struct, frozen=True, array_like=True):
    """One call's times, in seconds since the start of the test.

    `due` is when it should begin, `free` when a slot was free, `begun` when our loop began it. `sent` is the first
    attempt's time (None: never sent); `first`, `last` and `gaps` belong to the last attempt: the first and last piece
    of a streamed text and the times between pieces. `status` is `ok`, `refused` or a kind of failure. `is_empty`: the
    answer has no word; `is_cut`: it ended at max_tokens."""

    due: float
    free: float
    begun: float
    sent: float | None
    first: float | None
    last: float | None
    ended: float
    gaps: tuple[float, ...]
    status: str
    attempts: int
    input_tokens: int = 0
    output_tokens: int = 0
    is_empty: bool = False
    is_cut: bool = False

    @property
    def is_answered(self) -> bool:
        return self.status in ("ok", "refused")

    @property
    def latency_s(self) -> float:
        return self.ended - self.due

    @property
    def service_s(self) -> float | None:
        """The seconds from the first attempt's sending to the end: latency as a client measures it that ignores its own
        queue. None: never sent."""
        return None if self.sent is None else self.ended - self.sent

    @property
    def first_token_s(self) -> float | None:
        return None if self.first is None else self.first - self.due

    @property
    def token_s(self) -> float | None:
        """The seconds for each token after the first, by the provider's token count, since a piece may hold several;
        None: not known, as of an answer in one piece."""
        if self.first is None or self.last is None or not self.gaps or self.output_tokens < 2:
            return None
        return (self.last - self.first) / (self.output_tokens - 1)

    @property
    def piece_s(self) -> float | None:
        """The seconds for each piece after the first: an upper bound of the time for a token. None: not streamed, or in
        one piece."""
        if self.first is None or self.last is None or not self.gaps:
            return None
        return (self.last - self.first) / len(self.gaps)

    @property
    def own_delay_s(self) -> float:
        """The seconds by which our own loop began the call too late."""
        return self.begun - max(self.due, self.free)

    @property
    def held_s(self) -> float:
        """The seconds for which the engine held the call before its first attempt: quota, slots or pauses of its
        lane."""
        return 0.0 if self.sent is None else self.sent - self.begun


class Stopwatch:
    """A recorder of the times of one call, passed to the engine as `hear`. `due` is when the call should begin, `free`
    when a slot was free. The clock's zero is the start of the test."""

    __slots__ = ("_attempt", "_attempts", "_clock", "_first", "_gaps", "_last", "begun", "due", "free", "sent")

    def __init__(self, due: float, clock: Clock, free: float = 0.0) -> None:
        self._clock = clock
        self.begun = clock()
        self.free = free
        # A timer may fire a fraction of a millisecond early; the call then counts as due when it began.
        self.due = min(due, self.begun)
        self.sent: float | None = None
        self._attempt: float | None = None
        self._first: float | None = None
        self._last: float | None = None
        self._gaps: list[float] = []
        self._attempts = 0

    def __call__(self, piece: str | None) -> None:
        now = self._clock()
        if piece is None:
            # A new attempt discards the pieces of the previous one.
            self._attempt = now
            self._first = self._last = None
            self._gaps.clear()
            self._attempts += 1
            if self.sent is None:
                self.sent = now
            return
        if self._last is None:
            self._first = now
        else:
            self._gaps.append(now - self._last)
        self._last = now

    def stopped(self, outcome: Outcome) -> CallTimes:
        """Returns the times of an ended call. The engine returns an answer once it is stored; the call ended with its
        last byte."""
        ended = self._clock()
        if outcome.latency_ms and self._attempt is not None:
            ended = max(self._last or 0.0, min(ended, self._attempt + outcome.latency_ms / 1000))
        timed = self._timed(ended, outcome.status, outcome.attempts)
        if (reply := outcome.reply) is None:
            return timed
        timed = structs.replace(timed, is_empty=not reply.text.strip(), is_cut=reply.truncated)
        if reply.usage is None or reply.usage.input is None or reply.usage.output is None:
            return timed
        return structs.replace(timed, input_tokens=reply.usage.input, output_tokens=reply.usage.output)

    def given_up(self) -> CallTimes:
        """Returns the times of a call that the test did not wait for."""
        return self._timed(self._clock(), UNFINISHED, self._attempts)

    def _timed(self, ended: float, status: str, attempts: int) -> CallTimes:
        return CallTimes(
            due=self.due,
            free=self.free,
            begun=self.begun,
            sent=self.sent,
            first=self._first,
            last=self._last,
            ended=ended,
            gaps=tuple(self._gaps),
            status=status,
            attempts=attempts,
        )
