"""Turns results into hits: the same plain fields for every engine.

Tags, entities and invisible characters are removed from titles and snippets, which are cut; a result without a page's
address is dropped. Pure, and never fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import unescape
from typing import Any

from ...engine.call import Hit
from ...engine.page_urls import web_parts
from ..llm.repair import mended

TITLE_MAX = 500
SNIPPET_MAX = 4_000
URL_MAX = 8_000
# The beginning of a field that is read, in multiples of the length that is kept: markup may make it that much longer.
_LOOK = 5
_NESTED = 8
# Only names of elements: anything else in angle brackets, as in `List<String>`, is text.
_ELEMENTS = (
    "a|abbr|article|b|base|big|blockquote|body|br|button|center|cite|code|dd|del|details|div|dl|dt|em|embed|font|footer"
    "|form|frame|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|kbd|label|li|link|main|mark|meta|nav|object|ol|option"
    "|p|pre|q|s|samp|script|section|select|small|source|span|strike|strong|style|sub|summary|sup|svg|table|tbody|td"
    "|textarea|tfoot|th|thead|title|tr|tt|u|ul|var|video|wbr"
)
_TAG = re.compile(rf"</?(?:{_ELEMENTS})(?=[\s/>])[^<>]*>|<![^<>]*>", re.IGNORECASE)
_BLOCK = re.compile(r"</?(?:br|p|div|li|td|th|tr|h[1-6]|hr)\b", re.IGNORECASE)
# Control characters, marks of text direction and characters without width.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufffe\uffff]")


def plain(value: Any, longest: int) -> str:
    """Returns a text without markup, on one line of at most `longest` characters; empty if the value is no text."""
    if not isinstance(value, str):
        return ""
    text = _untagged(mended(value[: _LOOK * longest]))
    if "&" in text:
        # Some engines escape texts that hold markup already.
        text = _untagged(mended(unescape(text)))
    return " ".join(_UNSEEN.sub(" ", text).split())[:longest].rstrip()


def _untagged(text: str) -> str:
    for _ in range(_NESTED):
        # Removing one tag may produce another.
        text, tags = _TAG.subn(_gap, text)
        if not tags:
            break
    return text


def _gap(tag: re.Match[str]) -> str:
    return " " if _BLOCK.match(tag[0]) else ""


def address(value: Any) -> str | None:
    """Returns the value as the address of a web page; None if it is none that a reader could follow."""
    if not isinstance(value, str) or len(value) > URL_MAX:
        return None
    url = value.strip()
    return url if url.isprintable() and " " not in url and web_parts(url) is not None else None


def hits_of(rows: Iterable[Any], url: str, title: str, snippet: str) -> tuple[tuple[Hit, ...], int]:
    """Returns hits, ranked from 1, from rows with their fields under these names; and the number of rows dropped."""
    hits: list[Hit] = []
    dropped = 0
    for row in rows:
        where = address(row.get(url)) if isinstance(row, dict) else None
        if where is None:
            dropped += 1
            continue
        text = row.get(snippet)
        if isinstance(text, list):
            text = " … ".join(each for each in text if isinstance(each, str))
        hits.append(Hit(len(hits) + 1, where, plain(row.get(title), TITLE_MAX), plain(text, SNIPPET_MAX)))
    return tuple(hits), dropped
