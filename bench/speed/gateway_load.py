"""A raw client and a provider in one loop, so that of every request it is known what the two took and what lay between.

Both write bytes and read as many as are announced: what is measured is the server's time and hardly their own.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Iterator
from typing import cast

import orjson
from msgspec import Struct

from .server import answer

PROMPT_CHARS = 1_800
_ANSWER = answer()
_REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(_ANSWER), _ANSWER)


class Load(Struct, frozen=True):
    """`count` requests for `distinct` prompts; `trial` None: not said."""

    port: int
    count: int
    distinct: int
    at_once: int
    mark: str
    trial: int | None = None


class Measured(Struct, frozen=True):
    """Times of single requests in milliseconds, what the provider took not counted in."""

    seconds: float
    median_ms: float
    p99_ms: float
    cached: int


class Provider(asyncio.Protocol):
    """One connection. Answers after a time between the two in `delay_s`, and keeps how long it held each prompt."""

    def __init__(self, delay_s: list[float], held: dict[bytes, float]) -> None:
        self._delay_s = delay_s
        self._held = held
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's is one in all but its class.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        came = time.perf_counter()
        self._buffer += data
        head, end, body = self._buffer.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0) if end else 0
        if not end or len(body) < length:
            return
        self._buffer = b""
        delay_s = random.uniform(*self._delay_s)
        if delay_s:
            asyncio.get_running_loop().call_later(delay_s, self._answer, _prompt_in(body), came)
        else:
            self._answer(_prompt_in(body), came)

    def _answer(self, prompt: bytes, came: float) -> None:
        assert self._transport is not None
        self._transport.write(_REPLY)
        self._held[prompt] = time.perf_counter() - came


async def measure(load: Load, held: dict[bytes, float]) -> Measured:
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
            told = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(told.partition(b"content-length:")[2].partition(b"\r\n")[0]))
            seconds = time.perf_counter() - began
            if not told.startswith(b"http/1.1 200"):
                raise SystemExit(f"expected 200, got {told.decode(errors='replace')}")
            is_cached = b"x-millstream-cached: true" in told
            cached += is_cached
            took.append(seconds if is_cached else seconds - held.pop(_prompt_in(body)))
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(load.at_once)))
    seconds = time.perf_counter() - began
    took.sort()
    return Measured(seconds, 1e3 * statistics.median(took), 1e3 * took[int(0.99 * (len(took) - 1))], cached)


def _bodies(load: Load) -> Iterator[bytes]:
    filler = "arguments for and against " * 80
    for number in range(load.count):
        prompt = f"<{load.mark} {number % load.distinct}> {filler}"[:PROMPT_CHARS]
        yield orjson.dumps({"model": "openai/fixed", "messages": [{"role": "user", "content": prompt}]})


def _prompt_in(body: bytes) -> bytes:
    return body.partition(b"<")[2].partition(b">")[0]
