"""Searches through a whole engine, over real sockets: cache and documented lanes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from endpoints import CANARY
from recorder import Recorder, recording
from search_shapes import ROWS, body

from millstream import Call, Engine, Lane, Settings
from millstream.engine.attempts.retry import RetryPolicy
from millstream.providers.search.table import ENGINES

POLICY = RetryPolicy(
    attempts_max=3, wait_min_s=0.002, wait_max_s=0.004, patience_s=1.0, probe_every_s=0.01, breaker_failures=1_000
)
in_each = pytest.mark.parametrize("name", ENGINES)


def settings(name: str, base_url: str, cache: Path, *lanes: Lane, **more: Any) -> Settings:
    row = ENGINES[name]
    environment = {row.url_variable: base_url}
    if row.key_variables:
        environment[row.key_variables[-1]] = CANARY
    if row.id_variable:
        environment[row.id_variable] = "cx-1"
    return Settings(lanes=lanes, cache=cache, policy=POLICY, environment=environment, **more)


@pytest.fixture
def server() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


@in_each
def test_a_search_is_paid_once_and_then_comes_from_the_cache(server: Recorder, name: str, tmp_path: Path) -> None:
    server.answer = body(name, has_more=False)
    given = settings(name, server.origin, tmp_path)

    async def run() -> tuple[Any, Any]:
        async with Engine(settings=given) as engine:
            model = f"search/{name}"
            return await engine.search(model, "blue whale"), await engine.search(model, "blue whale")

    first, again = asyncio.run(run())
    sent = len(server.sent)
    assert sent == (2 if name in ("serper", "searxng") else 1)
    assert (first.cached, again.cached, again.hits, again.keys) == (False, True, first.hits, first.keys)
    assert [hit.url for hit in first.hits] == [row["url"] for row in ROWS]
    assert first.cost == pytest.approx(sent * ENGINES[name].dollars_per_1000 / 1000)
    assert CANARY.encode() not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_an_engines_documented_second_is_kept(server: Recorder, tmp_path: Path) -> None:
    server.answer = body("exa")
    given = settings("exa", server.origin, tmp_path)
    calls = [Call("search/exa", f"whale {number}") for number in range(12)]

    async def run() -> float:
        async with Engine(settings=given) as engine:
            began = time.perf_counter()
            assert {outcome.status async for outcome in engine.run(calls)} == {"ok"}
            return time.perf_counter() - began

    assert asyncio.run(run()) >= 11 * 1.0 / 10
