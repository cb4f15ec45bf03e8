"""Detects topics and questions that repeat an earlier one in nearly the same words.

Pure. Case, punctuation, word order, word endings and function words are ignored.
"""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"[^\W_]+")
_EMPTY = re.compile(
    r"an?|and|are|as|at|be|by|can|could|do|does|for|from|has|have|in|into|is|its?|of|on|or|should|that|the|their|this|to|"
    r"was|were|will|with|would"
)


def mark_of(text: str) -> tuple[str, ...]:
    """Returns the sorted stems, each once, of a text's words without function words (with them, if it has no others).
    Near-duplicates have equal ones."""
    plain = unicodedata.normalize("NFKD", text.casefold()).replace("’", "").replace("'", "")
    words = _WORD.findall("".join(char for char in plain if not unicodedata.combining(char)))
    kept = [_stem(word) for word in words if not _EMPTY.fullmatch(word)]
    return tuple(sorted(set(kept))) or tuple(words)


def _stem(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("xes", "ches", "shes", "sses")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
