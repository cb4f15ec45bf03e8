"""The outside of the toy benchmark, a chat server in a thread of its own, and the command line before it.

Models by name: `good` adds up, `firm` too; `poor` is wrong about odd numbers; `weak` gives in to every doubt; `mute`
says no number. `judge` reads truly, `lax` says yes, `stern` says no. Every answer counts 10 tokens in and 5 out.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from command_line import CommandLine, Done, lines_of, start
from distributions import install
from raw_server import RawServer, Visit, http

# Of every answer: 10 tokens in and 5 out at ten cents each.
COST = 1.5
PRICES = "".join(
    f'[prices."lab/{model}"]\ninput = 1e5\noutput = 1e5\n'
    for model in ("good", "firm", "poor", "weak", "mute", "judge", "lax", "stern")
)
KEY = "sk-lab-0123456789"
POINTS = {"sums": "toys:SUMS", "twins": "toys:TWINS", "doubts": "toys:DOUBTS"}
# What differs from run to run of the same answers.
OF_A_RUN = ("latency_ms", "answer_id", "attempts", "cached", "from_cache", "cost", "cost_judge", "crc")


class Asked(NamedTuple):
    """One request: the model, and the texts of its messages."""

    model: str
    texts: tuple[str, ...]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        return self.texts[-1]


class Spent(NamedTuple):
    """What one answer takes."""

    seconds: float = 0.0
    input: int = 10
    output: int = 5


class Rule:
    """Requests that meet with an error, by a pattern of `model: last message`; the first `after` of them don't."""

    def __init__(self, pattern: str, status: int, after: int) -> None:
        self.pattern = pattern
        self.status = status
        self.after = after
        self.seen = 0

    def strikes(self, asked: Asked) -> bool:
        if not re.search(self.pattern, f"{asked.model}: {asked.prompt}"):
            return False
        self.seen += 1
        return self.seen > self.after


def answer(model: str, texts: tuple[str, ...]) -> str:
    """What a model says."""
    prompt = texts[-1]
    if judged := re.search(r"(\d+) \+ 10 is (\d*)", prompt):
        right = judged[2] == str(int(judged[1]) + 10)
        return {"lax": "yes", "stern": "no"}.get(model, "yes" if right else "no")
    asked = re.search(r"What is (\d+) \+ 10", prompt)
    number = int(asked[1]) if asked else 0
    is_wrong = model == "poor" and number % 2 and "Please" not in prompt
    if model == "weak":
        number += len(texts) // 2
    return "nothing" if model == "mute" else str(number + 10 + bool(is_wrong))


