"""Anything at all as an answer, in every wire protocol: a reply or a fault that can be written, never an exception."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from mutations import mutated
from protocols import ROWS, TEXT, ProtocolRow
from torture import times

from millstream.engine.call import Reply
from millstream.engine.content import Native, ToolCall
from millstream.engine.endpoint import Fault, Response

in_each_protocol = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
# Rows on Vertex AI read answers with another row's code, but for errors.
SHAPES = [row for row in ROWS.values() if "vertex" not in row.name]
in_each_shape = pytest.mark.parametrize("row", SHAPES, ids=[row.name for row in SHAPES])


def everything(row: ProtocolRow) -> tuple[Any, ...]:
    calls = (ToolCall("a", "f", '{"x":[1,{"y":null}]}'),) if row.shape.has_calls else ()
    return (*row.shape.thoughts[:1], *row.shape.own, TEXT, *calls)


def names_in(value: Any) -> set[str]:
    """The names and words in JSON."""
    if isinstance(value, dict):
        return set(value).union(*map(names_in, value.values()))
    return set().union(*map(names_in, value)) if isinstance(value, list) else {value} & {str(value)}


def values_of(row: ProtocolRow, stream: bool) -> list[Any]:
    return row.values(row.answer(*everything(row), stream=stream).body, stream)


NAMES = {row.name: sorted(names_in(values_of(row, False) + values_of(row, True)) | {"error"}) for row in ROWS.values()}


@cache
def any_json(name: str) -> st.SearchStrategy[Any]:
    """Any JSON that is made of the protocol's names and words."""
    words = st.sampled_from(NAMES[name])
    return st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers(-10, 10**9) | words,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
        max_leaves=12,
    )


@cache
def any_answer(name: str) -> st.SearchStrategy[Any]:
    return any_json(name) | mutated(values_of(ROWS[name], False))


@cache
def any_events(name: str) -> st.SearchStrategy[Any]:
    """A stream with odd events among its own."""
    values = values_of(ROWS[name], True)
    kinds = st.sampled_from([kind for kind, _ in values])
    odd = st.lists(st.tuples(kinds, any_json(name)) | mutated(values).filter(is_event), max_size=4)
    return st.builds(lambda at, more: [*values[:at], *more, *values[at:]], st.integers(0, len(values)), odd)


def is_event(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and value[0].isascii()


def assert_can_be_written(result: Reply | Fault) -> None:
    assert isinstance(result, Reply | Fault)
    if isinstance(result, Fault):
        assert orjson.loads(orjson.dumps(result.detail)) == result.detail
        return
    texts = [result.text, result.finish_reason, *(text for one in result.citations for text in (one.url, one.title))]
    assert orjson.loads(orjson.dumps(texts)) == texts
    for part in result.parts:
        if isinstance(part, ToolCall):
            orjson.dumps([part.id, part.name, part.arguments, part.native and part.native.value])
        else:
            orjson.dumps(part.value if isinstance(part, Native) else part)


@in_each_shape
@settings(max_examples=times(30, 300), deadline=None)
@given(st.data(), st.sampled_from([200, 200, 200, 400, 403, 424, 429, 500]))
def test_any_json_is_a_reply_or_a_fault_that_can_be_written(row: ProtocolRow, data: st.DataObject, status: int) -> None:
    body = json.dumps(data.draw(any_answer(row.name))).encode()
    assert_can_be_written(row.wire.decode(Response(status, body)))


@in_each_shape
@settings(max_examples=times(30, 300), deadline=None)
@given(st.data())
def test_any_events_are_a_reply_or_a_fault_that_can_be_written(row: ProtocolRow, data: st.DataObject) -> None:
    told = data.draw(any_events(row.name))
    body = b"".join(row.shape.frame(json.dumps(one).encode(), kind) for kind, one in told)
    assert_can_be_written(row.wire.decode(Response(200, body, stream=True)))


MARKS = [
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b'"',
    b"null",
    b"1e999",
    b"-1",
    b"data: ",
    b"\n\n",
    b"\r",
    b"\xff",
    b"\\ud800",
]


@cache
def any_bytes(name: str) -> st.SearchStrategy[bytes]:
    names = [b'"%b"' % word.encode() for word in NAMES[name]]
    pieces = st.sampled_from([*MARKS, *names, ROWS[name].answer(TEXT).body, *ROWS[name].events()])
    return st.lists(pieces, max_size=12).map(b"".join)


@in_each_shape
@settings(max_examples=times(30, 300), deadline=None)
@given(
    st.data(),
    st.sampled_from([200, 200, 200, 204, 302, 400, 401, 402, 403, 429, 500, 503, 599]),
    st.booleans(),
    st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "date", "location"]), st.text(max_size=30)),
)
def test_any_bytes_are_a_reply_or_a_fault_that_can_be_written(
    row: ProtocolRow, data: st.DataObject, status: int, stream: bool, headers: dict[str, str]
) -> None:
    body = data.draw(any_bytes(row.name))
    result = row.wire.decode(Response(status, body, stream, headers=headers))
    assert_can_be_written(result)
    assert isinstance(result, Fault) or status == 200 or result.refused


@in_each_shape
@settings(max_examples=times(20, 200), deadline=None)
@given(st.binary(max_size=300), st.integers(200, 599), st.booleans())
def test_noise_is_never_a_reply(row: ProtocolRow, body: bytes, status: int, stream: bool) -> None:
    for each in (200, status):
        assert not isinstance(row.wire.decode(Response(each, body, stream)), Reply)


@in_each_shape
@settings(max_examples=times(20, 200), deadline=None)
@given(st.data(), st.integers(1, 255), st.booleans())
def test_one_wrong_byte_is_never_an_exception(row: ProtocolRow, data: st.DataObject, change: int, stream: bool) -> None:
    response = row.answer(*everything(row), stream=stream)
    body = bytearray(response.body)
    body[data.draw(st.integers(0, len(body) - 1))] ^= change
    assert_can_be_written(row.wire.decode(structs.replace(response, body=bytes(body))))


@in_each_protocol
@pytest.mark.parametrize("depth", [500, 1_020, 5_000, 200_000])
def test_deep_json_breaks_nothing(row: ProtocolRow, depth: int) -> None:
    body = orjson.loads(row.answer(TEXT).body)
    fields: list[Any] = [
        *({name: "#"} for name in (*body, "error", "new")),
        {"error": {"message": "#"}},
        {"message": "#"},
    ]
    for field in fields:
        deep = orjson.dumps({**body, **field}).replace(b'"#"', b"[" * depth + b"]" * depth)
        for response in (
            Response(200, deep),
            Response(200, deep, stream=True),
            Response(200, row.shape.frame(deep), stream=True),
            Response(500, deep),
        ):
            assert_can_be_written(row.wire.decode(response))
