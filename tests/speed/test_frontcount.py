"""What one call costs inside `ms.Engine`: its Python frames, tasks and futures, counted over a real socket."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from raw_server import RawServer, Visit, answer, http

from millstream.speed.frontcount import cost_of


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a server in a thread of its own, whose frames don't count."""

    async def handle(visit: Visit) -> None:
        is_new = True
        while await visit.request() is not None:
            if is_new:
                # All connections are opened while the program warms up, and none while its calls are counted.
                await asyncio.sleep(0.5)
                is_new = False
            await visit.send(http(answer("yes")))

    async def serve() -> None:
        async with RawServer(handle) as server:
            ports.append(server.port)
            is_ready.set()
            await asyncio.to_thread(is_over.wait)

    ports: list[int] = []
    is_ready, is_over = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert is_ready.wait(20)
    yield f"http://127.0.0.1:{ports[0]}/v1"
    is_over.set()
    thread.join()


# What is reached, and 5% more for frames.
@pytest.mark.parametrize(("verb", "frames", "tasks", "futures"), [("run", 90, 0, 0), ("ask", 97, 0, 1)])
def test_a_call_costs_no_more_frames_tasks_and_futures_than_before(
    url: str, verb: str, frames: float, tasks: float, futures: float
) -> None:
    # A busy machine gives each turn of the loop fewer calls to share its frames, so a count can only be too high.
    counts = (cost_of(verb, url) for _ in range(3))
    cost = next((cost for cost in counts if cost.frames <= frames), None) or cost_of(verb, url)
    assert 20 < cost.frames <= frames, cost.modules
    assert (round(cost.tasks), round(cost.futures)) == (tasks, futures)


def test_the_programs_own_frames_do_not_count(url: str) -> None:
    cost = cost_of("run", url)
    assert sum(cost.modules.values()) == pytest.approx(cost.frames)
    assert not [name for name in cost.modules if name.startswith("speed/")]
