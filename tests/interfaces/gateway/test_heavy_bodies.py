"""Requests made to fill the memory or to hold up everybody: refused or answered, and others are answered meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import heavy_bodies
import orjson
import pytest
from command_line import Provider
from gateways import Client, gateway, post, question, until
from heavy_bodies import MIB, SHAPES, attack, get, most_memory
from served_gateway import Served, gateway_process

from millstream.interfaces.gateway.metrics import OTHER, UNDECLARED_SHOWN
from millstream.interfaces.http.body_memory import LONG_BYTES, BodyMemory
from millstream.providers.llm.serve_bounds import MESSAGES_MAX, MODEL_NAME_MAX, VALUES_MAX, check_values
from millstream.providers.llm.serve_dialect import RequestRefusal

# How long others wait is measured here.
pytestmark = [pytest.mark.alone, pytest.mark.long]

# `make gateway`: ten bodies of nearly 16 MiB at once.
SIZE = int(float(os.environ.get("MILLSTREAM_BODY_MIB", "1")) * MIB)
COUNT = 10
STATUSES = {
    "a long model name": 404,
    "many messages": 413,
    "many parts": 413,
    "many tools": 413,
    "deep nesting": 413,
    "numbers": 413,
    "commas in a text": 200,
    "escapes in a text": 200,
    "a long text": 200,
    "a string without an end": 400,
}


@pytest.fixture(scope="module")
def served(running_provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running_provider.reset()  # what another file's last test has set holds no answer back here
    with gateway_process(tmp_path_factory.mktemp("gateway"), running_provider) as found:
        yield found


@pytest.mark.parametrize("shape", SHAPES)
def test_bodies_of_every_shape_hold_nobody_up_and_fill_no_memory(shape: str, served: Served) -> None:
    seen = attack(served, [SHAPES[shape](SIZE)] * COUNT)
    print(f"{shape:24} {seen.health_s * 1e3:5.0f} ms, busy {seen.busy_s * 1e3:4.0f} ms, {seen.memory >> 20:4} MiB")
    assert seen.statuses == {STATUSES[shape]: COUNT}
    assert seen.busy_s < 0.1 and seen.memory < 300 * MIB


def test_after_all_of_it_the_metrics_are_short_and_the_memory_is_given_back(served: Served) -> None:
    for number in range(30):
        attack(served, [heavy_bodies.SHAPES["a long text"](100)[:-1] + b" " * number + b"}"])
    assert len(get(served, "/metrics")) < 64 << 10
    assert most_memory(served) < 300 * MIB


# --- bounds ---


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}] * (MESSAGES_MAX + 1)}),
        ("/v1/responses", {"input": [{"role": "user", "content": "x"}] * (MESSAGES_MAX + 1)}),
        ("/v1/messages", {"messages": [{"role": "user", "content": "x"}] * (MESSAGES_MAX + 1), "max_tokens": 9}),
        ("/v1beta/models/open:generateContent", {"contents": [{"parts": [{"text": "x"}]}] * (MESSAGES_MAX + 1)}),
    ],
)
def test_too_many_messages_are_refused_in_every_dialect(path: str, body: dict[str, object], tmp_path: Path) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path) as both:
            answer = await post(both.port, {"model": "lab/open", **body}, path)
            assert answer.status == 413 and b"at most 10,000 are read" in answer.body

    asyncio.run(scenario())


def test_a_model_name_beyond_its_bound_is_unknown(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path) as both:
            for length, status in ((MODEL_NAME_MAX, 200), (MODEL_NAME_MAX + 1, 404)):
                name = "lab/open".ljust(length, "x") if status == 404 else "lab/open"
                answer = await post(both.port, question(model=name))
                assert answer.status == status
            assert b"has at most 200 characters, this one 201" in answer.body

    asyncio.run(scenario())


def test_models_that_nobody_declared_and_that_never_answered_share_one_series(tmp_path: Path) -> None:
    async def scenario() -> bytes:
        async with gateway(tmp_path) as both:
            for number in range(20):
                await post(both.port, question(model=f"lab/no-such-{number}"))
            assert UNDECLARED_SHOWN < 100
            async with Client(both.port) as client:
                client.send(b"GET /metrics HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % both.port)
                return (await client.answer()).body

    page = asyncio.run(scenario())
    assert b'model="' + OTHER.encode() in page and b"no-such" not in page


@pytest.mark.parametrize(
    ("body", "is_refused"),
    [
        (b"[" + b"1," * VALUES_MAX + b"1]", True),
        (b"[" + b"{}," * (VALUES_MAX // 2 + 1) + b"1]", True),
        (orjson.dumps(["a,[{\\" * VALUES_MAX]), False),
        (orjson.dumps(['"' * VALUES_MAX + "," * VALUES_MAX]), False),
        (orjson.dumps(["a,b"] * (VALUES_MAX - 2)), False),
        (orjson.dumps(["a,b"] * (VALUES_MAX + 2)), True),
        (b'["' + b'\\"' * VALUES_MAX + b",," * VALUES_MAX, False),
        (b'["' + b"," * 2 * VALUES_MAX + b"\\", False),
    ],
    ids=range(8),
)
def test_values_are_counted_outside_of_texts_alone(body: bytes, is_refused: bool) -> None:
    try:
        check_values(body)
    except RequestRefusal as refused:
        assert is_refused and refused.problem.status == 413
    else:
        assert not is_refused


def test_counting_takes_time_in_proportion_to_the_body() -> None:
    """However its quotes and escapes stand."""
    for pattern in (b'\\"', b'"', b'",', b"\\,", b'"\\,'):
        body = b'"' + pattern * (MIB // len(pattern)) + b"," * VALUES_MAX
        began = time.process_time()
        with contextlib.suppress(RequestRefusal):
            check_values(body)
        assert time.process_time() - began < 2


# --- the room for long bodies ---


SHARES = (("a", 60), ("b", 60), ("c", 10))


def test_long_bodies_get_their_room_in_turn_and_give_it_back() -> None:
    room = BodyMemory(100)
    granted: list[str] = []
    first, second, third = (room.enter(size, partial(granted.append, name)) for name, size in SHARES)
    assert granted == ["a"] and not third.is_granted  # nobody overtakes
    first.shrink(20)
    assert granted == ["a", "b", "c"]
    second.release()
    third.release()
    first.release()
    assert repr(room) == "<BodyMemory [0 of 100 bytes taken, 0 waiting]>"


def test_one_body_larger_than_the_room_is_let_in_alone() -> None:
    room = BodyMemory(100)
    large, small = room.enter(500, lambda: None), room.enter(1, lambda: None)
    assert large.is_granted and not small.is_granted
    large.release()
    assert small.is_granted


def test_who_leaves_while_waiting_takes_no_room(tmp_path: Path) -> None:
    async def scenario() -> str:
        async with gateway(tmp_path) as both:
            room = both.running.listener.connections.room
            taken = room.enter(1 << 30, lambda: None)
            async with Client(both.port) as client:
                client.post(question("x" * 2 * LONG_BYTES))
                await until(lambda: "1 waiting" in repr(room))
            # Nobody reads what it sends, so its leaving is seen when its turn has come.
            taken.release()
            answer = await post(both.port, question("x" * 2 * LONG_BYTES))
            assert answer.status == 200
            await until(lambda: "[0 of" in repr(room))
            return repr(room)

    assert "[0 of" in asyncio.run(scenario())
