"""The records of a task: one line of JSON for each answer, with its prompt and its scores.

Owns a task's own fields in `records.jsonl`. A record alone is enough to show and to check it; the task's own program is
not needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from ...engine.call import Reply, TokenLogprob
from ...engine.content import ToolCall
from ...metrics.task.trials import GAVE_NONE
from ..evaluation.door.record import Record as BaseRecord
from .judge_call import JudgeCall
from .rows import TaskRow
from .scorers import Score
from .transcript import Transcript


class ToolRequest(Struct, frozen=True):
    """A tool call that the model asked for."""

    id: str
    """The id of the request, as the model gave it."""
    name: str
    """The tool's name."""
    arguments: str = "{}"
    """The arguments, JSON as the model wrote it."""


class Record(BaseRecord, frozen=True, kw_only=True):
    """The record of one answer, or of one final failure."""

    trial: int = 0
    """The number of the trial, from 0."""
    row: dict[str, Any] = field(default_factory=dict)
    """The columns of the row."""
    prompt: str | list[dict[str, Any]] = ""
    """The prompt: a text, or messages with role and content."""
    variant: str | UnsetType = UNSET
    """The variant of the prompt, where it has several."""
    order: str | UnsetType = UNSET
    """The letters of the data's options in the order in which they were shown, where they are shuffled."""
    tool_calls: tuple[ToolRequest, ...] | UnsetType = UNSET
    """The tools that the model asked for."""
    logprobs: tuple[TokenLogprob, ...] | UnsetType = UNSET
    """The tokens' log-probabilities, where they were asked for."""
    score: float | None = None
    """The main score; None where the answer has none."""
    scores: dict[str, float | None] | UnsetType = UNSET
    """Every score by its name, if there are several."""
    read: str | None = None
    """What the scorer read in the answer, such as the letter of a choice; None: nothing in particular."""
    problem: str | None = None
    """Why there is no score; None if there is one."""
    problems: dict[str, str] | UnsetType = UNSET
    """Why `scores` of these names are none, where the reason is another than `problem`."""
    judge: tuple[JudgeCall, ...] | UnsetType = UNSET
    """The judges' calls about the answer."""
    result: Any = UNSET
    """What the `run` of a benchmark of several steps returned."""
    transcript: Transcript | UnsetType = UNSET
    """Everything that was said and done in its item."""

    @property
    def question(self) -> str:
        """The first message of the transcript; empty without one."""
        return self.transcript.question() if self.transcript else ""

    @property
    def own_calls(self) -> tuple[tuple[object, ...], tuple[str, ...]]:
        """As of every record; calls to whose samples the author gave numbers may be those of other records too."""
        repeated, keys = super().own_calls
        shared = {step.key for step in self.transcript.calls if step.sample is not None} if self.transcript else ()
        return repeated, tuple(key for key in keys if key not in shared)

    @property
    def is_empty(self) -> bool:
        """Whether the model returned neither text nor tool calls."""
        return not (self.text or "").strip() and not self.tool_calls

    def problem_of(self, name: str | None = None) -> str:
        """Returns why the answer has no score of this name (None: the main one), in one line."""
        is_named = name is None or name in (self.scores or {})
        unsaid = "its record does not say why" if is_named else GAVE_NONE
        why = (self.problems or {}).get(name or "") or self.problem or unsaid
        return (why.splitlines() or [unsaid])[0]

    def reply(self) -> Reply:
        """Returns the answer in the form that scorers take."""
        calls = tuple(ToolCall(each.id, each.name, each.arguments) for each in self.tool_calls or ())
        text = self.text or (self.transcript.last_answer() if self.transcript else "")
        return Reply(
            text,
            usage=self.usage,
            finish_reason="length" if self.truncated else "tool_calls" if calls else None,
            refused=self.status == "refused",
            logprobs=self.logprobs or None,
            parts=((text, *calls) if text else calls) if calls else (),
        )

    def as_row(self) -> TaskRow:
        """Returns the row in the form that scorers take."""
        return TaskRow(self.item, self.row, f"record {self.id}", self.group or None, self.order or "")


def silence_of(reply: Reply) -> str | None:
    """Returns why an answer can have no score before any scorer reads it; None if it can."""
    if reply.refused:
        return "the model refused"
    if not reply.text.strip() and not reply.tool_calls:
        return "the answer is empty" + (", cut off at max_tokens" if reply.truncated else "")
    return None


def scored(scores: Mapping[str, Score]) -> dict[str, Any]:
    """Returns a record's score fields from the scorers' results by name; the first is the main one."""
    main = next(iter(scores.values()))
    named: dict[str, Score] = {}
    for name, score in scores.items():
        if len(scores) > 1:
            named[name] = score
        named |= {part if len(scores) == 1 else f"{name}.{part}": each for part, each in score.parts.items()}
    why = {name: each.problem for name, each in named.items() if each.problem not in (None, main.problem)}
    return {
        "score": main.value,
        "scores": {name: each.value for name, each in named.items()} or UNSET,
        "read": main.read,
        "problem": main.problem,
        "problems": why or UNSET,
    }
