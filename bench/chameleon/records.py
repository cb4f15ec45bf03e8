"""The records of a Chameleon run: one line of JSON for each turn, with all that its scores need.

Owns the fields of `records.jsonl` and `failures.jsonl`. Knows no file and no score.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from ...engine.call import Failure, FailureKind, Usage
from ...engine.runs.proof import ANSWERED
from ...metrics.chameleon.lines import Stance
from ..evaluation.door.outside import CallCosts, FromCache
from ..evaluation.door.record import AnswerRecord, StepPlace
from .context import PromptCuts

Step = Literal["query", "search", "answer", "judge", "repair"]
"""Where a turn can fail."""
_STATUSES = (*ANSWERED, *get_args(FailureKind))
_Share = Annotated[float, Meta(ge=0, le=1)]


class RetrievedPage(Struct, frozen=True):
    """A result as recorded. `chars` counts the whole text, even if less of it was shown; `final_url` is set if the
    address led to another one."""

    url: str
    status: str = "ok"
    chars: int = 0
    hash: str = ""
    final_url: str | UnsetType = UNSET

    @property
    def has_text(self) -> bool:
        return self.status == "ok" and self.chars > 0


class Record(AnswerRecord, frozen=True, kw_only=True):
    """The record of one turn, or of its final failure. Fields with a default may be missing in other programs' records.

    `usage` is that of the model's query and answer, and `cached` means that neither was sent; `from_cache` is the part
    of the turn that the cache answered. `latency_ms` is the answer's, `cost` the whole turn's in dollars. `query_by` is
    `question` if the model wrote no query and the question was searched. `confidence`, `rationale` and `key_claims` are
    null if no judge read the answer or its reply was unreadable; `judge_confidence` is the judge's own number.
    `filtered`: the text is a provider's filter's, and is in no history. `step` is where a turn failed.
    """

    id: str
    model: str
    conversation: str
    domain: str = ""
    topic: str = ""
    turn: Annotated[int, Meta(ge=1)]
    question: str = ""
    query: str = ""
    retrieved: tuple[RetrievedPage, ...] = ()
    cited: tuple[str, ...] = ()
    filtered: bool = False
    stance: Stance | None
    confidence: _Share | None = None
    rationale: str | None = None
    key_claims: tuple[str, ...] | None = None
    contradictions_acknowledged: bool | None = None
    judge: str = ""
    usage_judge: Usage | None = None
    keys: tuple[str, ...] = ()
    judge_confidence: _Share | None = None
    judge_temperature: float | None = None
    judge_repaired: bool = False
    raw_judgement: str | UnsetType = UNSET
    invalid_citations: tuple[str, ...] = ()
    cut: PromptCuts | None = None
    search: str = ""
    search_remarks: tuple[str, ...] | UnsetType = UNSET
    query_by: str = "model"
    cost_judge: float | None = None
    cost_search: float | None = None
    from_cache: FromCache | None = None
    served_judge: str | None = None
    step: Step | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.status not in _STATUSES:
            raise ValueError(f"status: expected one of {', '.join(_STATUSES)}, got {self.status!r}")
        if (self.stance is None) == (self.status in ANSWERED):
            expected = "a stance" if self.status in ANSWERED else "null, since a failure has no stance"
            received = "null" if self.stance is None else self.stance
            raise ValueError(f"stance: expected {expected} with status {self.status}, got {received}")

    @property
    def place(self) -> tuple[str, int]:
        """The line's id and its turn; where other fields contradict the id, it names them."""
        if self.id == f"{self.conversation}/{self.turn}":
            return self.id, self.turn
        return f"{self.id}, of {self.conversation} with the number {self.turn},", self.turn

    @property
    def own_text(self) -> str:
        """The model's own text, also of a refusal; empty for a content filter's."""
        return "" if self.filtered else self.text or ""

    @property
    def own_calls(self) -> tuple[tuple[object, ...], tuple[str, ...]]:
        """The turn, and the cache keys of its calls."""
        return (self.conversation, self.turn), self.keys

    def failed(self, step: Step, failure: Failure) -> Record:
        """Returns the record of a turn that failed for good at this step."""
        return structs.replace(self, stance=None, status=failure.kind, step=step, error=failure.detail)

    def as_written(self, place: StepPlace, spent: CallCosts) -> Record:
        """Returns the record with the costs of its turn."""
        return structs.replace(self, **spent.as_fields())
