"""Searches through a whole engine, over real sockets: faults to their end, cache, documented lanes, the corpus."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from endpoints import CANARY
from raw_server import RawServer, Visit, http
from recorder import Recorder, recording
from search_shapes import ERRORS, ROWS, Error, body, searxng

from millstream import Call, Engine, Lane, Outcome, Settings, Stopped
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


def ask(given: Settings, *calls: Call) -> list[Outcome]:
    async def run() -> list[Outcome]:
        async with Engine(settings=given) as engine:
            return [await engine.ask(call) for call in calls]

    return asyncio.run(asyncio.wait_for(run(), 30))


@pytest.fixture
def server() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


SENT = {"never": 1, "stop": 1, "confirm": 2, "retry": 3, "throttle": 3}


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: f"{error.engine}: {error.name}")
def test_an_error_is_carried_to_the_end_that_its_table_has_for_it(
    server: Recorder, tmp_path: Path, error: Error
) -> None:
    server.status, server.answer = error.status, error.body
    # Declared so high that a cut of the rate costs no time.
    given = settings(error.engine, server.origin, tmp_path, Lane(f"search/{error.engine}", rpm=60_000))
    call = Call(f"search/{error.engine}", "whale")
    if error.action in ("stop", "confirm"):
        with pytest.raises(Stopped):
            ask(given, call)
    else:
        (outcome,) = ask(given, call)
        assert outcome.status == error.kind and outcome.reply is None
    assert len(server.sent) == SENT[error.action]


def test_what_searxngs_engines_failed_at_is_asked_again_and_found(tmp_path: Path) -> None:
    failed = json.dumps(searxng([], has_more=False, silent=[["bad", "timeout"]])).encode()
    answers = [http(failed), http(failed), http(body("searxng"))]

    async def serve(visit: Visit) -> None:
        while await visit.request() is not None:
            await visit.send(answers.pop(0))

    async def run() -> Outcome:
        async with RawServer(serve) as raw, Engine(settings=settings("searxng", raw.base_url, tmp_path)) as engine:
            return await engine.ask(Call("search/searxng", "whale"))

    outcome = asyncio.run(run())
    assert (outcome.status, outcome.attempts, outcome.maybe_billed) == ("ok", 3, 0)
    assert outcome.reply is not None and len(outcome.reply.hits) == len(ROWS)


async def _silence(visit: Visit) -> None:
    await visit.request()
    await visit.hung_up()


async def _hangs_up(visit: Visit) -> None:
    await visit.request()


def _always(data: bytes) -> Any:
    async def serve(visit: Visit) -> None:
        if await visit.request() is not None:
            await visit.send(data)

    return serve


@pytest.mark.parametrize("name", ["brave", "exa"])
@pytest.mark.parametrize(
    ("handler", "kind", "attempts", "maybe_billed"),
    [
        (_silence, "timeout", 3, 3),
        (_hangs_up, "disconnected", 3, 3),
        (_always(http(b'{"web":', length=400)), "incomplete", 3, 3),
        (_always(http(b'{"web": {"results": [')), "bad_json", 3, 3),
        (_always(http(b" " * (17 << 20))), "too_large", 1, 1),
    ],
    ids=["silence", "hung up", "cut off", "cut JSON", "too large"],
)
def test_a_broken_exchange_is_what_it_is_for_models(
    name: str, handler: Any, kind: str, attempts: int, maybe_billed: int, tmp_path: Path
) -> None:
    async def run() -> Outcome:
        lane = Lane(f"search/{name}", rpm=6_000, timeout_s=0.3)
        async with RawServer(handler) as raw, Engine(settings=settings(name, raw.base_url, tmp_path, lane)) as engine:
            return await engine.ask(Call(f"search/{name}", "whale"))

    outcome = asyncio.run(asyncio.wait_for(run(), 30))
    assert (outcome.status, outcome.attempts, outcome.maybe_billed) == (kind, attempts, maybe_billed)


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


def test_the_corpus_is_searched_and_read_without_a_network(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "whale.txt").write_text("Blue whale\n\nOf all the largest.")
    given = Settings(cache=tmp_path / "cache", environment={}, corpus=folder)

    async def run() -> tuple[Any, Outcome]:
        async with Engine(settings=given) as engine:
            found = await engine.search("search/corpus", "blue whale")
            return found, await engine.ask(Call("web", found.hits[0].url))

    found, page = asyncio.run(run())
    assert [(hit.url, hit.title) for hit in found.hits] == [("corpus:whale.txt", "Blue whale")]
    assert page.reply is not None and page.reply.fetched is not None
    assert page.reply.fetched.body == (folder / "whale.txt").read_bytes()
    (folder / "whale.txt").write_text("Blue whale\n\nChanged.")
    changed, _ = asyncio.run(run())
    assert set(changed.keys).isdisjoint(found.keys)
