"""One hop to a host on loopback that says exactly what a test wants."""

from __future__ import annotations

from loops import run_on
from raw_server import Handler, RawServer, Visit

from millstream.engine.call import Call, Reply
from millstream.engine.endpoint import Fault, Response, SendError, send
from millstream.providers.pages.connections import PageConnections
from millstream.providers.pages.endpoint import PageEndpoint
from millstream.providers.pages.guard import Guard, parse_allowed


def endpoint(port: int, timeout_s: float = 5.0) -> PageEndpoint:
    return PageEndpoint(PageConnections(Guard((parse_allowed(f"*.example=127.0.0.1:{port}"),))), timeout_s)


async def attempt(at: PageEndpoint, call: Call) -> tuple[Reply | Fault, Response | None]:
    try:
        response = await send(at, at.encode(call))
    except SendError as error:
        return error.fault, None
    return at.decode(response), response


def hop(
    handler: Handler, url: str = "http://a.example/x?y", timeout_s: float = 5.0, loop: str = "asyncio"
) -> tuple[Reply | Fault, Response | None]:
    async def visit() -> tuple[Reply | Fault, Response | None]:
        async with RawServer(handler) as server:
            return await attempt(endpoint(server.port, timeout_s), Call("web", url))

    return run_on(loop, visit())


def saying(data: bytes, heard: list[bytes] | None = None) -> Handler:
    async def handle(visit: Visit) -> None:
        request = await visit.request()
        if request is not None:
            if heard is not None:
                heard.append(request)
            await visit.send(data)

    return handle
