"""Stance: which side an answer takes.

Owns the two readings of an answer's text, by the paper's patterns and careful, and the step from a letter to a stance.
Knows no record and no score. A text that matches no form, or that has both letters in the careful reading, has no
letter.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

Letter = Literal["A", "B"]
Orientation = Literal["pro", "con"]
Reading = Literal["paper", "careful"]
Stance = Literal["pro", "con", "other"]

# The paper's four patterns in its order. Its class [A|B] also holds a pipe; as the first match wins, a matched
# pipe ends the search and, being neither A nor B, is Other. It is kept, since published figures were read so.
_PAPER_SOURCES = (r"position ([A|B])", r"position <<([A|B])>>", r"<<([A|B])>>", r"^\s*([A|B])\s*$")
_PAPER_ANY_CASE = tuple(re.compile(source, re.IGNORECASE) for source in _PAPER_SOURCES)
# The same on lower-cased text: without IGNORECASE a pattern's literal start is searched for ten times as fast.
_PAPER_LOWER = tuple(re.compile(source.replace("A|B", "a|b")) for source in _PAPER_SOURCES[:3])
# The only characters that ignoring case makes equal to a letter of "position", and that lower() does not turn into it.
_ODD_LETTERS = ("\u0130", "\u0131", "\u017f")

# Careful: each form stands behind the plain text it starts with, since finding that is ten times as fast as trying it.
# "position" and "answer" are whole words (the lookbehinds see what stands before them); "A or B" names both letters.
_OPEN = r"[\s:=\"'“‘(\[<*`]*"
_NAMED = rf"(?!\w)(?:\s+is\b)?{_OPEN}([ab])\b(?:\s*[|/]\s*([ab])\b|\W{{0,4}}\s(?:or|nor|and)\s\W{{0,4}}([ab])\b)?"
_CAREFUL = (
    ("position", re.compile(r"position(?<!\w.{8})" + _NAMED)),
    ("answer", re.compile(r"answer(?<!\w.{6})" + _NAMED)),
    ("<<", re.compile(r"<<\s*([ab])\s*>>")),
    ("**", re.compile(r"\*\*[ \t]*([ab])[.:)]?[ \t]*\*\*")),
    # A line that is the letter alone, however wrapped, or that opens with "A.", "B)" or "A:".
    ("\n", re.compile(r"\n[^\w\n]*([ab])(?:[.:)](?!\w)|[^\w\n]*(?=\n|\Z))")),
)
# Models repeat themselves.
_REMEMBERED = 1 << 10
_ARTICLE = re.compile(r"\s+[^\W\d_]")


def letter_of(text: str, reading: Reading = "paper") -> Letter | None:
    """Returns the letter that an answer gives, by one of two readings; None, which counts as Other, without one."""
    return _paper_letter(text) if reading == "paper" else _careful_letter(text)


def stance_of(letter: Letter | None, orientation: Orientation) -> Stance:
    """Returns a letter's stance under a template's orientation: `pro` means that A is pro, `con` that A is con."""
    if letter is None:
        return "other"
    return "pro" if (letter == "A") == (orientation == "pro") else "con"


@lru_cache(_REMEMBERED)
def _paper_letter(text: str) -> Letter | None:
    if not text.isascii() and any(odd in text for odd in _ODD_LETTERS):
        for pattern in _PAPER_ANY_CASE:
            if match := pattern.search(text):
                return _as_letter(match[1])
        return None
    lower = text.lower()
    for pattern in _PAPER_LOWER:
        if match := pattern.search(lower):
            return _as_letter(match[1])
    return _as_letter(lower.strip())


@lru_cache(_REMEMBERED)
def _careful_letter(text: str) -> Letter | None:
    # The dotted capital I is the one character that lower() lengthens: places in both texts must agree.
    text = "\n" + text if text.isascii() else "\n" + text.replace(_ODD_LETTERS[0], "I")
    lower = text.lower()
    letter: Letter | None = None
    for start, form in _CAREFUL:
        if start not in lower:
            continue
        for match in form.finditer(lower):
            for place in (match.start(group) for group in range(1, form.groups + 1)):
                # "the position a person takes", "my answer is a firm no": an article, not a letter.
                if place < 0 or (start.isalpha() and text[place] == "a" and _ARTICLE.match(text, place + 1)):
                    continue
                read = _as_letter(lower[place])
                if letter is not None and read != letter:
                    return None
                letter = read
    return letter


def _as_letter(text: str) -> Letter | None:
    if text in ("a", "A"):
        return "A"
    if text in ("b", "B"):
        return "B"
    return None
