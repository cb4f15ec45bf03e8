"""Hosts of pages on loopback, names that lead where a test wants, sockets that tell where they were connected to."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from raw_server import Visit

from millstream.engine.call import Call, Failure, Outcome, PageResponse, Reply
from millstream.engine.endpoint import EncodeError, SendError, send
from millstream.providers.pages.connections import AddressInfo
from millstream.providers.pages.endpoint import PageEndpoint

PAGE = (
    "<html><head><title>A title</title></head><body><nav>menu</nav><article><h1>Heading</h1>"
    + "".join(
        f"<p>Paragraph number {number} says something of its own about ferries and islands.</p>" for number in range(9)
    )
    + "</article></body></html>"
).encode()


class Connected:
    """Makes sockets. `addresses`: everything that any of them was connected to. With `is_cut_off`, none reaches it."""

    def __init__(self, *, is_cut_off: bool = False) -> None:
        self.addresses: list[Any] = []
        self.made = 0
        self.is_cut_off = is_cut_off

    def __call__(self, family: int, kind: int, protocol: int) -> socket.socket:
        self.made += 1
        return _Socket(self, family, kind, protocol)


class _Socket(socket.socket):
    def __init__(self, told: Connected, family: int, kind: int, protocol: int) -> None:
        super().__init__(family, kind, protocol)
        self._told = told

    def connect(self, address: Any) -> None:
        self._told.addresses.append(address)
        if self._told.is_cut_off:
            raise ConnectionRefusedError(111, "cut off by the test")
        super().connect(address)


def infos(port: int, *addresses: str) -> list[AddressInfo]:
    """What a resolver gives for these addresses."""
    found: list[AddressInfo] = []
    for address in addresses:
        if ":" in address:
            found.append((socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0)))
        else:
            found.append((socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)))
    return found


def leading_to(*addresses: str) -> Callable[[str, int], Awaitable[Sequence[AddressInfo]]]:
    """A resolver that answers every name with all of these."""

    async def resolve(host: str, port: int) -> Sequence[AddressInfo]:
        return infos(port, *addresses)

    return resolve


def http(body: bytes = b"", *headers: str, status: int = 200) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def serving(pages: dict[str, bytes], asked: list[str] | None = None) -> Callable[[Visit], Awaitable[None]]:
    """A handler: `pages` are whole answers by host and path; anything else is a 404."""

    async def handle(visit: Visit) -> None:
        request = await visit.request()
        if request is None:
            return
        lines = request.decode("latin-1").split("\r\n")
        host = next(line[6:] for line in lines if line.startswith("Host: "))
        place = host + lines[0].split(" ")[1]
        if asked is not None:
            asked.append(place)
        await visit.send(pages.get(place, http(status=404)))

    return handle


def over(endpoint: PageEndpoint) -> Callable[[Call], Awaitable[Outcome]]:
    """`ask` without an engine: one attempt a call."""

    async def ask(call: Call) -> Outcome:
        try:
            request = endpoint.encode(call)
        except EncodeError as error:
            return Outcome(call, failure=Failure("rejected", str(error)))
        key = request.url.encode().hex()
        try:
            response = await send(endpoint, request)
        except SendError as error:
            return Outcome(call, failure=Failure(error.fault.kind, error.fault.detail, error.fault.status), key=key)
        result = endpoint.decode(response)
        if isinstance(result, Reply):
            return Outcome(call, reply=result, key=key, attempts=1, latency_ms=response.latency_ms)
        return Outcome(call, failure=Failure(result.kind, result.detail, result.status), key=key, attempts=1)

    return ask


def redirect_to(call: Call, location: str) -> Outcome:
    fetched = PageResponse(302, "", "", location, b"")
    return Outcome(call, reply=Reply("", raw_hash="00" * 32, fetched=fetched), key="aa", attempts=1, latency_ms=1.0)


class Kept:
    """What was made of bodies, in memory."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}

    def derived(self, key: bytes) -> bytes | None:
        return self.values.get(key)

    def keep(self, key: bytes, value: bytes) -> None:
        self.values[key] = value
