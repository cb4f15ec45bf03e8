"""The rows of a batch's output as OpenAI's Batch API writes them, and the note kept of each row.

Owns both shapes. A row's id contains its line, so that an output can be resumed in any order. Pure.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import msgspec
import orjson
from msgspec import UNSET, Struct, UnsetType

from ...bench.evaluation.door.outside import CallCosts
from ...engine.call import Outcome, Usage
from ...providers.llm.serve_problems import problem_of_failure
from .requests import BadLine, BatchRequest

_PREFIX = "batch_req_"
TAG_CHARS = 16
# What a note has of its calls, as every record has it.
_OF_CALLS = ("keys", "usage", "cost", "cached", "attempts", "maybe_billed", "served", "fingerprint", "tier", "router")


class Note(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The note kept of a row beside the output: its line (from 1), the row's CRC-32 (None: some samples are missing, so
    that there is no row yet), the cache keys of its samples (`keys`), and its cost in dollars. The `status` of a
    broken line is its code."""

    id: str | None
    line: int
    row_crc: int | None
    status: str
    model: str | None = None
    temperature: float | None = None
    trial: int = 0
    keys: tuple[str, ...] = ()
    truncated: bool = False
    usage: Usage | None = None
    cost: float | None = None
    cached: bool = False
    attempts: int = 0
    maybe_billed: int = 0
    latency_ms: float | None = None
    served: str | None = None
    fingerprint: str | None = None
    tier: str | None = None
    router: str | None = None
    error: str | UnsetType = UNSET

    @property
    def is_answer(self) -> bool:
        return self.status in ("ok", "refused")


class NotedRow(Struct, frozen=True):
    """A row without its newline, and its note."""

    row: bytes
    note: Note


class _RowId(Struct):
    id: str


_DECODE_NAMED = msgspec.json.Decoder(_RowId).decode


def row_id(tag: str, line: int) -> str:
    return f"{_PREFIX}{tag}{line:08x}"


def line_of(row: bytes, tag: str) -> int | None:
    """Returns the number of the input's line that a row answers; None: the row is not of this batch."""
    try:
        named = _DECODE_NAMED(row).id
        head, number = named[: len(_PREFIX) + TAG_CHARS], named[len(_PREFIX) + TAG_CHARS :]
        return int(number, 16) if head == _PREFIX + tag else None
    except (msgspec.MsgspecError, UnicodeError, ValueError):
        return None


def row_of_broken(wrong: BadLine, tag: str) -> NotedRow:
    message = f"line {wrong.line}: {wrong.said}"
    error = {"code": wrong.code, "message": message, "param": wrong.param, "line": wrong.line}
    row = orjson.dumps({"id": row_id(tag, wrong.line), "custom_id": wrong.custom_id, "response": None, "error": error})
    note = Note(id=wrong.custom_id, line=wrong.line, row_crc=zlib.crc32(row), status=wrong.code, error=wrong.said)
    return NotedRow(row, note)


def row_of(request: BatchRequest, outcomes: Sequence[Outcome], tag: str) -> NotedRow:
    """Returns the row of a request whose calls have all ended. If one of them failed, the row is a failure."""
    dialect, served = request.spoken, request.asked
    failed = next((outcome.failure for outcome in outcomes if outcome.failure is not None), None)
    if failed is None:
        status, body = 200, dialect.whole(served, outcomes)
    else:
        problem = problem_of_failure(failed)
        status, body = problem.status, dialect.problem(problem)
    name = row_id(tag, request.line)
    key = next((outcome.key for outcome in outcomes if outcome.key), "")
    response = {
        "status_code": status,
        "request_id": f"req_{key[:32] or name.removeprefix(_PREFIX)}",
        "body": orjson.Fragment(body),
    }
    row = orjson.dumps({"id": name, "custom_id": request.custom_id, "response": response, "error": None})
    return NotedRow(row, note_of(request, outcomes, zlib.crc32(row)))


def note_of(request: BatchRequest, outcomes: Sequence[Outcome], row_crc: int | None) -> Note:
    """Returns the note of a request. `row_crc` None: it is still pending, and the note has the cost of the samples that
    it has."""
    call = request.asked.call
    failure = next((outcome.failure for outcome in outcomes if outcome.failure is not None), None)
    costs = CallCosts()
    for outcome in outcomes:
        costs.add_call(outcome)
    fields = costs.as_fields()
    took_ms = [outcome.latency_ms for outcome in outcomes if outcome.latency_ms is not None]
    # The worst of several samples: a refusal among answers is one to look at.
    status = failure.kind if failure is not None else max((each.status for each in outcomes), default="ok")
    return Note(
        id=request.custom_id,
        line=request.line,
        row_crc=row_crc,
        status=status,
        model=call.model,
        temperature=call.temperature,
        trial=min(outcome.call.trial for outcome in outcomes),
        truncated=any(outcome.reply is not None and outcome.reply.truncated for outcome in outcomes),
        latency_ms=max(took_ms, default=None),
        **{name: fields[name] for name in _OF_CALLS},
        error=failure.detail if failure is not None else UNSET,
    )
