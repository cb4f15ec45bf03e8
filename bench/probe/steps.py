"""The steps of a probe and their answers: the values that pass between the code that decides and the code that sends.

Values only: knows no clock, no provider and no quota.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal

from msgspec import Struct

from ...engine.limits import Limit

Verdict = Literal["admitted", "refused", "failed"]
Window = Literal["fixed", "sliding", "bucket"]
# The smallest size of a call, in tokens of prompt.
SMALL = 1


class Ask(Struct, frozen=True):
    """A step of a probe: calls to send at once; each size is the tokens of one call's prompt."""

    sizes: tuple[int, ...]


class Wait(Struct, frozen=True):
    """A step of a probe: nothing is sent until the clock shows `until_s`."""

    until_s: float


class Answer(Struct, frozen=True):
    """The answer to one call: admitted, refused for a quota, or failed. `tokens`: used, as the provider counted them
    (0: not reported); `cost`: dollars; `retry_after_s`: the wait that it asks for (None: none); `limits`: those in
    its headers; `is_fatal`: no other call can succeed."""

    verdict: Verdict
    tokens: int = 0
    cost: float = 0.0
    retry_after_s: float | None = None
    limits: tuple[Limit, ...] = ()
    detail: str = ""
    is_fatal: bool = False


class TimedAnswer(Struct, frozen=True):
    """An answer, the call's prompt size in tokens, and the moments, in seconds of the clock, at which the call was sent
    and answered."""

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
    """Returns the longest Retry-After of the answers in seconds; None if there is none."""
    return max((one.answer.retry_after_s for one in seen if one.answer.retry_after_s is not None), default=None)
