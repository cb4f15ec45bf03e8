"""Everything that a conversation asks of the world, scripted and in the loop's own time: models, search and pages.

Each lane answers after its latency, so many calls at once; what was answered is remembered, as a cache does, also by
the next outside that is given the same memory. Answers are functions of what was asked alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from msgspec import Struct, structs

from millstream.engine.call import Call, Failure, Hit, Message, Outcome, Reply, Usage
from millstream.engine.fault import Stop, Stopped, StopReason
from millstream.providers.pages.page import Page
from millstream.providers.search.joined import Found

MODEL, OTHER, JUDGE, SEARCH = "script/m", "script/other", "script/judge", "search/script"


class Event(Struct, frozen=True):
    """One call: when it began and ended, on which lane, and what kind of call it is."""

    begin: float
    end: float
    lane: str
    kind: str
    what: str


Answer = Callable[[Call], str | Reply | Failure]


def digest(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


def kind_of(call: Call) -> str:
    text = call.input if isinstance(call.input, str) else call.input[0].words
    if text.startswith("Write one web search query"):
        return "query"
    if text.startswith("You are an expert stance analyzer"):
        return "judge" if len(call.input) == 1 else "repair"
    return "answer"


def judgement(stance: str = "supportive", rationale: str = "It clearly agrees.", **more: Any) -> str:
    found = {
        "stance": stance,
        "key_claims": ["One claim."],
        "contradictions_acknowledged": False,
        "rationale": rationale,
        "confidence": 0.9,
    }
    return json.dumps({**found, **more})


def asked_question(call: Call) -> str:
    """The question that a query or an answer is asked about."""
    if kind_of(call) == "query":
        assert isinstance(call.input, str)
        return call.input.rpartition("Question: ")[2].removesuffix(". Output only the query.")
    message = call.input[-1]
    assert isinstance(message, Message)
    return message.words.rpartition("Question: ")[2]


class ScriptedOutside:
    """`answer` may replace what a model says, by what it gives for a call; None: the usual answer. `stop_after` stops
    lanes when so many of their calls were answered."""

    def __init__(
        self,
        *,
        latency_s: Mapping[str, float] | None = None,
        concurrency: Mapping[str, int] | None = None,
        answer: Callable[[Call], str | Reply | Failure | None] = lambda call: None,
        pages: Callable[[str], Page] | None = None,
        found: Callable[[str, int], Found | None] = lambda query, count: None,
        stop_after: Mapping[str, int] | None = None,
        memory: dict[str, Any] | None = None,
        keeps_events: bool = True,
    ) -> None:
        self.latency = {MODEL: 1.0, JUDGE: 0.5, SEARCH: 0.3, "web": 0.2, **(latency_s or {})}
        self.memory: dict[str, Any] = {} if memory is None else memory
        self.events: list[Event] = []
        self.sent: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.halted: list[tuple[StopReason, str]] = []
        self.calls: list[Call] = []
        self._answer = answer
        self._pages = pages or (lambda url: Page(url, "ok", text=f"Text of {url}. " * 20, title=f"Title of {url}"))
        self._found = found
        self._stop_after = stop_after or {}
        self._slots = {lane: asyncio.Semaphore(count) for lane, count in (concurrency or {}).items()}
        self._keeps_events = keeps_events
        self._flying: dict[str, asyncio.Future[None]] = {}
        self.in_flight: Counter[str] = Counter()
        self.peak: Counter[str] = Counter()

    def halt(self, reason: StopReason, detail: str) -> None:
        self.halted.append((reason, detail))

    async def ask(self, call: Call) -> Outcome:
        key = digest(call.model, call.input, call.temperature, call.max_tokens, call.trial)
        kind = kind_of(call)
        if await self._is_known(key):
            return Outcome(call, self.memory[key], key=key, cached=True, cost=0.0)
        with self._flight(key):
            async with self._sent(call.model, kind, key):
                if self._keeps_events:
                    self.calls.append(call)
            said = self._answer(call)
            if isinstance(said, Failure):
                return Outcome(call, failure=said, key=key, attempts=1)
            reply = said if isinstance(said, Reply) else Reply(said or self._usual(call, kind), Usage(100, 10))
            self.memory[key] = reply
            return Outcome(call, reply, key=key, attempts=1, cost=0.001, latency_ms=1.0)

    async def search(self, model: str, query: str, count: int) -> Found:
        key = digest(model, query, count)
        if await self._is_known(key):
            known = self.memory[key]
            return Found(model, query, known.hits, (key,), cached=True, cost=0.0, remarks=known.remarks)
        with self._flight(key):
            async with self._sent(model, "search", query):
                pass
            found = self._found(query, count) or Found(
                model,
                query,
                tuple(Hit(n, f"https://{digest(query)[:6]}.test/{n}", f"Hit {n}") for n in range(1, count + 1)),
            )
            if found.failure is None:
                self.memory[key] = found
            return structs.replace(found, keys=(key,), attempts=1, cost=0.0001)

    async def read(self, url: str) -> Page:
        key = digest("web", url)
        if await self._is_known(key):
            known: Page = self.memory[key]
            return structs.replace(known, keys=(key,), cached=True)
        with self._flight(key):
            async with self._sent("web", "page", url):
                pass
            page = self._pages(url)
            self.memory[key] = page
            return structs.replace(page, keys=(key,))

    async def _is_known(self, key: str) -> bool:
        """Whether there is an answer; who asks what is under way already waits for it."""
        while (flight := self._flying.get(key)) is not None:
            await asyncio.shield(flight)
        return key in self.memory

    @contextmanager
    def _flight(self, key: str) -> Iterator[None]:
        flight = self._flying[key] = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            del self._flying[key]
            flight.set_result(None)

    @asynccontextmanager
    async def _sent(self, lane: str, kind: str, what: str) -> AsyncIterator[None]:
        self._check(lane)
        slot = self._slots.get(lane)
        if slot is not None:
            await slot.acquire()
        try:
            self._check(lane)
            loop = asyncio.get_running_loop()
            begin = loop.time()
            if self._keeps_events:
                self.sent[f"{kind} {what}"] += 1
            self.in_flight[lane] += 1
            self.peak[lane] = max(self.peak[lane], self.in_flight[lane])
            try:
                await asyncio.sleep(self.latency[lane])
            finally:
                self.in_flight[lane] -= 1
            self.answered[lane] += 1
            if self._keeps_events:
                self.events.append(Event(begin, loop.time(), lane, kind, what))
            yield
        finally:
            if slot is not None:
                slot.release()

    def _check(self, lane: str) -> None:
        if self.halted:
            raise Stopped([Stop(lane, *self.halted[0])])
        if self.answered[lane] >= self._stop_after.get(lane, 1_000_000_000):
            raise Stopped([Stop(lane, "dead_key", f"{lane} has no key")])

    @staticmethod
    def _usual(call: Call, kind: str) -> str:
        if kind == "query":
            return f"search {digest(asked_question(call))[:8]}"
        if kind in ("judge", "repair"):
            return judgement()
        return f"Answer {digest(call.input, call.temperature, call.trial)[:8]} as in [1] and [2]."
