"""One call's times: when it was due, begun, sent, when its first and last piece came, and when it was whole.

Listens to the engine's `hear` with a clock that is passed in. Latency counts from when the call was due, so a server
that stalls is charged with the calls that had to wait for it. Keeps no totals: meter.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, structs

from ...engine.call import Outcome

Clock = Callable[[], float]

UNFINISHED = "unfinished"
"""The status of a call that was given up at the end of the test: its answer never came."""


class Timed(Struct, frozen=True):
    """A call with its times, in seconds since the start of the test. `free`: when there was a free place in flight.
    `sent` None: it never left. `first` and `last`: pieces of a streamed text. `gaps`: between pieces. Times of pieces
    are those of the last attempt, `sent` is that of the first, `retry_s` lies between the two. `status`: `ok`,
    `refused`, or the kind of failure. `is_empty`: the answer has no word; `is_cut`: max_tokens cut it off."""

    due: float
    free: float
    begun: float
    sent: float | None
    retry_s: float
    first: float | None
    last: float | None
    ended: float
    gaps: tuple[float, ...]
    status: str
    attempts: int
    input_tokens: int = 0
    output_tokens: int = 0
    cached: bool = False
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
        """From the first attempt's sending: what a client tells that forgets its own queue."""
        return None if self.sent is None else self.ended - self.sent

    @property
    def first_token_s(self) -> float | None:
        return None if self.first is None else self.first - self.due

    @property
    def token_s(self) -> float | None:
        """Time for each token after the first. A piece may hold several tokens, so they are the provider's count."""
        if self.first is None or self.last is None or self.output_tokens < 2:
            return None
        return (self.last - self.first) / (self.output_tokens - 1)

    @property
    def piece_s(self) -> float | None:
        """Time for each piece after the first: a token takes no longer, whatever their number is."""
        if self.first is None or self.last is None:
            return None
        return (self.last - self.first) / max(1, len(self.gaps))

    @property
    def own_delay_s(self) -> float:
        """How late our own loop began it."""
        return self.begun - max(self.due, self.free)

    @property
    def held_s(self) -> float:
        """How long the engine held it before its first attempt: a lane's quota, its slots, its pauses."""
        return 0.0 if self.sent is None else self.sent - self.begun


class Stopwatch:
    """Follows one call. Is itself the engine's `hear`; the clock's zero is the start of the test."""

    __slots__ = ("_attempt", "_attempts", "_clock", "_first", "_gaps", "_last", "begun", "due", "free", "sent")

    def __init__(self, due: float, clock: Clock, free: float = 0.0) -> None:
        self._clock = clock
        self.begun = clock()
        self.free = free
        # A timer may fire a fraction of a millisecond early: then the call was due when it began.
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
            # What an attempt before said is void.
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

    def stopped(self, outcome: Outcome) -> Timed:
        """The engine hands over an answer once it is stored; the call ended when its last byte came."""
        ended = self._clock()
        if outcome.latency_ms and self._attempt is not None:
            ended = max(self._last or 0.0, min(ended, self._attempt + outcome.latency_ms / 1000))
        timed = structs.replace(self._timed(ended, outcome.status, outcome.attempts), cached=outcome.cached)
        reply = outcome.reply
        if reply is None:
            return timed
        timed = structs.replace(timed, is_empty=not reply.text.strip(), is_cut=reply.truncated)
        if reply.usage is None:
            return timed
        return structs.replace(timed, input_tokens=reply.usage.input, output_tokens=reply.usage.output)

    def given_up(self) -> Timed:
        """The test ended before the call did."""
        return self._timed(self._clock(), UNFINISHED, self._attempts)

    def _timed(self, ended: float, status: str, attempts: int) -> Timed:
        return Timed(
            due=self.due,
            free=self.free,
            begun=self.begun,
            sent=self.sent,
            retry_s=0.0 if self.sent is None or self._attempt is None else self._attempt - self.sent,
            first=self._first,
            last=self._last,
            ended=ended,
            gaps=tuple(self._gaps),
            status=status,
            attempts=attempts,
        )
