"""The columns of an exported table, one set a benchmark: Arrow types made from the very types that records are read by.

Owns which columns hold words that come again and again. Needs pyarrow, which is an extra: imported where a table is
made, never before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import msgspec.inspect as inspect
import pyarrow as pa  # type: ignore[import-untyped]
from msgspec import Struct

from ...bench.chameleon.records import Record as Turn
from ...bench.millstone.records import Record as Answer
from ...engine.call import Usage

# Few values in many rows: kept once each, and read as categories.
CATEGORIES = frozenset(
    {
        "model", "status", "issue", "config", "orientation", "letter", "stance", "conversation", "domain", "topic",
        "judge", "search", "query_by", "step", "finish_reason", "code",
    }
)  # fmt: skip


class Function(Struct):
    """A tool that a model asked for; `arguments` are JSON, as it wrote them."""

    id: str | None = None
    name: str | None = None
    arguments: str | None = None


class Choice(Struct):
    """One sample of an answer, whoever's words it came in."""

    text: str | None = None
    finish_reason: str | None = None
    tool_calls: tuple[Function, ...] = ()


class Wrong(Struct):
    """Why a line has no answer."""

    code: str | None = None
    message: str | None = None
    param: str | None = None
    line: int | None = None


class BatchRow(Struct):
    """A row of a batch's output, and what its note keeps of it. `text` is the first sample's."""

    id: str
    custom_id: str | None = None
    line: int | None = None
    status: str | None = None
    status_code: int | None = None
    request_id: str | None = None
    response_id: str | None = None
    response_model: str | None = None
    text: str | None = None
    choices: tuple[Choice, ...] = ()
    error: Wrong | None = None
    model: str | None = None
    temperature: float | None = None
    trial: int | None = None
    keys: tuple[str, ...] = ()
    truncated: bool | None = None
    usage: Usage | None = None
    cost: float | None = None
    cached: bool | None = None
    attempts: int | None = None
    maybe_billed: int | None = None
    latency_ms: float | None = None


RECORDS: Mapping[str, type[Struct]] = {"millstone": Answer, "chameleon": Turn, "batch": BatchRow}


def schema_of(benchmark: str, metadata: Mapping[str, str]) -> Any:
    """Every column may be null: records of other programs need only the documented fields."""
    info = inspect.type_info(RECORDS[benchmark])
    assert isinstance(info, inspect.StructType)
    return pa.schema([_field(field) for field in info.fields], metadata=dict(metadata))


def _field(field: inspect.Field) -> Any:
    return pa.field(field.encode_name, _type_of(field.type, is_category=field.encode_name in CATEGORIES))


def _type_of(kind: inspect.Type, *, is_category: bool = False) -> Any:
    match kind:
        case inspect.UnionType():
            (inner,) = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
            return _type_of(inner, is_category=is_category)
        case inspect.StrType() | inspect.LiteralType():
            return pa.dictionary(pa.int32(), pa.string()) if is_category else pa.string()
        case inspect.BoolType():
            return pa.bool_()
        case inspect.IntType():
            return pa.int64()
        case inspect.FloatType():
            return pa.float64()
        case inspect.VarTupleType():
            return pa.list_(_type_of(kind.item_type))
        case inspect.StructType():
            return pa.struct([pa.field(each.encode_name, _type_of(each.type)) for each in kind.fields])
    raise TypeError(f"no column for {kind}")  # a field of a kind that no record had so far


def table_of(rows: list[dict[str, Any]], schema: Any) -> Any:
    return pa.Table.from_pylist(rows, schema=schema)


def decoder_of(benchmark: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(RECORDS[benchmark])
