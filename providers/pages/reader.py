"""Reads a page: checks robots.txt, follows redirects through the engine, and extracts the text or the reason that there
is none.

Owns the order of these steps, redirects, and the time that one page may cost. Every hop is a call of its own, with
cache, quota, guard and retries; nothing here opens a connection.
"""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

from ...engine.call import WEB, Call, Failure, Outcome, PageResponse
from .endpoint import CRAWL_DELAY_S, HOP_S, WITHIN_S
from .extraction import Extraction
from .page import Page, PageStatus, PageText
from .robots import REDIRECTS_MAX, Ask, DerivedStore, DerivedValues, Robots, Trail
from .urls import UrlError, WebUrl, join_url, parse_url

CORPUS = "corpus:"
# The seconds for robots.txt and hops together: with extraction's eight seconds, a page costs twenty.
FETCH_S = 12.0
_NO_TEXT = PageText("empty")
_LOCKED = (401, 402, 403, 407, 429, 451)


class PageReader:
    """The reader of pages, which calls `ask`. `derived` stores the texts that `extraction` finds, beside the bodies."""

    def __init__(self, ask: Ask, derived: DerivedStore, extraction: Extraction) -> None:
        self._ask = ask
        self._derived = DerivedValues(derived)
        self.extraction = extraction
        self._robots = Robots(ask, self._derived, extraction)
        self._turns = WeakValueDictionary[str, asyncio.Lock]()
        self._door = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<PageReader {self._robots} {self.extraction}>"

    async def read(self, url: str) -> Page:
        """Returns the page, which says why if it has no text. Raises only those exceptions of `ask` that stop a run."""
        # Stored pages are read without waiting. If a thousand start at once, the loop must run between two of them.
        async with self._door:
            await asyncio.sleep(0)
        trail = _PageTrail(url)
        if url.startswith(CORPUS):
            outcome = trail.took(await self._ask(Call(WEB, url)))
            return await self._page_of(outcome, trail, url)
        try:
            return await self._follow(parse_url(url), trail)
        except UrlError as error:
            # The first URL, or one that a redirect named.
            return trail.ended("unreachable", f"not fetched: {error}")

    async def _follow(self, at: WebUrl, trail: _PageTrail) -> Page:
        seen: set[str] = set()
        origins: set[str] = set()
        while at.text not in seen:
            seen.add(at.text)
            if len(seen) > REDIRECTS_MAX + 1:
                return trail.ended(
                    "unreachable", f"more than {REDIRECTS_MAX} redirects, the last to {at.text}", at.text
                )
            refusal, delay_s = await self._robots.verdict(at, trail, is_new=at.origin not in origins)
            origins.add(at.origin)
            if refusal is not None:
                return trail.ended(*refusal, at.text)
            left_s = FETCH_S - trail.spent_s
            if left_s <= 0:
                return trail.ended(
                    "timeout", f"its redirects and their hosts' rules took more than {FETCH_S:g} s", at.text
                )
            outcome = trail.took(await self._hop(at, left_s, delay_s))
            fetched = outcome.reply.fetched if outcome.reply is not None else None
            if fetched is None or fetched.status < 300:
                return await self._page_of(outcome, trail, at.text)
            if not fetched.location:
                return trail.ended("unreachable", f"{fetched.status}: a redirect that leads nowhere", at.text)
            at = join_url(at, fetched.location)
        return trail.ended("unreachable", f"redirects in a circle, back to {at.text}", at.text)

    async def _hop(self, at: WebUrl, left_s: float, delay_s: float) -> Outcome:
        extra = {WITHIN_S: round(left_s, 3)} if left_s < HOP_S else {}
        if not delay_s:
            return await self._ask(Call(WEB, at.text, extra=extra or None))
        extra[CRAWL_DELAY_S] = delay_s
        # One at a time, since the host's lane learns of the pause from the first answer.
        async with self._turns.setdefault(at.origin, asyncio.Lock()):
            return await self._ask(Call(WEB, at.text, extra=extra))

    async def _page_of(self, outcome: Outcome, trail: _PageTrail, final_url: str) -> Page:
        if outcome.failure is not None:
            return trail.ended(_status_of(outcome.failure), outcome.failure.detail, final_url)
        reply = outcome.reply
        assert reply is not None and reply.fetched is not None
        text = await self._extracted(reply.raw_hash, reply.fetched)
        return trail.ended(text.status, text.detail, final_url, text, reply.raw_hash)

    async def _extracted(self, body_hash: str, fetched: PageResponse) -> PageText:
        how = f"text {self.extraction.version}\n{fetched.content_type}\n{fetched.encoding}"
        # A timeout is stored too: when a run is repeated from a snapshot, the prompt must be the same.
        return await self._derived.get(PageText, body_hash, how, lambda: self.extraction.extract(fetched))


class _PageTrail(Trail):
    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    def ended(
        self, status: PageStatus, detail: str, final_url: str = "", page_text: PageText = _NO_TEXT, body_hash: str = ""
    ) -> Page:
        return Page(
            self._url,
            status,
            page_text.text,
            page_text.title,
            final_url or self._url,
            body_hash,
            detail,
            tuple(self.keys),
            not self.is_sent and bool(self.keys),
        )


def _status_of(failure: Failure) -> PageStatus:
    match failure.kind:
        case "timeout" | "too_large" | "empty":
            return failure.kind
        case "rate_limited":
            return "blocked"
        case "rejected" if failure.status in _LOCKED:
            return "blocked"
    return "unreachable"
