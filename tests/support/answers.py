"""Answers by number, for tests of what keeps them: a cache filled, read back, or handled by a process apart."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from millstream.engine.endpoint import Request, Response
from millstream.engine.store.cache import Cache


def key_of(number: int) -> bytes:
    return b"%032d" % number


def request_of(number: int) -> Request:
    return Request("script://", "script://", b"b", b"b", b"prompt %d" % number, b"{}")


def body_of(number: int) -> bytes:
    """Every fifth is long enough to lie on pages of its own."""
    return b"answer %d " % number * (2_000 if number % 5 == 0 else 20)


def put(
    cache: Cache, key: bytes, request: Request, sample: int, response: Response, *, is_last: bool = True
) -> asyncio.Future[None]:
    """Stores an answer; the future ends as that does."""
    stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done(error: BaseException | None) -> None:
        if not stored.done():
            stored.set_result(None) if error is None else stored.set_exception(error)

    cache.put(key, request, sample, response, done, is_last=is_last)
    return stored


async def fill(cache: Cache, numbers: range) -> None:
    puts = [put(cache, key_of(n), request_of(n), 0, Response(200, body_of(n), latency_ms=1.5)) for n in numbers]
    await asyncio.gather(*puts)


def filled(folder: Path, count: int, scope: bytes = b"") -> Path:
    cache = Cache(folder, scope=scope)
    asyncio.run(fill(cache, range(count)))
    cache.close()
    return folder


def found_in(folder: Path, count: int) -> list[bytes | None]:
    cache = Cache(folder)
    try:
        entries = [cache.get(key_of(n)) for n in range(count)]
        return [None if entry is None else entry.response.body for entry in entries]
    finally:
        cache.close()


def run_apart(program: str, *arguments: object) -> subprocess.Popen[str]:
    """A process of its own that can import what stands here: some of what is tested kills whoever does it."""
    paths = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).parent)])
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths})
