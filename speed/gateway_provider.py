"""A provider in a process of its own: `python -m millstream.speed.gateway_provider` prints its port.

It takes as long as a prompt asks for, and its answers contain how long they were held, to the microsecond.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import cast

import uvloop

from .server import answer

_MARK = b"took %07d us"
_ANSWER = answer().replace(b"position <<A>> ", _MARK % 0 + b" ", 1)
_HEAD, _, _TAIL = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(_ANSWER), _ANSWER)
).partition(_MARK % 0)


def prompt_of(mark: str, number: int, delay_s: tuple[float, float]) -> str:
    """Returns the beginning of a prompt: its identity, and the least and the longest time until its answer."""
    return f"<{mark} {number}|{delay_s[0]:g}|{delay_s[1]:g}>"


def held_s(body: bytes) -> float:
    """Returns how long the provider held a call, as its answer says."""
    return int(body.partition(b"took ")[2][:7]) / 1e6


class ProviderConnection(asyncio.Protocol):
    """The provider's side of one connection, which answers each request after the delay that it asks for."""

    def __init__(self) -> None:
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
        _, low, high = body.partition(b"<")[2].partition(b">")[0].split(b"|")
        delay_s = random.uniform(float(low), float(high))
        if delay_s:
            asyncio.get_running_loop().call_later(delay_s, self._answer, came)
        else:
            self._answer(came)

    def _answer(self, came: float) -> None:
        assert self._transport is not None
        held = _MARK % round(1e6 * (time.perf_counter() - came))
        self._transport.write(_HEAD + held + _TAIL)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(ProviderConnection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve())