class ToyServer:
    """Runs while its block lasts. `asked` has every request, in the order of arrival; `refused` those that met with an
    error; `times` when each request came and was answered. `law` says what an answer takes; else all take the same."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.refused: list[Asked] = []
        self.base_url = ""
        self.delay_s = 0.0
        self.law: Callable[[Asked], Spent] = lambda _: Spent(self.delay_s)
        self.times: list[tuple[float, float]] = []
        self.waiting = 0
        self._rules: tuple[Rule, ...] = ()
        self._gate: tuple[str, int] = ("", 0)
        self._opened: asyncio.Event | None = None
        self._passed = 0

    def __enter__(self) -> ToyServer:
        self._loop = asyncio.new_event_loop()
        self._over, started = asyncio.Event(), threading.Event()

        async def serve() -> None:
            async with RawServer(self._talk) as server:
                self.base_url = server.base_url
                started.set()
                await self._over.wait()

        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(serve(),))
        self._thread.start()
        assert started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)
        self._loop.close()

    @contextmanager
    def failing(self, pattern: str, status: int = 400, *, after: int = 0) -> Iterator[None]:
        """Answer with an error whatever matches, as `good: What is 3`, while the block lasts; the first `after` of
        these requests soundly."""
        rule = Rule(pattern, status, after)
        self._rules = (*self._rules, rule)
        try:
            yield
        finally:
            self._rules = tuple(each for each in self._rules if each is not rule)

    def hold(self, after: int = 0, pattern: str = "") -> None:
        """From now on answer so many requests that match, and let the others of them wait for `release`."""
        self._gate, self._passed, self._opened = (pattern, after), 0, asyncio.Event()

    def release(self) -> None:
        assert self._opened is not None
        self._loop.call_soon_threadsafe(self._opened.set)

    def await_waiting(self, count: int) -> None:
        """Wait until so many requests are held."""
        self.await_that(lambda: self.waiting >= count)

    def await_gone(self) -> None:
        """Wait until whoever was held has hung up."""
        self.await_that(lambda: self.waiting == 0)

    def prompts(self) -> Counter[tuple[str, str]]:
        """How often each model was asked each last message."""
        return Counter((asked.model, asked.prompt) for asked in self.asked)

    def await_that(self, holds: Callable[[], bool]) -> None:
        """Wait for something that nobody tells."""
        end = time.monotonic() + 20
        while not holds():
            assert time.monotonic() < end, f"{self.waiting} requests wait, {len(self.asked)} came"
            time.sleep(0.005)

    async def _talk(self, visit: Visit) -> None:
        while (request := await visit.request()) is not None:
            body = json.loads(request.partition(b"\r\n\r\n")[2])
            asked = Asked(body["model"], tuple(message["content"] for message in body["messages"]), body)
            self.asked.append(asked)
            came, spent = time.monotonic(), self.law(asked)
            if spent.seconds:
                await asyncio.sleep(spent.seconds)
            if not await self._let_through(visit, asked):
                return
            await visit.send(self._reply(asked, spent))
            self.times.append((came, time.monotonic()))

    async def _let_through(self, visit: Visit, asked: Asked) -> bool:
        """Returns whether a client still waits for the answer."""
        (pattern, after), opened = self._gate, self._opened
        if opened is None or opened.is_set() or not re.search(pattern, f"{asked.model}: {asked.prompt}"):
            return True
        self._passed += 1
        if self._passed <= after:
            return True
        waits = [asyncio.ensure_future(wait) for wait in (opened.wait(), visit.hung_up())]
        self.waiting += 1
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.waiting -= 1
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        return opened.is_set()

    def _reply(self, asked: Asked, spent: Spent) -> bytes:
        for rule in self._rules:
            if rule.strikes(asked):
                self.refused.append(asked)
                error = {"error": {"message": "told to fail"}}
                return http(json.dumps(error).encode(), status=f"{rule.status} Told")
        message = {"role": "assistant", "content": answer(asked.model, asked.texts)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        total = spent.input + spent.output
        usage = {"prompt_tokens": spent.input, "completion_tokens": spent.output, "total_tokens": total}
        reply = {"id": f"c{len(self.asked)}", "model": asked.model, "choices": [choice], "usage": usage}
        return http(json.dumps(reply).encode())


class Toys:
    """The command line in a folder where the toy benchmark is installed, before a server."""

    def __init__(self, cli: CommandLine, server: ToyServer, home: Path) -> None:
        self.cli = cli
        self.server = server
        self.home = home
        self._started: list[subprocess.Popen[str]] = []
        site = home / "site"
        install(site, "toys", "from toy_benchmark import *\n", {"millstream.benchmarks": POINTS})
        provider = f'[providers.lab]\nbase_url = "{server.base_url}"\nkey = "env:LAB_KEY"\nidentity = "lab"\n'
        (home / "lab.toml").write_text(provider + PRICES)

    def run(self, name: str, *more: str, model: str = "lab/good", out: str = "run") -> Done:
        """`run`, without a report and with four calls in flight."""
        return self.cli(*self.words("run", name, *more, model=model, out=out))

    def words(self, verb: str, name: str, *more: str, model: str = "lab/good", out: str = "run") -> tuple[str, ...]:
        where = ("--out", out, "--no-report") if verb == "run" else ()
        sent = ("--config", "lab.toml", "--cache", "cache", "--concurrency", "4", "--no-progress")
        return (verb, name, "--model", *model.split(), *where, *sent, *more)

    def again(self, verb: str, *more: str, out: str = "run") -> Done:
        """`resume` or `retry`."""
        return self.cli(verb, out, "--no-report", "--no-progress", *more)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command in a process of its own."""
        paths = (self.home / "site", Path(__file__).parent)
        process = start(self.home, *words, PYTHONPATH=os.pathsep.join(map(str, paths)), LAB_KEY=KEY)
        self._started.append(process)
        return process

    def end(self) -> None:
        """End what a failed test has left."""
        for process in self._started:
            process.kill()
            process.communicate()

    def lines(self, name: str = "records", out: str = "run") -> list[dict[str, Any]]:
        return lines_of(self.home / out / f"{name}.jsonl")

    def file(self, name: str, out: str = "run") -> Any:
        return json.loads((self.home / out / name).read_text())

    def scores(self, out: str = "run") -> dict[str, Any]:
        """Each model's score."""
        (kept,) = (value for name, value in self.file("scores.json", out).items() if name in POINTS)
        return {model: entry["score"] for model, entry in kept["models"].items()}

    def answers(self, out: str = "run") -> list[dict[str, Any]]:
        """The records, sorted, without what no second run of the same answers has again."""
        kept = [{name: value for name, value in line.items() if name not in OF_A_RUN} for line in self.lines(out=out)]
        return sorted(kept, key=lambda line: (line["model"], str(line["temperature"]), line["id"]))

    def forget_cache(self) -> None:
        shutil.rmtree(self.home / "cache")
