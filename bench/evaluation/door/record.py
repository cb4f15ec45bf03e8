"""The journal line of a benchmark made of items: the fields that the framework fills in.

Knows no file and no score.
"""

from __future__ import annotations

import base64
from typing import Protocol, Self

from msgspec import UNSET, Struct, UnsetType, structs

from ....engine.call import Failure, Usage
from ....engine.pairs import Pair
from ....engine.runs.proof import ANSWERED
from .item import Item
from .outside import CallCosts, FromCache


class StepPlace(Struct, frozen=True):
    """The item, step and pair of a line."""

    item: Item
    step: int
    pair: Pair

    @property
    def id(self) -> str:
        return self.item.line_ids()[self.step - 1]


class StepRecord(Protocol):
    """The interface of a step's record, or of its final failure."""

    @property
    def id(self) -> str: ...

    @property
    def status(self) -> str: ...

    @property
    def is_failure(self) -> bool: ...

    def as_written(self, place: StepPlace, spent: CallCosts) -> StepRecord:
        """Returns the record with the fields that the framework fills in: its place and its costs."""
        ...


class AnswerRecord(Struct, frozen=True, kw_only=True):
    """The fields of every answer's record, whatever the benchmark."""

    id: str = ""
    """The line's id: the item's, or `item/step` where an item has several steps."""
    model: str = ""
    """The model under test."""
    temperature: float | None = None
    """The temperature of the pair; None: none is sent."""
    effort: str | None = None
    """The reasoning effort of the pair; None: none is sent."""
    text: str | None = None
    """The answer of the model under test; None in a failure."""
    status: str = "ok"
    """`ok`, `refused` where the model refused its last call of the step, or the kind of failure."""
    truncated: bool = False
    """Whether the model's last answer of the step was cut off at its limit of tokens."""
    usage: Usage | None = None
    """The tokens of the model under test, those of answers from the cache included."""
    long_prompts: tuple[tuple[int, int], ...] | UnsetType = UNSET
    """The characters and the reported tokens of each long prompt to the model under test."""
    cost: float | None = None
    """The dollars that all calls of the step cost; None: none of them has a price."""
    cached: bool = False
    """Whether no call of the step was sent to the model under test: all its answers are from the cache."""
    attempts: int = 0
    """The number of attempts of the step's calls."""
    maybe_billed: int = 0
    """The attempts without a whole answer that may have been billed all the same."""
    latency_ms: float | None = None
    """The milliseconds of the model's last call in the step; None: its answer is from the cache."""
    answer_id: str | None = None
    """The provider's id of the model's last answer in the step; None: it gave none."""
    served: str | None = None
    """The name under which the model's calls were answered, as the server states it; several are joined by ` + `.
    None: it stated none."""
    fingerprint: str | None = None
    """The provider's fingerprint of the configuration that gave the last answer; None: it gave none."""
    tier: str | None = None
    """The service tier of the last answer, in the provider's word; None: it gave none."""
    router: str | None = None
    """The provider that a router chose for the last answer; None: it gave none."""
    error: str | UnsetType = UNSET
    """In a failure: what happened, and what to do."""
    raw_b64: str | UnsetType = UNSET
    """The bytes of the model's last answer, where its text had to be repaired."""

    @property
    def pair(self) -> Pair:
        """The model under test and its treatment."""
        return Pair(self.model, self.temperature, self.effort)

    @property
    def is_failure(self) -> bool:
        """Whether the line belongs in failures.jsonl."""
        return self.status not in ANSWERED


class Record(AnswerRecord, frozen=True, kw_only=True):
    """The record of one step of an item, or its final failure. A benchmark adds fields, each with a default; it may set
    `text`, and the framework fills in the rest."""

    item: str = ""
    """The item's id, or the one that it is a repeat of."""
    step: int = 0
    """The number of the step, from 1."""
    group: str = ""
    """The item's group."""
    keys: tuple[str, ...] = ()
    """The keys of the step's calls, under which the cache has their answers."""
    usage_judge: Usage | None = None
    """The tokens of all calls with the role `judge`."""
    cost_judge: float | None = None
    """The dollars of the judges' calls, included in `cost`."""
    cost_search: float | None = None
    """The dollars of the searches, included in `cost`."""
    from_cache: FromCache | None = None
    """The parts of the step that the cache answered; None: none."""
    served_judge: str | None = None
    """The name under which the judge's calls were answered, as `served`."""
    role: str | UnsetType = UNSET
    """In a failure: the role of the call that failed."""

    @property
    def place(self) -> tuple[str, int]:
        """The line's id and its step."""
        return self.id, self.step

    @property
    def own_calls(self) -> tuple[tuple[object, ...], tuple[str, ...]]:
        """What the line is a repeat of, and the cache keys of its calls, which no other repeat has."""
        return (self.item, self.step), self.keys

    def as_written(self, place: StepPlace, spent: CallCosts) -> Self:
        """Returns the record with the framework's fields filled in; a failure has no answer."""
        filled = structs.replace(
            self,
            id=place.id,
            item=place.item.of or place.item.id,
            step=place.step,
            group=place.item.group,
            model=place.pair.model,
            temperature=place.pair.temperature,
            effort=place.pair.effort,
            **spent.as_fields(),
            latency_ms=None if spent.last is None else spent.last.latency_ms,
        )
        reply = None if spent.last is None else spent.last.reply
        if reply is None or self.role is not UNSET:
            return filled
        return structs.replace(
            filled,
            text=reply.text if self.text is None else self.text,
            status="refused" if reply.refused else "ok",
            truncated=reply.truncated,
            answer_id=reply.answer_id,
            raw_b64=UNSET if reply.raw is None else base64.b64encode(reply.raw).decode(),
        )


def failed_call(failure: Failure, role: str) -> Record:
    """Returns the record of a step of which a call failed for good; a benchmark's own fields are not in it."""
    return Record(status=failure.kind, role=role, error=failure.detail)
