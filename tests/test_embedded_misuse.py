"""The engine inside a program that holds it wrongly, or whose own code raises: one clear line, and nothing lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from command_line import Provider, run_program
from loops import on_each_loop, run_on

import millstream as ms

M = "openai/open"
OTHER_LOOP = "the engine was opened in another event loop"


def calls(count: int) -> Iterator[ms.Call]:
    return (ms.Call(M, f"Is {number} odd?", tag=number) for number in range(count))


# Loops


@on_each_loop
def test_another_loop_is_told_to_open_its_own_and_the_first_goes_on(
    loop: str, provider: Provider, tmp_path: Path
) -> None:
    async def elsewhere(engine: ms.Engine) -> None:
        call = ms.Call(M, "A or B?")
        for use in (engine.ask(call), engine.read("http://127.0.0.1/"), engine.__aexit__(None, None, None)):
            with pytest.raises(RuntimeError, match=OTHER_LOOP):
                await use
        with pytest.raises(RuntimeError, match=OTHER_LOOP):
            engine.run([call])

    async def main() -> None:
        async with ms.Engine(base_url=provider.base_url, cache=tmp_path) as engine:
            await asyncio.to_thread(lambda: asyncio.run(elsewhere(engine)))
            assert (await engine.ask(ms.Call(M, "B or A?"))).status == "ok"

    run_on(loop, main())
    assert provider.calls() == 1


def test_an_engine_whose_loop_has_ended_is_closed_from_another_and_opened_again(
    provider: Provider, tmp_path: Path
) -> None:
    engine = ms.Engine(base_url=provider.base_url, cache=tmp_path)
    call = ms.Call(M, "A or B?")

    async def later() -> bool:
        with pytest.raises(RuntimeError, match=OTHER_LOOP):
            await engine.ask(call)
        await engine.__aexit__(None, None, None)
        async with engine:
            return (await engine.ask(call)).cached

    asyncio.run(engine.__aenter__())
    assert not asyncio.run(later())


def test_an_engine_is_opened_once_at_a_time(provider: Provider, tmp_path: Path) -> None:
    async def main() -> None:
        async with ms.Engine(base_url=provider.base_url, cache=tmp_path) as engine:
            with pytest.raises(RuntimeError, match="the engine is open already"):
                await engine.__aenter__()
            assert (await engine.ask(ms.Call(M, "A or B?"))).status == "ok"

    asyncio.run(main())


def test_a_place_without_a_loop_is_told_of_the_engine_that_needs_none(tmp_path: Path) -> None:
    opening = ms.Engine(cache=tmp_path).__aenter__()
    with pytest.raises(RuntimeError, match=r"no loop of asyncio is running here: .* use SyncEngine"):
        opening.send(None)


# Calls that are none


def test_what_is_no_call_is_named_for_what_it_is(provider: Provider, tmp_path: Path) -> None:
    with ms.SyncEngine(base_url=provider.base_url, cache=tmp_path) as engine:
        with pytest.raises(TypeError, match=r"^expected a millstream\.Call, got a str$"):
            engine.ask(cast(Any, "A or B?"))
        seen = []
        with pytest.raises(TypeError, match=r"^calls must be millstream\.Call, got a dict$"):
            for outcome in engine.run(cast(Any, [*calls(5), {}])):
                seen.append(outcome)
        assert len(seen) == 5


# Errors of the program's own code


@pytest.mark.parametrize("error", [ValueError("deaf"), SystemExit(3), KeyboardInterrupt()])
def test_what_a_listener_raises_is_raised_once_and_its_answer_is_paid_for_once(
    error: BaseException, provider: Provider, tmp_path: Path
) -> None:
    call = ms.Call(M, "Tell me a story.", stream=True)
    heard: list[str | None] = []

    def hear(piece: str | None) -> None:
        heard.append(piece)
        if piece is not None:
            raise error

    with ms.SyncEngine(base_url=provider.base_url, cache=tmp_path) as engine:
        with pytest.raises(type(error)):
            engine.ask(call, hear=hear)
        assert engine.statistics().in_flight == 0
        assert engine.ask(call).status == "ok"
    assert len(heard) == 2 and provider.calls() == 1


class RaisingSink:
    """A caller's sink that raises at its third outcome."""

    fault = None

    def __init__(self, error: BaseException) -> None:
        self._error = error
        self._written = 0

    def write(self, outcome: ms.Outcome) -> None:
        self._written += 1
        if self._written == 3:
            raise self._error

    def flush(self) -> None: ...


@pytest.mark.parametrize("error", [ValueError("full"), SystemExit(3), KeyboardInterrupt()])
def test_what_a_sink_raises_ends_its_own_run_alone(error: BaseException, provider: Provider, tmp_path: Path) -> None:
    with ms.SyncEngine(base_url=provider.base_url, cache=tmp_path) as engine:
        with pytest.raises(type(error)):
            list(engine.run(calls(5), RaisingSink(error)))
        assert engine.ask(ms.Call(M, "And now?")).status == "ok"
        assert len(list(engine.run(calls(5)))) == 5


# Programs that end with an engine open

LEFT_OPEN = {
    "a run": "outcomes = engine.run(ms.Call('openai/open', f'{n}?') for n in range(10_000))\nnext(outcomes)\n",
    "a page": "print(engine.read(sys.argv[1] + '/models').status)\n",
}


@pytest.mark.parametrize("left", LEFT_OPEN)
def test_a_program_that_ends_with_an_engine_open_ends_without_a_word(
    left: str, provider: Provider, tmp_path: Path
) -> None:
    program = (
        "import sys, millstream as ms\n"
        "settings = ms.Settings(base_url=sys.argv[1], cache='cache', allow_hosts=('127.0.0.1',))\n"
        f"engine = ms.SyncEngine(settings=settings)\nengine.__enter__()\n{LEFT_OPEN[left]}"
    )
    done = run_program(tmp_path, program, provider.base_url, flags=("-W", "error"))
    assert (done.code, done.err) == (0, "")


def test_a_fork_in_a_loop_is_told_to_open_its_own(provider: Provider, tmp_path: Path) -> None:
    program = (
        "import asyncio, os, sys, millstream as ms\n"
        "async def main():\n"
        "    async with ms.Engine(base_url=sys.argv[1], cache='cache') as engine:\n"
        "        call = ms.Call('openai/open', 'A or B?')\n"
        "        if (child := os.fork()) == 0:\n"
        "            try:\n"
        "                engine.ask(call).send(None)\n"
        "            except RuntimeError as error:\n"
        "                print(error, flush=True)\n"
        "            os._exit(0)\n"
        "        print(os.waitpid(child, 0)[1], (await engine.ask(call)).status)\n"
        "asyncio.run(main())\n"
    )
    done = run_program(tmp_path, program, provider.base_url, flags=("-W", "ignore"))
    assert (done.code, done.err) == (0, "")
    told, parent = done.out.splitlines()
    assert told.startswith("the engine was opened in process ") and told.endswith("open one in this process")
    assert parent == "0 ok"


def test_a_model_name_in_place_of_a_lane_is_refused_with_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"^expected a millstream\.Lane, such as Lane\('openai/open'\), got a str$"):
        ms.Engine("openai/open")  # type: ignore[arg-type]
