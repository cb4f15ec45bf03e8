"""A gateway before a hand-written model's server, and what its callers see of it over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from chat_server import INPUT, MODEL, OUTPUT, PRICE, QUICK, Asked, ChatServer, Script, settings_for
from gateways import Answer, Client, get, post

import millstream as ms
from millstream.configuration.gateway_settings import CallerSettings, GatewaySettings
from millstream.interfaces.gateway.serving import RunningGateway, ServeOptions

# The callers' tokens.
ANN, BOB = "token-of-ann", "token-of-bob"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


class ChatGateway:
    """What a client does with the gateway at `port`, whose models answer at `server`."""

    def __init__(self, port: int, server: ChatServer) -> None:
        self.port = port
        self.server = server

    async def ask(self, prompt: str, token: str = ANN, *, stream: bool = False, trial: int = 0) -> Answer:
        """Posts one question on a connection of its own."""
        headers = {"Authorization": f"Bearer {token}", "X_Millstream_Trial": str(trial)}
        return await post(self.port, question(prompt, stream=stream), **headers)

    @asynccontextmanager
    async def asking(self, prompt: str, token: str = ANN, *, stream: bool = False) -> AsyncIterator[Client]:
        """A client that has posted a question and hangs up at the end."""
        async with Client(self.port) as client:
            headers = {"Authorization": f"Bearer {token}", "X-Millstream-Trial": "0"}
            client.post(question(prompt, stream=stream), headers=headers)
            yield client

    async def left(self, name: str = "ann") -> float:
        """Dollars that a caller has left."""
        return await self._metric(f'millstream_caller_dollars_left{{caller="{name}"}}')

    async def in_flight(self) -> float:
        """Calls of the model that are out."""
        return await self._metric(f'millstream_lane_in_flight{{model="{MODEL}"}}')

    async def _metric(self, name: str) -> float:
        told = (await get(self.port, "/metrics", Authorization=f"Bearer {BOB}")).body.decode()
        (value,) = re.findall(rf"^{re.escape(name)} (\S+)$", told, re.MULTILINE)
        return float(value)


def question(prompt: str, *, stream: bool = False) -> dict[str, Any]:
    messages = [{"role": "user", "content": prompt}]
    return {"model": MODEL, "messages": messages, "max_tokens": 20, "stream": stream}


@asynccontextmanager
async def chat_gateway(
    folder: Path, script: Script = lambda asked: None, *lanes: ms.Lane, **bounds: Any
) -> AsyncIterator[ChatGateway]:
    """The gateway for two callers: ann, within some bounds (`max_cost`, `rpm`, `concurrency`), and bob without."""
    callers = CallerSettings("ann", "ANN", **bounds), CallerSettings("bob", "BOB")
    environment = {"LAB_KEY": "sk-lab-0123456789", "ANN": ANN, "BOB": BOB}
    async with ChatServer(script) as server:
        made = settings_for(
            server.base_url, folder, *lanes, environment=environment, prices={MODEL: PRICE}, policy=QUICK
        )
        place = ServeOptions("127.0.0.1", 0)
        async with RunningGateway(made, GatewaySettings(callers=callers), place) as running:
            yield ChatGateway(running.port, server)


def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """One event of a streamed answer."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode() + b"\n\n"


class Speech:
    """A streamed answer, of which each piece is sent when it is said."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    def say(self, *pieces: str) -> None:
        for piece in pieces:
            self._lines.put_nowait(event({"content": piece}))

    def end(self) -> None:
        """Makes the answer whole."""
        usage = {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}
        last = json.dumps({"id": "c", "model": "m", "choices": [], "usage": usage}).encode()
        self._lines.put_nowait(event({}, "stop") + b"data: " + last + b"\n\ndata: [DONE]\n\n")
        self.cut()

    def cut(self) -> None:
        """Ends the connection."""
        self._lines.put_nowait(None)

    async def step(self, asked: Asked) -> bool:
        """Answers a request with it."""
        await asked.visit.send(STREAM_HEAD)
        leaving = asyncio.ensure_future(asked.visit.hung_up())
        try:
            while True:
                line = asyncio.ensure_future(self._lines.get())
                await asyncio.wait([line, leaving], return_when=asyncio.FIRST_COMPLETED)
                if not line.done():
                    line.cancel()
                    raise ConnectionResetError
                data = line.result()
                if data is None:
                    return False
                await asked.visit.send(data)
        finally:
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)


def texts_in(stream: bytes) -> list[str]:
    """The pieces of text in a streamed answer of the gateway."""
    events = (line.removeprefix(b"data: ") for line in stream.split(b"\n") if line.startswith(b"data: {"))
    choices = (json.loads(each).get("choices") or [{}] for each in events)
    return [piece for choice in choices if (piece := choice[0].get("delta", {}).get("content"))]
