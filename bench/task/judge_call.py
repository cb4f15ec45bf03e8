"""What a record keeps of the call of a scorer that asks models."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType


class JudgeCall(Struct, frozen=True, kw_only=True):
    """The call of one judge about an answer, and its grade."""

    scorer: str
    """The scorer's name in the task."""
    model: str
    """The judge."""
    grade: str | None = None
    """The grade as the judge wrote it; None where its reply could not be read."""
    score: float | None = None
    """The grade as a score; None without one."""
    reason: str = ""
    """The judge's reason; empty where it gave none."""
    text: str = ""
    """The judge's last reply."""
    repaired: bool = False
    """Whether it was asked a second time, since its first reply had no valid grade."""
    temperature: float | UnsetType | None = UNSET
    """The temperature that was sent to the judge; None: none was."""
    asked: str | UnsetType = UNSET
    """Of a call by an async score function: its digest, by which `score --task` finds the answer."""
    refused: bool | UnsetType = UNSET
    """Whether it was refused, of a call by an async score function."""
    reference: str | UnsetType = UNSET
    """Of a win rate: the answer that this one is compared with: as the second one in the first call, then as the first
    one."""
