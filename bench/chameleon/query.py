"""Extracts a search query from the reply of a model that was asked for one.

Pure. A query with more words than asked for is used unchanged, up to a bound that all search engines accept.
"""

from __future__ import annotations

import re

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
