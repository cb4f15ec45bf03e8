"""The fields of a turn's line that are read to go on with a run and to count it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from ..evaluation.door.item_line import ItemLine


class PageLine(Struct, frozen=True):
    """A retrieved page in a line."""

    status: str = "ok"


class TurnLine(ItemLine, frozen=True, kw_only=True):
    """A turn's line. Its step is the turn, its role the step at which it failed."""

    step: int = field(name="turn")
    role: str = field(name="step", default="")
    search: str = ""
    query_by: str = "model"
    retrieved: tuple[PageLine, ...] = ()
    search_remarks: tuple[str, ...] = ()
    invalid_citations: tuple[str, ...] = ()
    confidence: float | None = None
    judge_temperature: float | None = None
    judge_repaired: bool = False
    raw_judgement: str | None = None

    @property
    def is_cut_empty(self) -> bool:
        # An empty answer is a turn like others, and the conversation continues.
        return False

    @property
    def answered(self) -> Iterable[str]:
        judge = self.judge if self.usage_judge is not None else None
        return filter(None, (self.model, self.search, judge if isinstance(judge, str) else None))

    @property
    def is_judged(self) -> bool:
        """Whether a judge read the answer, or replied something unreadable."""
        is_read = self.confidence is not None and bool((self.text or "").strip())
        return is_read or self.raw_judgement is not None
