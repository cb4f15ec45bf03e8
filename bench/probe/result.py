"""What a probe found of one model, as it is printed and as the lane that the configuration reads.

Owns the shape of both, and that no number in them is above what was found. Sends nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .answers import Window


@dataclass(slots=True)
class FoundQuota:
    """The quotas of one model, as far as found (None: not found): requests and tokens a minute, calls at once after a
    rest (`burst`), and the kind of window as headers show it. `tested_*`: the most that was admitted within a minute;
    `header_*`: the limit a minute that headers report; `has_usage`: whether answers report tokens; `ended`: what ended
    the probe early (empty: nothing)."""

    rpm: float | None = None
    tpm: float | None = None
    burst: float | None = None
    window: Window | None = None
    tested_rpm: int = 0
    tested_tpm: int = 0
    header_rpm: float | None = None
    header_tpm: float | None = None
    has_usage: bool = True
    ended: str = ""

    def lines(self) -> list[str]:
        """Returns sentences for a person: what was not found, what headers say beside it, and what ended the probe."""
        lines = []
        for what, limit, header, tested in (
            ("requests", self.rpm, self.header_rpm, self.tested_rpm),
            ("tokens", self.tpm, self.header_tpm, self.tested_tpm),
        ):
            if limit is None:
                tried = (
                    f"at least {tested:,}, which were admitted within a minute" if tested else "no step was finished"
                )
                lines.append(f"{what} a minute: not found; {tried}")
            if header is not None:
                enforced = "" if limit is None else f"; at least {_rounded(limit):,} are admitted"
                lines.append(f"headers say {header:,.0f} {what} a minute{enforced}")
        return [*lines, self.ended] if self.ended else lines

    @property
    def is_empty(self) -> bool:
        """Whether no quota was found."""
        return self.rpm is self.tpm is None

    def as_lane(self) -> dict[str, Any]:
        return {
            "rpm": _rounded(self.rpm),
            "tpm": _rounded(self.tpm),
            "burst": _rounded(self.burst),
            "window": self.window,
        }


def _rounded(number: float | None) -> float | int | None:
    """Returns the number rounded down: to whole numbers from 100 on, to hundredths below; None stays None."""
    if number is None:
        return None
    whole = math.floor(number + 1e-9)
    return whole if whole >= 100 or math.isclose(whole, number) else math.floor(number * 100) / 100
