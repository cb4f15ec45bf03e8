"""The compared clients, each run in a process of its own: `python -m … NAME URL COUNT`.

Every client sends the same distinct bodies with 256 calls in flight and prints one line of JSON: calls a second and CPU
seconds. The reference is a bare loop of aiohttp, uvloop and orjson.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import aiohttp
import orjson
import uvloop

from ..engine.attempts.estimate import TokenEstimate
from ..engine.attempts.money import CostBudget
from ..engine.attempts.retry import RetryPolicy
from ..engine.call import Call, Outcome
from ..engine.collector import calm_collector
from ..engine.endpoint import Endpoint
from ..engine.events import Event, Events
from ..engine.lane import Lane
from ..engine.lanes.key_gate import KeyGate
from ..engine.lanes.lane_queue import LaneQueue
from ..engine.lanes.ledger import Ledger
from ..engine.limits import declared_quota
from ..engine.run import run_calls
from ..engine.runs.run_folder import RunFolder
from ..engine.scheduler import Route, Scheduler
from ..engine.store.cache import Cache
from ..engine.store.leases import FolderLeases
from ..providers.credentials.authorizer import bearer
from ..providers.llm.openai.chat import PROTOCOL
from ..providers.llm.protocol import Target
from ..providers.transport.endpoint import ModelEndpoint
from ..providers.transport.transport import Transport

IN_FLIGHT = 256
PROMPT_CHARS = 1800
MODEL = "openai/fixed"
# High enough never to hold the lane back; declared, so that limiter, ledger and reservations all work.
RPM = 6_000_000.0
TPM = 6_000_000_000.0


def prompts(count: int) -> Iterator[str]:
    filler = "arguments for and against " * 80
    return (f"{number} {filler}"[:PROMPT_CHARS] for number in range(count))


async def bare(url: str, count: int) -> None:
    """Sends the calls with as little code as these libraries allow."""
    waiting = prompts(count)

    async def work(session: aiohttp.ClientSession) -> None:
        for prompt in waiting:
            body = {"model": "fixed", "messages": [{"role": "user", "content": prompt}]}
            async with session.post(f"{url}/chat/completions", data=orjson.dumps(body), headers=headers) as response:
                orjson.loads(await response.read())

    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(work(session) for _ in range(IN_FLIGHT)))


async def engine(url: str, count: int) -> None:
    """Sends the calls with all parts of the engine: key, cache, limiter, shared ledger, tokens, events, retries,
    journal."""
    told = 0

    def listen(event: Event) -> None:
        nonlocal told
        told += 1

    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as name:
        folder = Path(name)
        with calm_collector(), RunFolder(folder / "run", {"benchmark": "speed"}) as run_folder:
            transport = Transport()
            target = Target(url, url, "fixed")
            scheduler = build(lambda: ModelEndpoint(PROTOCOL, target, bearer("none"), transport, 600.0), folder)
            scheduler.events.subscribe(listen)
            calls = (Call(MODEL, prompt, tag=number) for number, prompt in enumerate(prompts(count)))
            answered = 0
            async for outcome in run_calls(scheduler, calls, run_folder.sink(row)):
                answered += outcome.reply is not None
            await transport.close()
            scheduler.cache.close()
        if answered != count or run_folder.records.lines != count or told < 2 * count:
            raise SystemExit(f"{answered} of {count} answered, {run_folder.records.lines} journalled")


def build(endpoint: Callable[[], Endpoint], folder: Path) -> Scheduler:
    """Returns a complete engine over an endpoint."""
    events, purse, policy = Events(), CostBudget(), RetryPolicy()

    def route(model: str) -> Route:
        lane = Lane(model, rpm=RPM, tpm=TPM, concurrency=IN_FLIGHT)
        ledger = Ledger(declared_quota(lane), folder / "lanes" / "lane.ledger")
        key = KeyGate(lane, ledger=ledger, purse=purse, policy=policy, events=events)
        return Route((endpoint(),), LaneQueue([key], purse=purse, events=events), None, TokenEstimate())

    cache = Cache(folder / "cache")
    leases = FolderLeases(cache.folder)
    return Scheduler(
        route, cache=cache, mode="record", policy=policy, events=events, random=random.Random(1), leases=leases
    )


def row(outcome: Outcome) -> bytes:
    reply, usage = outcome.reply, outcome.reply.usage if outcome.reply is not None else None
    return orjson.dumps(
        {
            "id": str(outcome.call.tag),
            "model": outcome.call.model,
            "status": outcome.status,
            "text": reply.text if reply is not None else None,
            "usage": {"input": usage.input, "output": usage.output} if usage is not None else None,
            "cached": outcome.cached,
            "attempts": outcome.attempts,
            "latency_ms": outcome.latency_ms,
            "key": outcome.key,
        }
    )


CLIENTS: dict[str, Callable[[str, int], Awaitable[None]]] = {"bare": bare, "engine": engine}


def main() -> int:
    name, url, count = sys.argv[1], sys.argv[2], int(sys.argv[3])

    async def measured() -> None:
        await CLIENTS[name](url, count)

    began, cpu = time.perf_counter(), time.process_time()
    uvloop.run(measured())
    seconds = time.perf_counter() - began
    report = {"calls_a_second": count / seconds, "cpu_s": time.process_time() - cpu, "pid": os.getpid()}
    sys.stdout.buffer.write(orjson.dumps(report) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
