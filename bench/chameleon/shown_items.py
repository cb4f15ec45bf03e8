"""What the table of items by models shows of Chameleon: conversations by their stances, turn by turn.

Records are read as scores read them, so those of another program are shown too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from ...engine.pairs import Pair, pair_of
from ...engine.runs.proof import ANSWERED
from ...metrics.chameleon.figures import TurnFigures, steps
from ...metrics.chameleon.lines import UNCLEAR, StoredTurn, is_empty, place_of
from ...metrics.chameleon.readings import Readings
from ...metrics.chameleon.traces import Traces
from ..evaluation.door.item_reader import CellLine, ItemReader, text_of


class TurnCell(CellLine, frozen=True, kw_only=True):
    """The fields of a turn that a cell shows."""

    conversation: str | None = None
    turn: int | None = None
    domain: str | None = None
    topic: str | None = None
    stance: str | None = None


class ShownTurn(StoredTurn):
    """A record with the fields that only an opened conversation shows."""

    question: str | None = None
    key_claims: list[Any] | None = None
    judge: str | None = None
    search: str | None = None
    error: Any = msgspec.UNSET
    cost: float | None = None
    latency_ms: float | None = None

    @property
    def pair(self) -> Pair:
        return pair_of(self)


class ConversationReader(ItemReader):
    """Reads turns for the table. `readings`: those of the figures of each turn."""

    Line = TurnCell
    answers_are = "turn"

    def __init__(self, readings: Readings | None = None) -> None:
        super().__init__(ShownTurn)
        self._readings = readings or Readings()

    def item(self, line: Any) -> str:
        return _place(line)[0]

    def group(self, line: Any) -> str:
        return line.domain or ""

    def label(self, line: Any) -> str:
        if line.status not in ANSWERED:
            return ""
        return UNCLEAR if is_empty(line) else line.stance or UNCLEAR

    def title(self, line: Any) -> str:
        return line.topic or super().title(line)

    def number(self, record: Any) -> int:
        return _place(record)[1]

    def answers(self, records: Sequence[Any]) -> list[dict[str, Any]]:
        traces = Traces()
        for record in records:
            with suppress(ValueError):  # what is wrong with a line, `verify` says
                traces.take(record)
        figures = {step.turn.number: step for trace in traces.traces() for step in steps(trace.turns, self._readings)}
        turns = []
        for record in records:
            step = figures.get(self.number(record)) if self.label(record) else None
            of_turn = {"label": self.label(record), "isChange": step is not None and step.is_change}
            facts = [(name, text) for name, text in self._facts(record, step) if text]
            turns.append({**self.answer(record), **of_turn, "facts": facts, "judge": self._judged(record, step)})
        return turns

    def steps(self, record: Any) -> list[dict[str, Any]]:
        """Returns the search of a turn, with its pages and those that the answer cites."""
        cited = set(record.cited or ())
        sources = {source.url: source.status for source in record.retrieved or ()}
        sources |= {url: "cited" for url in record.cited or () if url not in sources}
        if not sources and not record.query:
            return []
        without = sum(status not in ("ok", "cited") for status in sources.values())
        lines = []
        for number, (url, status) in enumerate(sources.items(), 1):
            marks = ["cited"] if url in cited else []
            marks += [] if status in ("ok", "cited") else [status.replace("_", " ")]
            lines.append(" · ".join((f"{number}. {url}", *marks)))
        title = f"Sources: {len(sources):,}, {len(cited):,} cited" + (f", {without:,} without text" if without else "")
        result = "\n".join(lines) or "None was found."
        search = {"tool": title, "arguments": record.query or record.question or "", "result": result, "isError": False}
        return [{**search, "heads": ["Searched for", "Pages"]}]

    def _judged(self, record: Any, step: TurnFigures | None) -> list[dict[str, Any]]:
        confidence = None if step is None else step.turn.confidence_by(self._readings)
        if confidence is None and not record.rationale and not record.raw_judgement:
            return []
        judge = {"scorer": "", "model": record.judge or "The judge", "grade": record.stance, "score": confidence}
        return [{**judge, "reason": record.rationale or "", "reply": record.raw_judgement or ""}]

    def _facts(self, record: Any, step: TurnFigures | None) -> Iterator[tuple[str, str]]:
        reuse = None if step is None else step.reuse
        yield "source re-use", "" if reuse is None else f"{reuse:.3f}"
        if isinstance(admits := record.contradictions_acknowledged, bool):
            yield "contradictions", "acknowledged" if admits else "not acknowledged"
        yield "the judge’s own number", "" if record.judge_confidence is None else f"{record.judge_confidence:.3f}"
        yield "judge", "asked twice, its first reply was no JSON" if record.judge_repaired else ""
        yield "claims", "\n".join(map(text_of, record.key_claims or ()))
        invalid = record.invalid_citations if isinstance(record.invalid_citations, list) else ()
        yield "cited, but shown nowhere", ", ".join(map(text_of, invalid))
        yield "searched by", (record.search or "") + (", with the question" if record.query_by == "question" else "")
        yield "search", "\n".join(record.search_remarks or ())
        yield "left out of the prompt", "" if record.cut is None else text_of(msgspec.to_builtins(record.cut))


def _place(line: Any) -> tuple[str, int]:
    """Returns the conversation of a line and its turn; of a failure, they may not be known."""
    try:
        return place_of(line)
    except ValueError:
        return "?", 0
