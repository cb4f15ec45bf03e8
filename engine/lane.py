"""A lane as it is declared: the quota of one model with each API key.

Only what a person writes down, checked when made. How calls are admitted: lanes/key_gate.
"""

from __future__ import annotations

from msgspec import Struct

CONCURRENCY_DEFAULT = 128
# The most that a lane without any quota grows to by itself. One process answers more only at latencies of a second,
# and after a kill each of them may have been billed; more is for those who ask for it.
GROWN_MOST = 1_024
TIMEOUT_DEFAULT_S = 600.0
# A larger declared amount counts as a typing error.
AMOUNT_MAX = 1_000_000_000_000


class Lane(Struct, frozen=True):
    """The declared quota of one model with each of its API keys. None: not declared; the lane adapts to the answers."""

    model: str
    """The model, as `openai/gpt-6-luna`."""
    rpm: float | None = None
    """Requests a minute."""
    tpm: float | None = None
    """Tokens a minute, input and output together."""
    concurrency: int | None = None
    """The most calls in flight at once; None: 128, or 1,024 while no quota is known. Without a quota a lane begins with
    16 and grows up to that."""
    timeout_s: float = TIMEOUT_DEFAULT_S
    """Seconds until an attempt without a whole answer is given up."""
    itpm: float | None = None
    """Input tokens a minute."""
    otpm: float | None = None
    """Output tokens a minute."""
    spacing_s: float = 0.0
    """Least seconds between two calls."""
    burst: float | None = None
    """How many calls the provider admits at once after a rest; None: not known."""

    def __post_init__(self) -> None:
        for name, value in (("rpm", self.rpm), ("tpm", self.tpm), ("itpm", self.itpm), ("otpm", self.otpm)):
            if value is not None and not 1 <= value <= AMOUNT_MAX:
                raise ValueError(f"lane {self.model}: {name} ({value:g}) must be 1 to {AMOUNT_MAX:,} a minute")
        if self.burst is not None and not self.burst >= 1:
            raise ValueError(f"lane {self.model}: burst ({self.burst:g}) must be >= 1")
        if self.concurrency is not None and self.concurrency < 1:
            raise ValueError(f"lane {self.model}: concurrency ({self.concurrency}) must be >= 1")
        if not self.timeout_s > 0:
            raise ValueError(f"lane {self.model}: timeout_s ({self.timeout_s:g}) must be > 0")

    @property
    def has_quota(self) -> bool:
        """Whether it declares what sets a pace."""
        return bool(self.spacing_s) or any(each is not None for each in (self.rpm, self.tpm, self.itpm, self.otpm))

    @property
    def in_flight_most(self) -> int:
        """The most calls that may ever be in flight at once."""
        if self.concurrency is not None:
            return self.concurrency
        return CONCURRENCY_DEFAULT if self.has_quota else GROWN_MOST
