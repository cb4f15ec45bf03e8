"""The records of a Chameleon run: one line of JSON for each turn, with everything that its scores need.

Owns the fields that stand in `records.jsonl` and `failures.jsonl`, written and read. Knows no file and no score.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, get_args

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ...engine.call import FailureKind, Usage
from ...engine.pairs import Pair
from ...metrics.chameleon.lines import Stance
from .context import Cut
from .outside import FromCache
from .retrieval import Retrieved, Step

_ANSWERED = ("ok", "refused")
_STATUSES = (*_ANSWERED, *get_args(FailureKind))
_Share = Annotated[float, Meta(ge=0, le=1)]


class RecordError(ValueError):
    """A line isn't a record of Chameleon: which line, what was expected, what came."""


class Record(Struct, frozen=True, kw_only=True):
    """One turn, or its final failure. Fields with a default may be missing in what other programs write.

    `usage` is the model's own, query and answer, and `cached` tells that neither was sent; `from_cache` is all of the
    turn that was not. `latency_ms` is the answer's, `cost` the whole turn's. `query_by` tells where the model wrote no
    query and the question was searched. `confidence`, `rationale` and `key_claims` are null where no judge read the
    answer, or what it said could not be read; `judge_confidence` is the judge's own number. `filtered`: the text is a
    provider's filter's, and stands in no history. `step` is where a turn failed.
    """

    id: str
    conversation: str
    domain: str = ""
    topic: str = ""
    turn: Annotated[int, Meta(ge=1)]
    question: str = ""
    query: str = ""
    retrieved: tuple[Retrieved, ...] = ()
    cited: tuple[str, ...] = ()
    text: str | None = None
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
    cut: Cut | None = None
    search: str = ""
    search_remarks: tuple[str, ...] | UnsetType = UNSET
    query_by: str = "model"
    model: str
    temperature: float | None = None
    status: str = "ok"
    truncated: bool = False
    usage: Usage | None = None
    cost: float | None = None
    cost_judge: float | None = None
    cost_search: float | None = None
    cached: bool = False
    from_cache: FromCache | None = None
    attempts: int = 0
    maybe_billed: int = 0
    latency_ms: float | None = None
    step: Step | UnsetType = UNSET
    error: str | UnsetType = UNSET
    raw_b64: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.status not in _STATUSES:
            raise ValueError(f"status: expected one of {', '.join(_STATUSES)}, came {self.status!r}")
        if (self.stance is None) == (self.status in _ANSWERED):
            expected = "a stance" if self.status in _ANSWERED else "null, since a failure has no stance"
            came = "null" if self.stance is None else self.stance
            raise ValueError(f"stance: expected {expected} with status {self.status}, came {came}")

    @property
    def pair(self) -> Pair:
        return Pair(self.model, self.temperature)


def encode(record: Record) -> bytes:
    """One line for the journal, without its newline. A lone surrogate, as a file's name may have one, is replaced: it
    must not cost a turn that has been paid for."""
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:
        return msgspec.json.encode(_mended(msgspec.to_builtins(record)))


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple):
        return [_mended(each) for each in value]
    return {name: _mended(each) for name, each in value.items()} if isinstance(value, dict) else value


def read(lines: Iterable[str | bytes], source: str = "records") -> Iterator[Record]:
    """Records from their lines. Unknown fields are passed over, and so are blank lines."""
    decoder = msgspec.json.Decoder(Record)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise RecordError(f"{source}: line {number}: {error}") from error
