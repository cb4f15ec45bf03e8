"""The figures and counts by which attempts are repeated; what follows from a fault: verdict.

Owns back-off, the limit of attempts, the retry budget and the breaker of a lane. It never sleeps and never sends. The
policy is a frozen struct; the other classes count, and answer questions about the counts.
"""

from __future__ import annotations

from random import Random

from msgspec import Struct

from ..alike import without_ids
from ..endpoint import Fault
from ..fault import StopReason

# A rejection with one of these statuses concerns the one call's size, not the lane.
_OF_ONE_CALL = (413, 429)
_KINDS_MAX = 64


class RetryPolicy(Struct, frozen=True):
    """Every figure that decides whether and when an attempt is repeated."""

    attempts_max: int = 6
    """The most attempts of one call, the first included; one whose answer only asks for a wait does not count."""
    billed_repeats_max: int = 2
    """The most repeats of a call whose attempts may have been billed."""
    wait_min_s: float = 1.0
    """The shortest back-off, in seconds."""
    wait_max_s: float = 60.0
    """The longest back-off, in seconds; the ceiling doubles with each attempt up to it."""
    patience_s: float = 600.0
    """Seconds after which a lane stops if all its calls are refused or fail."""
    own_patience_s: float | None = None
    """The same for faults of our own machine; None: `patience_s`."""
    breaker_failures: int = 20
    """Failures in a row after which a lane sends only single test calls (probes)."""
    probe_every_s: float = 10.0
    """Seconds between these probes."""
    budget_share: float = 0.1
    """The most repeats of a failing lane, as a share of its traffic from 0 to 1."""
    budget_floor: float = 20.0
    """Repeats that a failing lane may make before that share counts."""
    rejections_max: int | None = 20
    """The number of equal rejections after which the lane of a model that has never answered stops; None: no limit."""
    cut_max: int | None = 20
    """The number of answers that are cut off and empty after which the lane of a model without a useful answer stops;
    None: no limit."""
    reopened_s: float | None = None
    """Seconds after which a stopped lane is opened again when it is needed; None: never."""

    def __post_init__(self) -> None:
        if self.attempts_max < 1:
            raise ValueError(f"attempts_max ({self.attempts_max}) must be >= 1")
        if not 0 <= self.wait_min_s <= self.wait_max_s:
            raise ValueError(f"wait_max_s ({self.wait_max_s}) must be >= wait_min_s ({self.wait_min_s}) >= 0")

    def wait_s(self, failed_attempts: int, random: Random) -> float:
        """Returns the seconds to wait before a repeat: random, from `wait_min_s` to a ceiling that doubles with every
        failed attempt up to `wait_max_s` (full jitter)."""
        ceiling = min(self.wait_max_s, self.wait_min_s * 2.0**failed_attempts)
        return random.uniform(self.wait_min_s, max(self.wait_min_s, ceiling))


