"""A gateway in this process before a simulated provider, and a client that sends it exactly the bytes it is told to."""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import structs

from millstream import Settings
from millstream.configuration.gateway_settings import GatewaySettings
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.prices import Price
from millstream.fixtures.provider import ModelProvider, Options
from millstream.interfaces.gateway.serving import RunningGateway, ServeOptions
from millstream.providers.table import Provider

MODEL = "lab/open"
QUICK = RetryPolicy(attempts_max=3, wait_min_s=0.01, wait_max_s=0.05, patience_s=2.0, probe_every_s=0.05)
CHAT = "/v1/chat/completions"
# A dollar a million tokens makes sums easy to follow.
PRICE = Price(1.0, 1.0)
TOKEN, ANN, BOB = "token-of-the-gateway", "token-of-ann", "token-of-bob"


class Answer(NamedTuple):
    """What came back. Names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def is_cached(self) -> bool:
        return {"true": True, "false": False}[self.headers["x-millstream-cached"]]

    @property
    def trial(self) -> int:
        return int(self.headers["x-millstream-trial"])


class Client:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Client:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.hang_up()

    def hang_up(self) -> None:
        assert self._writer is not None
        self._writer.close()

    def send(self, data: bytes) -> None:
        assert self._writer is not None
        self._writer.write(data)

    def post(self, body: object, path: str = CHAT, headers: Mapping[str, str] | None = None) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = {"Host": f"127.0.0.1:{self.port}", "Content-Type": "application/json", **(headers or {})}
        self.send(request("POST", path, lines.items(), data))

    async def answer(self) -> Answer:
        assert self._reader is not None
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        status = int(first.split(" ")[1])
        if headers.get("transfer-encoding") == "chunked":
            return Answer(status, headers, await self._chunks())
        return Answer(status, headers, await self._reader.readexactly(int(headers.get("content-length", 0))))

    async def line(self) -> bytes:
        """The next line, of a stream that is still coming."""
        assert self._reader is not None
        return await self._reader.readline()

    async def _chunks(self) -> bytes:
        assert self._reader is not None
        body = b""
        while size := int(await self._reader.readline(), 16):
            body += await self._reader.readexactly(size)
            await self._reader.readline()
        await self._reader.readline()
        return body


def request(method: str, target: str, headers: Any, body: bytes = b"") -> bytes:
    """The bytes of a request; a length is told where there is a body."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


def question(text: str = "hello", **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], "max_tokens": 100, **more}


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """As on a full disk: what is written beyond fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that nobody tells."""
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(0.005)


async def post(port: int, body: object, path: str = CHAT, **headers: str) -> Answer:
    """One request on a connection of its own; `_` in the names of headers stands for `-`."""
    async with Client(port) as client:
        client.post(body, path, {name.replace("_", "-"): value for name, value in headers.items()})
        return await client.answer()


async def get(port: int, path: str, **headers: str) -> Answer:
    async with Client(port) as client:
        lines = {"Host": f"127.0.0.1:{port}", **{name.replace("_", "-"): value for name, value in headers.items()}}
        client.send(request("GET", path, lines.items()))
        return await client.answer()


def settings_to(base_url: str, folder: Path, **more: Any) -> Settings:
    """`lab` is the provider; a name stands for its address, so that another one finds what this one answered."""
    settings = Settings(
        providers={"lab": Provider(base_url, "LAB_KEY", identity="lab")},
        prices={MODEL: PRICE},
        cache=folder / "cache",
        environment={
            "LAB_KEY": "sk-lab",
            "TOKEN": TOKEN,
            "ANN": ANN,
            "BOB": BOB,
        },
        policy=QUICK,
    )
    return structs.replace(settings, **more)


@asynccontextmanager
async def gateway_before(
    base_url: str, folder: Path, gateway: GatewaySettings | None = None, *, is_counting: bool = True, **more: Any
) -> AsyncIterator[RunningGateway]:
    place = ServeOptions("127.0.0.1", 0, is_counting=is_counting)
    async with RunningGateway(settings_to(base_url, folder, **more), gateway or GatewaySettings(), place) as running:
        yield running


class Both(NamedTuple):
    """The gateway and what stands behind it."""

    running: RunningGateway
    provider: ModelProvider

    @property
    def port(self) -> int:
        return self.running.port

    @property
    def calls(self) -> int:
        """How many came to the provider."""
        return self.provider.log.total


@asynccontextmanager
async def gateway(
    folder: Path, settings: GatewaySettings | None = None, options: Options | None = None, **more: Any
) -> AsyncIterator[Both]:
    async with (
        ModelProvider(options or Options()) as provider,
        gateway_before(provider.base_url, folder, settings, **more) as running,
    ):
        yield Both(running, provider)
