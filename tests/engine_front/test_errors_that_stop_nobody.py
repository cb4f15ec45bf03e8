"""Errors of the program's own code: of listeners to events and of sinks, also those that end a program."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from chat_server import MODEL, PRICE, QUICK, Asked, ChatServer, Step, settings_for, status

import millstream as ms

END = (SystemExit(3), KeyboardInterrupt("k"), asyncio.CancelledError("c"))


def calls(count: int) -> list[ms.Call]:
    words = ("fine", "bad", "twice")
    return [ms.Call(MODEL, f"{number} {words[number % 3]}", max_tokens=20) for number in range(count)]


def script(asked: Asked) -> Step | None:
    """Refuses some prompts, and answers some only when they are repeated."""
    if "bad" in asked.prompt:
        return status(400)
    return status(500) if "twice" in asked.prompt and asked.number == 1 else None


async def raised_by_loop(wait: Any) -> list[BaseException]:
    """Awaits something, and returns what the loop had to report meanwhile."""
    loop, reported = asyncio.get_running_loop(), list[BaseException]()
    loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
    await asyncio.wait_for(wait, 10)
    await asyncio.sleep(0)
    return reported


@pytest.mark.parametrize("verb", ["run", "ask"])
@pytest.mark.parametrize("kind", ["sent", "answered", "retried", "failed", "waited", "spent", "cached"])
def test_what_a_listener_to_events_raises_stops_no_call(kind: str, verb: str, tmp_path: Path) -> None:
    seen: list[str] = []

    def listen(event: ms.Event) -> None:
        seen.append(event.kind)
        if event.kind == kind:
            raise ValueError(kind)

    async def send(engine: ms.Engine) -> None:
        asked = calls(12)
        if verb == "run":
            outcomes = [outcome async for outcome in engine.run([*asked, *asked[:1]])]
        else:
            outcomes = await asyncio.gather(*map(engine.ask, [*asked, *asked[:1]]))
        assert sorted(outcome.status for outcome in outcomes) == ["ok"] * 9 + ["rejected"] * 4
        assert (await engine.ask(asked[0])).cached

    async def main() -> None:
        async with ChatServer(script) as server:
            lane = ms.Lane(MODEL, concurrency=2)
            settings = settings_for(server.base_url, tmp_path, lane, policy=QUICK, max_cost=90.0, prices={MODEL: PRICE})
            async with ms.Engine(settings=settings) as engine:
                engine.events.subscribe(listen)
                reported = await raised_by_loop(send(engine))
                assert [str(error) for error in reported] == [kind] * seen.count(kind) != []
                assert (engine.statistics().in_flight, engine.statistics().lanes[0].queued) == (0, 0)

    asyncio.run(main())


@pytest.mark.parametrize("error", END, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("place", ["write", "flush"])
def test_a_sink_that_ends_a_program_ends_its_run_and_no_other(place: str, error: BaseException, tmp_path: Path) -> None:
    class Rows:
        fault: ms.LocalFault | None = None
        count = 0

        def _count(self, where: str) -> None:
            self.count += where == place
            if where == place and self.count == 2:
                raise error

        def write(self, outcome: ms.Outcome) -> None:
            self._count("write")

        def flush(self) -> None:
            self._count("flush")

    async def ended(engine: ms.Engine) -> BaseException | None:
        try:
            async for _ in engine.run((ms.Call(MODEL, f"{n}", max_tokens=20) for n in range(40)), Rows()):
                pass
        except BaseException as raised:  # noqa: BLE001 (looked at by the test)
            return raised
        return None

    async def main() -> None:
        async with (
            ChatServer() as server,
            ms.Engine(settings=settings_for(server.base_url, tmp_path, ms.Lane(MODEL))) as engine,
        ):
            assert await asyncio.wait_for(ended(engine), 10) is error
            assert (await engine.ask(ms.Call(MODEL, "still there?", max_tokens=20))).status == "ok"
            assert engine.statistics().in_flight == 0

    asyncio.run(main())
