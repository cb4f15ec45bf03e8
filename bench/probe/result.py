"""What a probe found, as it is printed and as the lane that the configuration reads.

Owns the shape of both, and that no number in them is above what was found. Sends nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .steps import Window

# The truth is at most this many times the number found.
TRUE_TO = 1.05


@dataclass(slots=True)
class FoundQuota:
    """The quotas of one model, as far as found (None: not found): requests and tokens a minute, calls at once after a
    rest (`burst`), the kind of window, and calls in flight. `tested_*`: the most that was admitted within a minute,
    or before the first refusal; `told_*`: the limit a minute that headers report; `promises_*`: how often the wait
    in Retry-After was enough, and was not; `ended`: what ended the probe of this model early (empty: nothing)."""

    rpm: float | None = None
    tpm: float | None = None
    burst: float | None = None
    window: Window | None = None
    concurrency: int | None = None
    tested_rpm: int = 0
    tested_tpm: int = 0
    told_rpm: float | None = None
    told_tpm: float | None = None
    promises_kept: int = 0
    promises_broken: int = 0
    ended: str = ""

    def note_promise(self, *, kept: bool) -> None:
        """Counts whether a call was admitted after the wait that Retry-After had asked for."""
        if kept:
            self.promises_kept += 1
        else:
            self.promises_broken += 1

    def lines(self) -> list[str]:
        """Returns sentences for a person: what was not found, what headers report against what is enforced, whether
        Retry-After was long enough, and what ended the probe."""
        said = []
        for what, found, told, tested in (
            ("requests", self.rpm, self.told_rpm, self.tested_rpm),
            ("tokens", self.tpm, self.told_tpm, self.tested_tpm),
        ):
            if found is None:
                tried = (
                    f"at least {tested:,}, which were admitted within a minute" if tested else "no step was finished"
                )
                said.append(f"{what} a minute: not found; {tried}")
            if told is not None:
                enforced = "" if found is None else f"; at least {_rounded(found):,} are admitted"
                said.append(f"headers tell {told:,.0f} {what} a minute{enforced}")
        waits = self.promises_kept + self.promises_broken
        if waits:
            said.append(f"Retry-After was long enough {self.promises_kept} of {waits} times")
        return [*said, self.ended] if self.ended else said

    @property
    def is_empty(self) -> bool:
        """Whether no quota was found."""
        return self.rpm is self.tpm is self.concurrency is None

    def as_lane(self) -> dict[str, Any]:
        return {
            "rpm": _rounded(self.rpm),
            "tpm": _rounded(self.tpm),
            "burst": _rounded(self.burst),
            "window": self.window,
            "concurrency": self.concurrency,
        }


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The quotas found, by model (`lanes`), with the calls sent and the dollars spent."""

    lanes: dict[str, FoundQuota]
    calls: int
    cost: float

    def as_json(self) -> dict[str, Any]:
        lanes = {model: found.as_lane() for model, found in self.lanes.items()}
        return {"lanes": lanes, "calls": self.calls, "cost": round(self.cost, 6)}


def _rounded(number: float | None) -> float | int | None:
    """Returns the number rounded down: to whole numbers from 100 on, to hundredths below; None stays None."""
    if number is None:
        return None
    whole = math.floor(number + 1e-9)
    return whole if whole >= 100 or math.isclose(whole, number) else math.floor(number * 100) / 100