class Breaker:
    """What a lane's latest attempts allow: after some failures in a row its circuit breaker stops it, then lets one
    probe through at a time. While fewer than half of them succeed, the lane is failing, and its retry budget is a share
    of its traffic; a healthy one may repeat as it likes, since the limit of attempts holds anyway."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._credit = policy.budget_floor
        self._last_grant = float("-inf")
        self._health = 1.0
        self._row = 0
        self._is_probing = False
        self._next_probe = 0.0
        self.is_open = False

    @property
    def is_failing(self) -> bool:
        return self._health < 0.5

    def record_success(self) -> bool:
        """Records a success; returns whether it closed the breaker."""
        self._health += (1.0 - self._health) / 32
        self._credit += self._policy.budget_share
        self._row = 0
        was_open, self.is_open = self.is_open, False
        self._is_probing = False
        return was_open

    def record_failure(self, now: float, *, was_probe: bool) -> bool:
        """Records a failure, of a probe or of an ordinary attempt; returns whether it opened the breaker."""
        self._health -= self._health / 32
        self._credit += self._policy.budget_share
        self._row += 1
        if was_probe:
            self._is_probing = False
            self._next_probe = now + self._policy.probe_every_s
        if not self.is_open and self._row >= self._policy.breaker_failures:
            self.open(now, probe_in_s=self._policy.probe_every_s)
            return True
        return False

    def open(self, now: float, *, probe_in_s: float) -> None:
        self.is_open = True
        self._is_probing = False
        self._next_probe = now + probe_in_s

    def wait_s(self, now: float) -> float:
        """Returns the seconds until a call may be sent. 0.0: now (if open, as the probe); infinite: a probe is in
        flight."""
        if not self.is_open:
            return 0.0
        return float("inf") if self._is_probing else max(0.0, self._next_probe - now)

    def repeat_in_s(self, now: float) -> float:
        """Returns the seconds until a repeat may be sent; 0.0 grants one now. A spent budget still grants one
        every `probe_every_s` seconds, so that every run ends."""
        credit = min(self._credit, 10 * self._policy.budget_floor)
        if self.is_failing and credit < 1:
            wait = self._last_grant + self._policy.probe_every_s - now
            if wait > 0:
                return wait
        self._credit = max(0.0, credit - 1)
        self._last_grant = now
        return 0.0

    def begin_probe(self) -> None:
        self._is_probing = True

    def abandon_probe(self, now: float) -> None:
        """Ends a probe that showed nothing, as a cancelled one; the next may be sent at once."""
        self._is_probing = False
        self._next_probe = now


class EarlyStop:
    """The check that stops a lane whose first calls are all useless: rejected with the same message, as by a model that
    does not exist, or cut off before the first word, as by a model that thinks for longer than max_tokens allows.

    One useful answer ends this for good. While `is_doubted`, nothing more is sent until the calls in flight have ended:
    one of them may be useful. With `is_of_pages` the lane is never stopped, since each page exists or not by itself.
    """

    def __init__(self, policy: RetryPolicy, *, is_of_pages: bool = False) -> None:
        self._rejections_max = policy.rejections_max
        self._cut_max = policy.cut_max
        self._alike: dict[tuple[int, str], int] = {}
        self._cut = 0
        self.has_answered = is_of_pages
        self._detail = ""
        # Plain attributes, since they are read in each call.
        self.is_doubted = False

    def add_rejection(self, fault: Fault) -> None:
        if self.has_answered or fault.status is None or fault.status in _OF_ONE_CALL:
            return
        kind = (fault.status, without_ids(fault.detail))
        if kind not in self._alike and len(self._alike) >= _KINDS_MAX:
            return
        self._alike[kind] = self._alike.get(kind, 0) + 1
        if self._alike[kind] == self._rejections_max:
            self._detail = fault.detail
            self.is_doubted = True

    def add_cut(self, count: int = 1) -> None:
        """Counts `count` answers that were cut off and are empty."""
        if self.has_answered:
            return
        self._cut += count
        self.is_doubted |= self._cut_max is not None and self._cut >= self._cut_max

    def end(self) -> bool:
        """Notes a useful answer, which ends all doubts for good. Returns whether there was a doubt."""
        was_doubted, self.is_doubted = self.is_doubted, False
        self.has_answered = True
        self._detail = ""
        self._alike.clear()
        return was_doubted

    def why(self, model: str) -> tuple[StopReason, str]:
        """Returns why the lane stops, and the message that says so and what to do."""
        if self._detail:
            count = max(self._alike.values())
            return "rejected", (
                f"{model} rejected {count:,} calls alike and answered none ({self._detail}): check the model's name "
                f"and what is sent to it"
            )
        return "truncated", (
            f"{model}: its first {self._cut:,} answers were all cut off at max_tokens before the first word, as those "
            f"of a model that thinks first: raise --max-tokens N (max_tokens of the calls), or leave it out"
        )
