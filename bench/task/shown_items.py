"""What the table of items by models shows of a task: expected answers, the judges' reasons, and the steps of an item.

The expected answer is what the task's scorers compare with, as the manifest describes them: no code of the task is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..evaluation.door.item_reader import ItemReader, parts_of, text_of
from .choices import Choice
from .declared import scorer_from
from .records import Record
from .rows import TaskError, TaskRow
from .score_document import bounds_of
from .task import AnyScorer
from .template import LETTERS, Template
from .transcript import TranscriptCall, TranscriptMessage

# Where the scorer is a function or a judge, the column that by its name holds the right answer.
_NAMES = (
    "expected",
    "expected_answer",
    "answer",
    "target",
    "reference",
    "gold",
    "solution",
    "correct",
    "label",
    "ideal",
)


class TaskItemReader(ItemReader):
    """Reads a task's records for the table of items. `manifest`: the run's; None: another program wrote the records."""

    def __init__(self, manifest: Mapping[str, Any] | None) -> None:
        super().__init__(Record)
        described = {} if manifest is None else manifest["specification"].get("score") or {}
        self._expected = [template for each in described.values() for template in _templates(each)]
        self._order = [] if manifest is None else [entry[0] for entry in manifest.get("dataset", {}).get("items", ())]
        self.within = bounds_of(described) if described else None

    def order(self) -> Iterable[str]:
        return self._order

    def expected(self, row: Mapping[str, Any]) -> str:
        texts: list[str] = []
        for scorer, templates in self._expected:
            try:
                values = [value for each in templates for value in each.alternatives(TaskRow("", row, "the row"))]
                if isinstance(scorer, Choice):
                    values = [_option(value, scorer, row) for value in values]
            except TaskError:
                continue
            texts.append(" or ".join(map(text_of, values)))
        if not texts and not self._expected:
            texts = [text_of(row[name]) for name in _NAMES if row.get(name) not in (None, "")][:1]
        return "; ".join(dict.fromkeys(texts))

    def judge(self, record: Any) -> list[dict[str, Any]]:
        return [
            {
                "scorer": each.scorer,
                "model": each.model,
                "grade": each.grade,
                "score": each.score,
                "reason": each.reason,
                "reply": "" if each.reason and each.grade is not None else each.text,
                "reference": each.reference or "",
            }
            for each in record.judge or ()
        ]

    def steps(self, record: Any) -> list[dict[str, Any]]:
        if not record.transcript:
            return [{"call": each.name, "arguments": each.arguments} for each in record.tool_calls or ()]
        steps: list[dict[str, Any]] = []
        for entry, role in record.transcript.entries():
            match entry:
                case TranscriptMessage():
                    # A tool's result stands with its tool.
                    if entry.role != "tool":
                        of = entry.role if role == "subject" else f"{role}: {entry.role}"
                        steps.append({"role": of, "content": parts_of(entry.content)})
                case TranscriptCall():
                    parts = [] if entry.reply is None else parts_of(record.transcript.messages[entry.reply].content)
                    result = "\n".join(str(part.get("result", part.get("text", ""))) for part in parts)
                    is_error = entry.status != "ok"
                    tool = {"tool": entry.facts(), "arguments": entry.arguments, "result": result, "isError": is_error}
                    steps.append(tool)
                case _:
                    steps.append({"note": entry})
        return steps


def _templates(described: Mapping[str, Any]) -> list[tuple[AnyScorer, Sequence[Template]]]:
    """Returns a scorer with the templates of its expected answers; nothing for one that has none."""
    try:
        scorer = scorer_from(described, "score")
    except TaskError:
        return []
    expected = getattr(scorer, "expected", None)
    templates = (expected,) if isinstance(expected, Template) else expected
    return [(scorer, templates)] if templates else []


def _option(value: Any, scorer: Choice, row: Mapping[str, Any]) -> str:
    """Returns a right option's letter, with its text where the data list the options."""
    options = scorer.options.alternatives(TaskRow("", row, "the row")) if scorer.options else ()
    letters = LETTERS[: len(options)] or scorer.letters
    is_place = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(letters)
    letter = letters[value] if is_place else text_of(value).strip().strip("().")
    at = letters.find(letter.upper()) if len(letter) == 1 else -1
    return f"{letter}. {options[at]}" if 0 <= at < len(options) else letter
