"""A lane as it is declared: the quota of one provider, model and key.

Only what a person writes down, checked when made. How calls are admitted: admission.
"""

from __future__ import annotations

from msgspec import Struct

CONCURRENCY_DEFAULT = 128
# A declared amount beyond it is a slip of the finger.
AMOUNT_MAX = 1_000_000_000_000


class Lane(Struct, frozen=True):
    """What may be sent to `model` with each of its keys: requests a minute, tokens a minute (`tpm` of both kinds,
    `itpm` of input, `otpm` of output), calls in flight. None: not declared, so the lane adapts to what the provider
    says. `spacing_s`: the least time between two calls. `burst`: so many calls the provider admits at once after a
    rest; None: not known."""

    model: str
    rpm: float | None = None
    tpm: float | None = None
    concurrency: int = CONCURRENCY_DEFAULT
    timeout_s: float = 600.0
    itpm: float | None = None
    otpm: float | None = None
    spacing_s: float = 0.0
    burst: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("rpm", self.rpm), ("tpm", self.tpm), ("itpm", self.itpm), ("otpm", self.otpm)):
            if value is not None and not 1 <= value <= AMOUNT_MAX:
                raise ValueError(f"lane {self.model}: {name} ({value:g}) must be 1 to {AMOUNT_MAX:,} a minute")
        if self.burst is not None and not self.burst >= 1:
            raise ValueError(f"lane {self.model}: burst ({self.burst:g}) must be >= 1")
        if self.concurrency < 1:
            raise ValueError(f"lane {self.model}: concurrency ({self.concurrency}) must be >= 1")
        if not self.timeout_s > 0:
            raise ValueError(f"lane {self.model}: timeout_s ({self.timeout_s:g}) must be > 0")
