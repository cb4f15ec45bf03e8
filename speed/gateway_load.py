"""A raw client of the gateway or the provider, which measures the time of requests minus the provider's own.

Writes and reads plain bytes, so that the measured time is the server's.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterator

import orjson
from msgspec import Struct

from .gateway_provider import held_s, prompt_of

PROMPT_CHARS = 1_800


class GatewayLoad(Struct, frozen=True):
    """`count` requests for `distinct` prompts, answered after `delay_s`, least and most; `trial` None: not sent."""

    port: int
    count: int
    distinct: int
    at_once: int
    mark: str
    delay_s: tuple[float, float] = (0.0, 0.0)
    trial: int | None = None


class GatewayTimes(Struct, frozen=True):
    """Times of single requests in milliseconds, without the provider's own time."""

    seconds: float
    median_ms: float
    p99_ms: float
    cached: int


async def measure(load: GatewayLoad) -> GatewayTimes:
    waiting, took, cached = _bodies(load), list[float](), 0
    trial = "" if load.trial is None else f"X-Millstream-Trial: {load.trial}\r\n"
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{load.port}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer none\r\n{trial}Content-Length: "
    ).encode()

    async def work() -> None:
        nonlocal cached
        reader, writer = await asyncio.open_connection("127.0.0.1", load.port)
        for body in waiting:
            began = time.perf_counter()
            writer.write(b"%b%d\r\n\r\n%b" % (head, len(body), body))
            header = (await reader.readuntil(b"\r\n\r\n")).lower()
            answer = await reader.readexactly(int(header.partition(b"content-length:")[2].partition(b"\r\n")[0]))
            seconds = time.perf_counter() - began
            if not header.startswith(b"http/1.1 200"):
                raise SystemExit(f"expected 200, got {header.decode(errors='replace')}")
            is_cached = b"x-millstream-cached: true" in header
            cached += is_cached
            took.append(seconds if is_cached else seconds - held_s(answer))
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(load.at_once)))
    seconds = time.perf_counter() - began
    took.sort()
    return GatewayTimes(seconds, 1e3 * statistics.median(took), 1e3 * took[int(0.99 * (len(took) - 1))], cached)


def _bodies(load: GatewayLoad) -> Iterator[bytes]:
    filler = "arguments for and against " * 80
    for number in range(load.count):
        prompt = f"{prompt_of(load.mark, number % load.distinct, load.delay_s)} {filler}"[:PROMPT_CHARS]
        yield orjson.dumps({"model": "openai/fixed", "messages": [{"role": "user", "content": prompt}]})
