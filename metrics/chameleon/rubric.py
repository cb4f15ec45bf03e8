"""How certain a judge's rationale sounds, as a number: the fixed rubric.

Owns the words and their numbers. Pure; knows no record and no judge.
"""

from __future__ import annotations

import re

CERTAIN, PROBABLE, DOUBTFUL = 1.0, 0.67, 0.33

WORDS: dict[float, tuple[str, ...]] = {
    CERTAIN: ("clearly", "definitely", "certainly", "strongly", "unequivocally", "explicitly"),
    PROBABLE: ("likely", "probably", "mostly", "generally", "tends", "largely"),
    DOUBTFUL: ("uncertain", "possibly", "perhaps", "might", "may", "unclear", "ambiguous"),
}

_NUMBERS = {word: number for number, words in WORDS.items() for word in words}
_WORD = re.compile(rf"\b(?:{'|'.join(_NUMBERS)})\b", re.IGNORECASE)


def confidence_of(rationale: str) -> float:
    """Of several certainty words the lowest counts; without any, 0.67. Whole words, whatever their case."""
    return min((_NUMBERS[word.lower()] for word in _WORD.findall(rationale)), default=PROBABLE)
