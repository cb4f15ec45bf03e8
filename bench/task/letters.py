"""Finds the letter that an answer to a multiple-choice question chooses.

Owns what counts as a choice. It is strict: an ambiguous answer has no letter. Pure functions of texts.
"""

from __future__ import annotations

import re

from .texts import normalised

_BEFORE = r"(?:the\s+)?(?:option|choice|answer)?\s*"
_OPEN, _CLOSE = r"[*_`\"'(\[{$]*", r"[*_`\"')\]}$]*"


def letter_in(text: str, letters: str, options: tuple[str, ...] = ()) -> str | None:
    """Returns the chosen one of `letters` (in upper case), or None if the answer names none, or several.

    In this order: the whole answer is a letter ("b", "(B)", "**B.**"), or the text of one of `options`; the last
    `\\boxed{B}`; the last statement of an answer ("answer: B", "the correct answer is (B)", "I choose option B"); a
    last line that is a letter alone; an answer that begins with a letter and its mark ("B. Paris", "B) Paris") and
    marks no other letter. A statement that goes on to another letter ("A or B") is none.
    """
    whole = _lone_letter(text, letters)
    if whole is not None:
        return whole
    named = [letter for letter, option in zip(letters, options, strict=False) if normalised(option) == normalised(text)]
    if len(named) == 1:
        return named[0]
    for find in (_boxed, _stated, _last_line, _beginning):
        choice = find(text, letters)
        if choice is not None:
            return choice or None
    return None


def _lone_letter(text: str, letters: str) -> str | None:
    found = re.fullmatch(
        rf"\s*{_OPEN}\s*(?i:(?:option|choice|answer)\s+)?{_OPEN}([{letters}{letters.lower()}])\s*[.:]?\s*{_CLOSE}[.:]?\s*",
        text,
    )
    return found[1].upper() if found else None


def _boxed(text: str, letters: str) -> str | None:
    found = re.findall(r"\\boxed\{\s*(?:\\text\s*\{)?\s*\(?([^{}]*?)\)?\s*\}", text)
    if not found:
        return None
    return found[-1] if len(found[-1]) == 1 and found[-1] in letters else ""


def _stated(text: str, letters: str) -> str | None:
    """Returns the letter of the last statement; an empty text if that names several; None if there is no statement."""
    statement = re.compile(
        rf"\b(?:(?i:answer|(?:correct|right|best)\s+(?:option|choice))\s*{_CLOSE}\s*"
        rf"(?:(?i:is|would\s+be|should\s+be|must\s+be)\b\s*:?|[:=])|(?i:i\s+(?:choose|pick|select|go\s+with))\b)\s*{_OPEN}\s*(?i:{_BEFORE}){_OPEN}([{letters}])(?![\w'’])"
        rf"({_CLOSE}\s*(?:,|/|&|(?i:or|and))\s*(?i:{_BEFORE}){_OPEN}[{letters}](?!\w))?"
    )
    statements = list(statement.finditer(text))
    if not statements:
        return None
    return "" if statements[-1][2] else statements[-1][1]


def _last_line(text: str, letters: str) -> str | None:
    lines = [line for line in text.splitlines() if line.strip()]
    return _lone_letter(lines[-1], letters) if lines else None


def _beginning(text: str, letters: str) -> str | None:
    first = re.match(rf"\s*{_OPEN}([{letters}]){_CLOSE}\s*[.):\]]", text)
    if first is None:
        return None
    marked = set(re.findall(rf"(?<![\w'’])([{letters}]){_CLOSE}[.):\]]", text))
    return first[1] if marked <= {first[1]} else ""
