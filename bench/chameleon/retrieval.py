"""What a turn's answer is given to read: a query, a search, and the first pages of what it found.

Owns that nothing here depends on the conversation so far, so that it can be done ahead. Each page is cut as soon as it
has been read. Knows no answer and no record.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from msgspec import UNSET, Struct, UnsetType, structs

from ...engine.call import Call, FailureKind, Hit
from ...engine.pairs import Pair
from .context import page_text, title_of
from .outside import Outside, Spent
from .prompts import Source, query_prompt
from .query import query_from, query_in

Step = Literal["query", "search", "answer", "judge", "repair"]


class Failed(Struct, frozen=True):
    """A call of a turn that failed for good, and with it the turn."""

    step: Step
    kind: FailureKind
    detail: str


class Retrieved(Struct, frozen=True):
    """A result as a record names it. `chars` are those of the whole text, however much of it was shown; `final_url` is
    where the address led to, if anywhere else."""

    url: str
    status: str = "ok"
    chars: int = 0
    hash: str = ""
    final_url: str | UnsetType = UNSET

    @property
    def has_text(self) -> bool:
        return self.status == "ok" and self.chars > 0


class Retrieval(Struct, frozen=True):
    """Everything found for one turn. `sources` are the pages with a text, which keep their numbers; `cut` the numbers
    of the pages that were longer than their budget."""

    query: str = ""
    query_by: Literal["model", "question"] = "model"
    retrieved: tuple[Retrieved, ...] = ()
    sources: tuple[Source, ...] = ()
    cut: tuple[int, ...] = ()
    remarks: tuple[str, ...] = ()
    failed: Failed | None = None


class Wanted(Struct, frozen=True):
    """How retrieval is done: whose query at which temperature, which engine, how many pages of how many tokens. Not
    `is_own`: another model's queries, whose tokens are no part of this one's."""

    by: Pair
    is_own: bool
    search: str
    pages: int
    page_tokens: int


async def retrieve(outside: Outside, wanted: Wanted, topic: str, question: str, sample: int, spent: Spent) -> Retrieval:
    """`sample` tells this query from others with the same prompt. A page that gives nothing is no failure."""
    call = Call(wanted.by.model, query_prompt(topic, question), temperature=wanted.by.temperature, trial=sample)
    outcome = await outside.ask(call)
    spent.add_call(outcome, is_own=wanted.is_own)
    if outcome.failure is not None:
        return Retrieval(failed=Failed("query", outcome.failure.kind, outcome.failure.detail))
    reply = outcome.reply
    query = query_in(reply.text) if reply is not None and not reply.refused else ""
    made = Retrieval(
        query=query or query_from(question),
        query_by="model" if query else "question",
    )
    return await _search(outside, wanted, made, spent)


async def _search(outside: Outside, wanted: Wanted, made: Retrieval, spent: Spent) -> Retrieval:
    found = await outside.search(wanted.search, made.query, wanted.pages)
    spent.add_search(found)
    if found.failure is not None:
        return structs.replace(made, failed=Failed("search", found.failure.kind, found.failure.detail))
    hits = [Hit(at, hit.url, hit.title) for at, hit in enumerate(found.hits[: wanted.pages], 1)]

    # All of them end, whatever one of them raises: what is in flight is kept.
    ended = await asyncio.gather(*(_read(outside, hit, wanted.page_tokens) for hit in hits), return_exceptions=True)
    pages: list[_Read] = []
    for page in ended:
        if isinstance(page, BaseException):
            raise page
        spent.add_page(page.keys, is_cached=page.is_cached)
        pages.append(page)
    return structs.replace(
        made,
        retrieved=tuple(page.retrieved for page in pages),
        sources=tuple(page.source for page in pages if page.source is not None),
        cut=tuple(page.source.number for page in pages if page.source is not None and page.is_cut),
        remarks=tuple(found.remarks),
    )


class _Read(Struct, frozen=True):
    """A page, with no more of its text than is shown."""

    retrieved: Retrieved
    source: Source | None
    is_cut: bool
    keys: tuple[str, ...]
    is_cached: bool


async def _read(outside: Outside, hit: Hit, tokens: int) -> _Read:
    page = await outside.read(hit.url)
    text, is_cut = page_text(page.text, tokens)
    leads_to = page.final_url if page.final_url not in ("", hit.url) else UNSET
    # Blanks around a text are no part of it.
    retrieved = Retrieved(hit.url, page.status, len(page.text.strip()), page.hash, leads_to)
    return _Read(
        retrieved,
        Source(hit.rank, title_of(hit.title, page.title or hit.url), hit.url, text) if retrieved.has_text else None,
        is_cut,
        tuple(page.keys),
        page.cached,
    )
