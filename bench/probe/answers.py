"""What a probe's calls are answered: the values that pass between the search for a quota and the code that sends.

Values only: knows no clock, no provider and no quota.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ...engine.limits import Limit

Verdict = Literal["admitted", "refused", "failed"]
Window = Literal["fixed", "sliding", "bucket"]
# The smallest size of a call, in tokens of prompt.
SMALL = 1


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
