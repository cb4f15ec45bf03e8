"""The columns of an exported table, one set a benchmark: Arrow types made from the types of its records.

Owns which columns are categories. Needs pyarrow, which is an extra and imported only when a table is made.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec.inspect as inspect
import orjson
import pyarrow as pa  # type: ignore[import-untyped]
from msgspec import Struct

from ...bench.evaluation.door.registry import benchmark_named
from ..batch.rows import Note

# Columns with few values in many rows: each value is stored once, and read as a category. A benchmark adds fields of
# its own.
CATEGORIES = frozenset(
    {"model", "status", "group", "role", "judge", "served", "fingerprint", "tier", "router", "served_judge"}
)
_JSON = {b"content": b"json"}


class RequestedTool(Struct):
    """A tool that a model asked for; `arguments` are JSON, as it wrote them."""

    id: str | None = None
    name: str | None = None
    arguments: str | None = None


class AnswerSample(Struct):
    """One sample of an answer, in one form for all dialects."""

    text: str | None = None
    finish_reason: str | None = None
    tool_calls: tuple[RequestedTool, ...] = ()


class LineError(Struct):
    """The reason why a line has no answer."""

    code: str | None = None
    message: str | None = None
    param: str | None = None
    line: int | None = None


class BatchRow(Struct):
    """A row of a batch's output; the other fields of its note are columns too. `text` is the first sample's."""

    id: str
    custom_id: str | None = None
    line: int | None = None
    status: str | None = None
    status_code: int | None = None
    request_id: str | None = None
    response_id: str | None = None
    response_model: str | None = None
    text: str | None = None
    choices: tuple[AnswerSample, ...] = ()
    error: LineError | None = None


def record_of(benchmark: str) -> type[Struct]:
    return BatchRow if benchmark == "batch" else benchmark_named(benchmark).Record


def schema_of(benchmark: str, metadata: Mapping[str, str]) -> Any:
    """Returns the Arrow schema of a record type. Every column may be null, since other programs' records have fewer."""
    fields = list(_fields_of(record_of(benchmark)))
    if benchmark == "batch":
        fields += [each for each in _fields_of(Note) if each.name not in (*BatchRow.__struct_fields__, "row_crc")]
    categories = () if benchmark == "batch" else benchmark_named(benchmark).categories
    return pa.schema([_field(field, CATEGORIES.union(categories)) for field in fields], metadata=dict(metadata))


def _fields_of(record: type[Struct]) -> tuple[inspect.Field, ...]:
    info = inspect.type_info(record)
    assert isinstance(info, inspect.StructType)
    return info.fields


def _field(field: inspect.Field, categories: Collection[str]) -> Any:
    try:
        kind = _type_of(field.type, is_category=field.encode_name in categories)
    except _NoColumn:
        return pa.field(field.encode_name, pa.string(), metadata=_JSON)
    return pa.field(field.encode_name, kind)


class _NoColumn(Exception):
    """Raised for values without a column type: mappings with free names, or unions of several types."""


def _type_of(kind: inspect.Type, *, is_category: bool = False) -> Any:
    match kind:
        case inspect.UnionType():
            inner = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
            if len(inner) == 1:
                return _type_of(inner[0], is_category=is_category)
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
    raise _NoColumn


def table_of(rows: list[dict[str, Any]], schema: Any) -> Any:
    """Returns records as an Arrow table. Values without one type become JSON in a text column."""
    loose = [field.name for field in schema if field.metadata == _JSON]
    for row in rows:
        for name in loose:
            if not isinstance(row.get(name), str | None):
                row[name] = orjson.dumps(row[name]).decode()
    return pa.Table.from_pylist(rows, schema=schema)
