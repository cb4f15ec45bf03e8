"""Retrieves the pages that a turn's answer reads: a query, a search, and the first pages found.

Nothing here depends on the conversation so far, so it can run ahead. Each page is shortened as soon as it is read.
A query with more words than asked for is used unchanged, up to a bound that all search engines accept. Knows no
answer.
"""

from __future__ import annotations

import asyncio
import re

from msgspec import UNSET, Struct, structs

from ...engine.call import Call, Hit
from ..evaluation.door.ask import Ask
from ..evaluation.door.outside import CallCosts, Outside
from .context import page_text, title_of
from .prompts import ShownPage, query_prompt
from .records import Record, RetrievedPage
from .run_spec import ConversationSpec


class TurnRetrieval(Struct, frozen=True):
    """The search results and pages of one turn. `record` has the query and the pages as recorded, or the failure that
    ended the turn. `sources` are the pages with a text, which keep their numbers, from 1; `cut` are the numbers of the
    pages of which only the beginning is shown."""

    record: Record
    sources: tuple[ShownPage, ...] = ()
    cut: tuple[int, ...] = ()


async def retrieve(ask: Ask, spec: ConversationSpec, place: Record, sample: int, spent: CallCosts) -> TurnRetrieval:
    """Returns the retrieval of one turn; `place` has the fields that identify it. `sample` distinguishes identical
    prompts of different turns. An unreadable page is no failure."""
    outside, by = ask.outside, spec.queries_by or ask.pair
    prompt = query_prompt(place.topic, place.question)
    call = Call(by.model, prompt, temperature=by.temperature, reasoning_effort=by.effort, trial=sample)
    outcome = await outside.ask(call)
    # Another model's tokens do not count for the one under test.
    spent.add_call(outcome, is_own=by == ask.pair)
    if outcome.failure is not None:
        return TurnRetrieval(place.failed("query", outcome.failure))
    reply = outcome.reply
    query = query_in(reply.text) if reply is not None and not reply.refused else ""
    made = structs.replace(place, query=query or query_from(place.question), query_by="model" if query else "question")
    results = await outside.search(spec.search, made.query, spec.pages)
    spent.add_search(results)
    if results.failure is not None:
        return TurnRetrieval(made.failed("search", results.failure))
    hits = [Hit(at, hit.url, hit.title) for at, hit in enumerate(results.hits[: spec.pages], 1)]

    # All reads finish, even if one of them raises, so that their answers are kept.
    ended = await asyncio.gather(*(_read(outside, hit, spec.page_tokens) for hit in hits), return_exceptions=True)
    pages: list[_ReadPage] = []
    for page in ended:
        if isinstance(page, BaseException):
            raise page
        spent.add_page(page.keys, is_cached=page.is_cached)
        pages.append(page)
    return TurnRetrieval(
        structs.replace(
            made,
            retrieved=tuple(page.retrieved for page in pages),
            search_remarks=tuple(results.remarks) or UNSET,
        ),
        sources=tuple(page.source for page in pages if page.source is not None),
        cut=tuple(page.source.number for page in pages if page.source is not None and page.is_cut),
    )


class _ReadPage(Struct, frozen=True):
    """A page that was read, with only as much of its text as the prompt shows."""

    retrieved: RetrievedPage
    source: ShownPage | None
    is_cut: bool
    keys: tuple[str, ...]
    is_cached: bool


async def _read(outside: Outside, hit: Hit, tokens: int) -> _ReadPage:
    page = await outside.read(hit.url)
    text, is_cut = page_text(page.text, tokens)
    leads_to = page.final_url if page.final_url not in ("", hit.url) else UNSET
    # Blanks around a text are not counted.
    retrieved = RetrievedPage(hit.url, page.status, len(page.text.strip()), page.hash, leads_to)
    return _ReadPage(
        retrieved,
        ShownPage(hit.rank, title_of(hit.title, page.title or hit.url), hit.url, text) if retrieved.has_text else None,
        is_cut,
        tuple(page.keys),
        page.cached,
    )


# The least that the engines allow: Brave's 50 words and 400 characters.
WORDS_MAX = 50
CHARS_MAX = 400
# No model uses more labels, bullets and quotes around a query; the bound keeps hostile lines from taking long.
_WRAPPINGS_MAX = 16

_FENCE = re.compile(r"^\s*`{3,}\w*\s*$")
_LABEL = re.compile(
    r"^(?:(?:here(?:'s| is)|sure|certainly)\b[^:]{0,60}:|(?:the\s+)?(?:best\s+)?(?:(?:web|google|internet)\s+)?"
    r"(?:search\s+)?(?:query|search)(?:\s+\d{1,2})?\s*:|q:)\s*",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^(?:[-*•]\s+|\d{1,2}[.)]\s+)")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "`": "`", "„": "“"}
_EMPHASISED_LABEL = re.compile(r"^(\*\*|__)([^*_]{1,40}?)(?::\1|\1\s*:)")
_EMPHASIS = re.compile(r"^(\*\*|__|\*|_)(.+)\1$")


def query_in(text: str) -> str:
    """Returns the first line that is a query, without its label, bullet and quotes; empty if there is none."""
    for line in text.splitlines():
        if _FENCE.match(line):
            continue
        query = _bare(line)
        if query:
            return _cut(query)
    return ""


def query_from(question: str) -> str:
    """Returns the question as a query, for when the model wrote none."""
    return _cut(" ".join(question.split()))


def _bare(line: str) -> str:
    query = " ".join(line.split())
    for _ in range(_WRAPPINGS_MAX):
        before = query
        query = _BULLET.sub("", query)
        query = _LABEL.sub("", _EMPHASISED_LABEL.sub(r"\2:", query))
        emphasised = _EMPHASIS.match(query)
        if emphasised:
            query = emphasised[2].strip()
        close = _QUOTES.get(query[:1])
        # Only quotes around the whole: "a b" "c d" is a query of two phrases.
        if (
            close is not None
            and len(query) > 1
            and query.endswith(close)
            and not _reopens(query[1:-1], query[0], close)
        ):
            query = query[1:-1].strip()
        if query == before:
            break
    return query if any(char.isalnum() for char in query) else ""


def _reopens(inside: str, opened: str, closed: str) -> bool:
    # An apostrophe inside a word neither opens nor closes.
    bare = re.sub(r"(?<=\w)['’](?=\w)", "", inside)
    return opened in bare or closed in bare


def _cut(query: str) -> str:
    words = query.split()[:WORDS_MAX]
    while len(words) > 1 and len(" ".join(words)) > CHARS_MAX:
        words.pop()
    return " ".join(words)[:CHARS_MAX]
