"""The fixed rubric: how certain a judge's rationale sounds, as a number from 0.33 to 1.

Owns the words, their numbers, the effect of negations, and the scale from 0 to 1. Pure; knows no record and no judge.
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

# What a negation makes doubtful: the words above, and the adjectives of the certain ones, which alone have no number.
_NEGATED = {*_NUMBERS, "clear", "definite", "certain", "strong", "unequivocal", "explicit"}
_NEGATIONS = frozenset(("not", "no", "never", "neither", "nor", "nothing", "cannot", "without"))
# These need no word behind them.
_DOUBTS = frozenset(("hardly", "barely", "scarcely"))
# "Not only clearly", "no doubt": no negation. Behind one of the others a new thought begins.
_NO_NEGATION = frozenset(("only", "just", "merely", "simply", "doubt", "question"))
_ENDS = frozenset(("and", "but", "yet", "because", "since", "which", "for", "then", "while", "or"))
_REACH = 3
_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|[.,;:!?()\[\]–—]")


def confidence_of(rationale: str) -> float:
    """Returns the lowest number among the rationale's certainty words (whole words, in any case); 0.67 without any. A
    negated word, as in "not clearly", "no clear stance" or "isn't certain", counts as 0.33, and so does "hardly"."""
    lowest = min((_NUMBERS[word.lower()] for word in _WORD.findall(rationale)), default=PROBABLE)
    return DOUBTFUL if lowest > DOUBTFUL and _is_negated(rationale) else lowest


def _is_negated(rationale: str) -> bool:
    """Returns whether a word is negated at most three words before it, within the same part of a sentence."""
    words = [token.lower() for token in _TOKEN.findall(rationale)]
    for at, word in enumerate(words):
        if word in _DOUBTS:
            return True
        if word not in _NEGATIONS and not word.endswith(("n't", "n’t")):
            continue
        for behind in words[at + 1 : at + 1 + _REACH]:
            if behind in _NEGATED:
                return True
            if behind in _ENDS or behind in _NO_NEGATION or not behind[0].isalpha():
                break
    return False
