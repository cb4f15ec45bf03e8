"""What the table of items by models shows of Chameleon: conversations by their stances, turn by turn."""

from __future__ import annotations

from typing import Any

from ..evaluation.door.item_reader import CellLine, ItemReader, own_facts
from .records import Record

_APART = (
    "conversation",
    "domain",
    "topic",
    "turn",
    "stance",
    "judge",
    "rationale",
    "key_claims",
    "raw_judgement",
    "keys",
)


class TurnCell(CellLine, frozen=True, kw_only=True):
    """The fields of a turn that a cell shows."""

    conversation: str
    domain: str = ""
    topic: str = ""
    stance: str | None = None


class ConversationReader(ItemReader):
    Line = TurnCell
    answers_are = "turn"

    def __init__(self) -> None:
        super().__init__(Record)

    def item(self, line: Any) -> str:
        return str(line.conversation)

    def group(self, line: Any) -> str:
        return str(line.domain)

    def label(self, line: Any) -> str:
        return line.stance or ""

    def title(self, line: Any) -> str:
        return line.topic or super().title(line)

    def number(self, record: Any) -> int:
        return int(record.turn)

    def answer(self, record: Any) -> dict[str, Any]:
        return {**super().answer(record), "facts": list(own_facts(record, _APART))}

    def judge(self, record: Any) -> list[dict[str, Any]]:
        if not record.judge:
            return []
        judge = {"scorer": "", "model": record.judge, "grade": record.stance, "score": record.confidence}
        return [
            {
                **judge,
                "reason": record.rationale or "",
                "reply": "" if not record.raw_judgement else record.raw_judgement,
            }
        ]
