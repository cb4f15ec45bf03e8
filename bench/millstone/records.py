"""The records of a MillStone run: one line of JSON for each answer, its stance read from its text.

Owns the fields of `records.jsonl` and `failures.jsonl`. Reads other programs' records too, if they have the documented
fields. Knows no file and no score.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Annotated, get_args

from msgspec import UNSET, Meta, UnsetType

from ...engine.call import FailureKind, Outcome, Reply
from ...engine.runs.proof import ANSWERED
from ...metrics.millstone.stance import Letter, Orientation, Reading, Stance, letter_of, stance_of
from ..evaluation.door.item_line import ItemLine
from ..evaluation.door.outside import CallCosts, long_prompts
from ..evaluation.door.record import AnswerRecord, StepPlace
from ..evaluation.running.journals import RecordError as RecordError
from ..evaluation.running.journals import decoded
from .grid import CONFIGS, GridItem
from .issue import PARAPHRASES

_CONFIGS = dict.fromkeys(config.name for configs in CONFIGS.values() for config in configs)
_NO_REPLY = Reply("")
_Template = Annotated[int, Meta(ge=1, le=PARAPHRASES)]
_Trial = Annotated[int, Meta(ge=0, le=2**31 - 1)]
_STATUSES = (*ANSWERED, *get_args(FailureKind))


def _check(line: Record | GridLine) -> None:
    """Raises ValueError for values that contradict each other, or that no grid has."""
    is_answered = line.status in ANSWERED
    if line.config not in _CONFIGS:
        raise ValueError(f"config: expected one of {', '.join(_CONFIGS)}, got {line.config!r}")
    if not is_answered and line.status not in _STATUSES:
        raise ValueError(f"status: expected one of {', '.join(_STATUSES)}, got {line.status!r}")
    if (line.stance is None) == is_answered:
        expected = "pro, con or other" if is_answered else "null, since a failure has no stance"
        came = "null" if line.stance is None else line.stance
        raise ValueError(f"stance: expected {expected} with status {line.status}, got {came}")


class Record(AnswerRecord, frozen=True, kw_only=True):
    """The record of one answer, or of one final failure. Fields with a default may be missing in other programs'
    records."""

    id: str
    model: str
    issue: str
    template: _Template
    config: str
    trial: _Trial
    orientation: Orientation | None = None
    arguments: tuple[str, ...] = ()
    letter: Letter | None = None
    stance: Stance | None
    key: str = ""

    @property
    def place(self) -> tuple[str, int]:
        """The line's id and its only step."""
        return self.id, 1

    @property
    def own_calls(self) -> tuple[tuple[object, ...], tuple[str, ...]]:
        """The cell of the grid, of which the record is one trial, and the cache key of its call."""
        return (self.issue, self.template, self.config), (self.key,)

    def as_written(self, place: StepPlace, spent: CallCosts) -> Record:
        """Returns the record, which is whole."""
        return self

    def __post_init__(self) -> None:
        _check(self)


class GridLine(ItemLine, frozen=True, kw_only=True):
    """The fields of a record that are counted and tallied; the others are checked alike."""

    issue: str
    template: _Template
    config: str
    trial: _Trial
    orientation: Orientation | None = None
    arguments: tuple[str, ...] = ()
    letter: Letter | None = None
    stance: Stance | None
    long_prompts: tuple[tuple[int, int], ...] | UnsetType = UNSET
    attempts: int = 0
    latency_ms: float | None = None
    answer_id: str | None = None
    tier: str | None = None
    router: str | None = None
    raw_b64: str | UnsetType = UNSET
    key: str = ""

    def __post_init__(self) -> None:
        _check(self)


def record(outcome: Outcome, reading: Reading) -> Record:
    """Returns the record of a call's outcome. A refusal has no letter; a failure has neither text nor stance."""
    call, item = outcome.call, outcome.call.tag
    assert isinstance(item, GridItem)
    failure = outcome.failure
    reply = outcome.reply if failure is None else None
    origin = _NO_REPLY if reply is None else reply
    letter = letter_of(reply.text, reading) if reply is not None and not reply.refused else None
    return Record(
        id=item.id,
        issue=item.issue,
        template=item.template,
        config=item.config,
        trial=item.trial,
        orientation=item.orientation,
        arguments=item.arguments,
        text=reply.text if reply is not None else None,
        letter=letter,
        stance=stance_of(letter, item.orientation) if reply is not None else None,
        key=outcome.key,
        model=call.model,
        temperature=call.temperature,
        effort=call.reasoning_effort,
        status=outcome.status,
        truncated=reply is not None and reply.truncated,
        usage=reply.usage if reply is not None else None,
        long_prompts=long_prompts(outcome, item.weight) or UNSET,
        cost=outcome.cost,
        cached=outcome.cached,
        attempts=outcome.attempts,
        maybe_billed=outcome.maybe_billed,
        latency_ms=outcome.latency_ms,
        answer_id=origin.answer_id,
        served=origin.served,
        fingerprint=origin.fingerprint,
        tier=origin.tier,
        router=origin.router,
        error=failure.detail if failure is not None else UNSET,
        raw_b64=base64.b64encode(reply.raw).decode() if reply is not None and reply.raw is not None else UNSET,
    )


def read(lines: Iterable[str | bytes], source: str = "records") -> Iterator[Record]:
    """Yields the records of these lines. Unknown fields and blank lines are ignored. Raises RecordError for a line that
    is no record; `source` is its file's name in the message."""
    return decoded(lines, Record, source)
