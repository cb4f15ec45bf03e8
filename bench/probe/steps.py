"""What a probe does and what it sees: the words between the one that decides and the one that sends.

Values only: knows no clock, no provider and no quota.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal

from msgspec import Struct

from ...engine.limits import Limit

Verdict = Literal["admitted", "refused", "failed"]
Window = Literal["fixed", "sliding", "bucket"]
# The least that a call can ask for.
SMALL = 1


class Ask(Struct, frozen=True):
    """Send these calls at once; each number is how many tokens of prompt a call is to have."""

    sizes: tuple[int, ...]


class Wait(Struct, frozen=True):
    """Send nothing until this reading of the clock."""

    until_s: float


class Answer(Struct, frozen=True):
    """What came of one call. `tokens`: as the provider counted them; `fatal`: no other call will fare better."""

    verdict: Verdict
    tokens: int = 0
    cost: float = 0.0
    retry_after_s: float | None = None
    limits: tuple[Limit, ...] = ()
    detail: str = ""
    is_fatal: bool = False


class TimedAnswer(Struct, frozen=True):
    """An answer, and when its call was sent and answered."""

    size: int
    sent_s: float
    done_s: float
    answer: Answer

    @property
    def is_admitted(self) -> bool:
        return self.answer.verdict == "admitted"

    @property
    def is_refused(self) -> bool:
        return self.answer.verdict == "refused"


Step = Ask | Wait
Steps = Generator[Step, list[TimedAnswer], None]


def told_wait_s(seen: list[TimedAnswer]) -> float | None:
    """The longest wait that refusals ask for; None: they ask for none."""
    return max((one.answer.retry_after_s for one in seen if one.answer.retry_after_s is not None), default=None)
