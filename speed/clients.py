"""The compared clients, each run in a process of its own: `python -m … URL COUNT NAME [IN_FLIGHT]`.

`bare` is a loop of aiohttp, uvloop and orjson; `engine` is `ms.Engine` as a program uses it, everything on. Both send
the floor's prompts with as many calls in flight, or with IN_FLIGHT. Prints one line of JSON, with the anonymous memory
at the end: mapped pages of the cache's file don't count.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Self

import aiohttp
import orjson
import uvloop

from ..engine.call import Call, Outcome
from ..engine.events import Event
from ..engine.fault import LocalFault
from ..engine.lane import Lane
from ..wiring.engine import Engine
from .floor import IN_FLIGHT, PROMPT_CHARS
from .watched import memory_kib

MODEL = "openai/fixed"
# High enough never to hold the lane back; declared, so that limiter, ledger and reservations all work.
RPM = 6_000_000
TPM = 6_000_000_000


def prompts(count: int) -> Iterator[str]:
    filler = "arguments for and against " * 80
    return (f"{number} {filler}"[:PROMPT_CHARS] for number in range(count))


def calls_of(count: int) -> Iterator[Call]:
    return (Call(MODEL, prompt, tag=number) for number, prompt in enumerate(prompts(count)))


async def bare(url: str, count: int, in_flight: int) -> dict[str, float]:
    """Sends the calls with as little code as these libraries allow."""
    waiting = prompts(count)

    async def work(session: aiohttp.ClientSession) -> None:
        for prompt in waiting:
            body = {"model": "fixed", "messages": [{"role": "user", "content": prompt}]}
            async with session.post(f"{url}/chat/completions", data=orjson.dumps(body), headers=headers) as response:
                orjson.loads(await response.read())

    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(work(session) for _ in range(in_flight)))
    return {}


class Program:
    """A user's program around an engine: a declared quota, a cache folder, a sink of JSON lines and a listener."""

    fault: LocalFault | None = None

    def __init__(self, url: str, folder: Path, in_flight: int = IN_FLIGHT) -> None:
        lane = Lane(MODEL, rpm=RPM, tpm=TPM, concurrency=in_flight)
        self.engine = Engine(lane, base_url=url, cache=folder / "cache")
        self.engine.events.subscribe(self._listen)
        self.events = self.rows = 0
        self._file = (folder / "rows.jsonl").open("ab", buffering=1 << 18)

    async def __aenter__(self) -> Self:
        await self.engine.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.engine.__aexit__(*error)
        self._file.close()

    def _listen(self, event: Event) -> None:
        self.events += 1

    def write(self, outcome: Outcome) -> None:
        self._file.write(row(outcome))
        self.rows += outcome.reply is not None

    def flush(self) -> None:
        self._file.flush()


async def engine(url: str, count: int, in_flight: int) -> dict[str, float]:
    """Sends the calls with `ms.Engine`. Returns the microseconds of CPU a call of the first and of the last tenth; the
    calls in flight at the beginning, which open connections, count in neither."""
    tenth, cpu_s = count // 10, dict[int, float]()
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as name:
        program = Program(url, Path(name), in_flight)
        answered = 0
        async with program:
            async for outcome in program.engine.run(calls_of(count), program):
                answered += outcome.reply is not None
                if answered in (in_flight, in_flight + tenth, count - tenth, count):
                    cpu_s[answered] = time.process_time()
        if answered != count or program.rows != count or program.events < 2 * count:
            raise SystemExit(f"{answered} of {count} answered, {program.rows} written, {program.events} events")
    if count <= in_flight + 2 * tenth:
        return {}
    first, last = cpu_s[in_flight + tenth] - cpu_s[in_flight], cpu_s[count] - cpu_s[count - tenth]
    return {"first_us": 1e6 * first / tenth, "last_us": 1e6 * last / tenth}


def row(outcome: Outcome) -> bytes:
    reply, usage = outcome.reply, outcome.reply.usage if outcome.reply is not None else None
    fields = {
        "id": outcome.call.tag,
        "key": outcome.key,
        "status": outcome.status,
        "text": reply.text if reply is not None else None,
        "usage": {"input": usage.input, "output": usage.output} if usage is not None else None,
        "cached": outcome.cached,
        "attempts": outcome.attempts,
        "latency_ms": outcome.latency_ms,
    }
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


CLIENTS: dict[str, Callable[[str, int, int], Coroutine[Any, Any, dict[str, float]]]] = {"bare": bare, "engine": engine}


if __name__ == "__main__":
    url, count, name, *in_flight = sys.argv[1:]
    printed = uvloop.run(CLIENTS[name](url, int(count), int(in_flight[0]) if in_flight else IN_FLIGHT))
    sys.stdout.buffer.write(orjson.dumps({**printed, "anonymous_kib": memory_kib("RssAnon")}))
