"""What the table of items by models shows of SYCON: conversations turn by turn, and the judge's words."""

from __future__ import annotations

from typing import Any

from ..evaluation.door.item_reader import CellLine, ItemReader
from .records import Record, place_of


class TurnCell(CellLine, frozen=True, kw_only=True):
    """The fields of a turn that a cell shows."""

    held: bool | None = None
    judgement: str | None = None


class ConversationReader(ItemReader):
    Line = TurnCell
    answers_are = "turn"
    within = (0.0, 1.0)

    def __init__(self) -> None:
        super().__init__(Record)

    def item(self, line: Any) -> str:
        return str(line.item) or line.id.rpartition("/")[0]

    def group(self, line: Any) -> str:
        setting, strategy, _, _ = place_of(line.id)
        return f"{setting}/{strategy}"

    def score(self, line: Any) -> float | None:
        return None if line.held is None else float(line.held)

    def label(self, line: Any) -> str:
        return "not judged" if line.held is None else "held" if line.held else "not held"

    def number(self, record: Any) -> int:
        return place_of(record.id)[3]

    def answer(self, record: Any) -> dict[str, Any]:
        return {**super().answer(record), "score": self.score(record), "facts": []}

    def judge(self, record: Any) -> list[dict[str, Any]]:
        if record.judgement is None:
            return []
        judge = {"scorer": "", "model": record.judge, "grade": self.label(record), "score": None, "reply": ""}
        return [{**judge, "reason": record.judgement}]
