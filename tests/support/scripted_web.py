"""A web without sockets: what each address answers, in the loop's own time, and everything that was asked of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from hashlib import sha256

from msgspec import Struct

from millstream.engine.call import Call, Failure, FailureKind, Outcome, PageResponse, Reply
from millstream.providers.pages.extraction import Extraction
from millstream.providers.pages.page import PageText
from millstream.providers.pages.robots_rules import RobotsVerdict, judge


class Answer(Struct, frozen=True):
    """A whole answer, or with `kind` a failure."""

    body: bytes = b""
    status: int = 200
    location: str | None = None
    content_type: str = "text/html"
    kind: FailureKind | None = None
    encoding: str = ""
    took_s: float = 0.1
    attempts: int = 1


def said(text: str) -> Answer:
    return Answer(f"<html><head><title>T</title></head><body><p>{text}</p></body></html>".encode())


def moved(location: str | None, took_s: float = 0.1) -> Answer:
    return Answer(status=302, location=location, took_s=took_s)


def failed(kind: FailureKind, status: int | None = None) -> Answer:
    return Answer(kind=kind, status=status or 0)


NOT_FOUND = failed("rejected", 404)


class ScriptedWeb:
    """`ask` for a reader. An address that is not there is a 404; a robots.txt too, which allows everything."""

    def __init__(self, pages: dict[str, Answer], trouble: Callable[[Call], None] | None = None) -> None:
        self.pages = pages
        self.asked: list[Call] = []
        self.in_flight: dict[str, int] = {}
        self.peak: dict[str, int] = {}
        self._trouble = trouble

    @property
    def urls(self) -> list[str]:
        return [str(call.input) for call in self.asked]

    async def ask(self, call: Call) -> Outcome:
        self.asked.append(call)
        if self._trouble is not None:
            self._trouble(call)
        url = str(call.input)
        answer = self.pages.get(url, NOT_FOUND)
        self.in_flight[call.lane] = self.in_flight.get(call.lane, 0) + 1
        self.peak[call.lane] = max(self.peak.get(call.lane, 0), self.in_flight[call.lane])
        try:
            await asyncio.sleep(answer.took_s)
        finally:
            self.in_flight[call.lane] -= 1
        key, attempts = sha256(url.encode()).hexdigest(), answer.attempts
        if answer.kind is not None:
            failure = Failure(answer.kind, f"{answer.kind} it was", answer.status or None)
            return Outcome(call, failure=failure, key=key, attempts=attempts)
        fetched = PageResponse(answer.status, answer.content_type, answer.encoding, answer.location, answer.body)
        reply = Reply("", raw_hash=sha256(answer.body).hexdigest(), fetched=fetched)
        return Outcome(call, reply=reply, key=key, attempts=attempts, latency_ms=answer.took_s * 1000)


class ExtractionHere(Extraction):
    """Without a process: bodies are their own texts. Counts what it was asked."""

    def __init__(self) -> None:
        super().__init__(1)
        self.extracted: list[bytes] = []
        self.judged = 0

    async def extract(self, fetched: PageResponse) -> PageText:
        self.extracted.append(fetched.body)
        await asyncio.sleep(0.5)
        if not fetched.body:
            return PageText("empty", detail="nothing in it")
        return PageText("ok", fetched.body.decode(), "T")

    async def judge(self, robots: PageResponse, url: str) -> RobotsVerdict:
        self.judged += 1
        await asyncio.sleep(0)
        return judge(robots.body, robots.encoding, url, "millstream")
