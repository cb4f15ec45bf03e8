"""A model's server on a real socket, written by hand: it keeps what it was asked, and a script says each answer.

It lives in the test's own loop. Knows nothing of the program but the shape of a chat completion.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from raw_server import RawServer, Visit, http

import millstream as ms

MODEL = "lab/m"
# Every answer has 10 input and 5 output tokens, at ten cents each.
INPUT, OUTPUT, COST = 10, 5, 1.5
PRICE = ms.Price(1e5, 1e5)
# Repeats without long waits.
QUICK = ms.RetryPolicy(attempts_max=3, wait_min_s=0.001, wait_max_s=0.004, patience_s=5.0, probe_every_s=0.02)


class Asked(NamedTuple):
    """One request. `number` counts the requests with this prompt, from 1; `at` is the loop's time of its arrival."""

    visit: Visit
    prompt: str
    number: int
    is_streamed: bool
    key: str
    at: float


Step = Callable[[Asked], Awaitable[bool]]
"""Answers a request; returns whether the connection goes on."""
Script = Callable[[Asked], Step | None]
"""The step for a request; None: a sound answer."""


def text_to(prompt: str) -> str:
    """The text of a sound answer."""
    return f"answer to {prompt[:60]}"


def chat(text: str) -> bytes:
    """The body of a whole chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}
    return json.dumps({"id": "c", "model": "m", "choices": [choice], "usage": usage}).encode()


def sound_answer(prompt: str) -> bytes:
    """The bytes of a whole HTTP response."""
    return http(chat(text_to(prompt)))


async def sound_and_closed(asked: Asked) -> bool:
    """A sound answer, after which the connection ends."""
    await asked.visit.send(http(chat(text_to(asked.prompt)), "Connection: close"))
    return False


async def sound(asked: Asked) -> bool:
    await asked.visit.send(sound_answer(asked.prompt))
    return True


def status(http_status: int, message: str = "no", *headers: str, **error: Any) -> Step:
    """An error of the server."""

    async def step(asked: Asked) -> bool:
        body = json.dumps({"error": {"message": message, **error}}).encode()
        await asked.visit.send(http(body, *headers, status=f"{http_status} Told"))
        return True

    return step


def held(until: asyncio.Event, *, sent: int = 0) -> Step:
    """A sound answer, of which the first `sent` bytes go out at once and the rest when the event is set; nothing more
    if the client hangs up first."""

    async def step(asked: Asked) -> bool:
        answer = sound_answer(asked.prompt)
        if sent:
            await asked.visit.send(answer[:sent])
        waits = [asyncio.ensure_future(wait) for wait in (until.wait(), asked.visit.hung_up())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if not waits[0].done():
                raise ConnectionResetError
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        await asked.visit.send(answer[sent:])
        return True

    return step


def cut(sent: int) -> Step:
    """The first `sent` bytes of a sound answer; of a negative number all but so many. Then the connection ends."""

    async def step(asked: Asked) -> bool:
        await asked.visit.send(sound_answer(asked.prompt)[:sent])
        return False

    return step


class ChatServer(RawServer):
    """Answers chat completions by a script. `lost` are the prompts whose client hung up before it had its answer. While
    `ear` is not set, it reads no further request."""

    def __init__(self, script: Script = lambda asked: None, *, latency_s: float = 0.0) -> None:
        super().__init__(self._talk)
        self.script = script
        self.latency_s = latency_s
        self.ear = asyncio.Event()
        self.ear.set()
        self.asked: list[Asked] = []
        self.lost: list[str] = []
        self._times = Counter[str]()
        self.in_flight = 0
        self.peak = 0

    def counts(self) -> Counter[str]:
        """How often each prompt was asked."""
        return self._times.copy()

    async def _talk(self, visit: Visit) -> None:
        while await self.ear.wait() and (request := await visit.request()) is not None:
            asked = self._read(visit, request)
            self.asked.append(asked)
            self.in_flight += 1
            self.peak = max(self.peak, self.in_flight)
            try:
                if self.latency_s:
                    await asyncio.sleep(self.latency_s)
                goes_on = await (self.script(asked) or sound)(asked)
            except ConnectionError:
                self.lost.append(asked.prompt)
                raise
            finally:
                self.in_flight -= 1
            if not goes_on:
                return

    def _read(self, visit: Visit, request: bytes) -> Asked:
        head, _, body = request.partition(b"\r\n\r\n")
        lines = (line.partition(": ") for line in head.decode("latin-1").split("\r\n"))
        headers = {name.lower(): value for name, _, value in lines}
        question = json.loads(body)
        prompt = question["messages"][-1]["content"]
        key = headers.get("authorization", "").removeprefix("Bearer ")
        self._times[prompt] += 1
        now = asyncio.get_running_loop().time()
        return Asked(visit, prompt, self._times[prompt], question.get("stream", False), key, now)


def settings_for(base_url: str, folder: Path, *lanes: ms.Lane, **more: Any) -> ms.Settings:
    """Settings of an engine whose models `lab/…` answer at an address. A name stands for the address in cache keys, so
    that another server finds what this one answered."""
    plain: dict[str, Any] = {
        "providers": {"lab": ms.Provider(base_url, "LAB_KEY", identity="lab")},
        "environment": {"LAB_KEY": "sk-lab-0123456789"},
        "cache": folder,
        "lanes": lanes,
        "policy": QUICK,
    }
    return ms.Settings(**{**plain, **more})


async def until(holds: Callable[[], bool], within_s: float = 5.0) -> None:
    """Wait for something that nobody tells."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    while not holds():
        assert loop.time() < end, "it did not come about"
        await asyncio.sleep(0.002)
