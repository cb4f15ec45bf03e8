"""A full-text index in memory, ranked by BM25.

Knows documents only by their numbers, counted from 0. Deterministic: the same texts give the same ranking everywhere;
documents of equal score are in the order of their numbers.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

# Robertson's values, which most engines have.
K1 = 1.2
B = 0.75
# Scripts without spaces between words: each character counts as a word.
_SIGNS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[^\W_{_SIGNS}]+|[{_SIGNS}]")
_LONGEST = 64
# One search over megabytes would block all other work.
_PIECE = 1 << 16
_SPACE = re.compile(r"\s")


def words_of(text: str) -> list[str]:
    """Returns the words of a text in lower case, each cut after `_LONGEST` characters."""
    return [word[:_LONGEST] for piece in _pieces(text) for word in _WORD.findall(piece.casefold())]


def _pieces(text: str) -> Iterator[str]:
    place = 0
    while place < len(text):
        space = _SPACE.search(text, place + _PIECE, place + 2 * _PIECE)
        end = place + 2 * _PIECE if space is None else space.start()
        yield text[place:end]
        place = end


class Postings:
    """The builder of an index from texts that are added one by one."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._words = array("i")
        self._documents = array("i")
        self._counts = array("f")
        self._lengths = array("f")

    def add(self, text: str) -> None:
        words = words_of(text)
        document = len(self._lengths)
        self._lengths.append(len(words))
        counted = Counter(words)
        numbers = self._numbers
        self._words.extend([numbers.setdefault(word, len(numbers)) for word in counted])
        self._counts.extend(counted.values())
        self._documents.extend([document] * len(counted))

    def index(self) -> TextIndex:
        words = np.frombuffer(self._words, np.int32)
        order = np.argsort(words, kind="stable")
        starts = np.zeros(len(self._numbers) + 1, np.int64)
        np.cumsum(np.bincount(words, minlength=len(self._numbers)), out=starts[1:])
        return TextIndex(
            self._numbers,
            starts,
            np.frombuffer(self._documents, np.int32)[order],
            np.frombuffer(self._counts, np.float32)[order],
            np.frombuffer(self._lengths, np.float32).astype(np.float64),
        )


class TextIndex:
    """The index. The documents that hold word w, and how often each does, are at `starts[w]` to `starts[w + 1]`."""

    def __init__(
        self,
        numbers: dict[str, int],
        starts: npt.NDArray[np.int64],
        documents: npt.NDArray[np.int32],
        counts: npt.NDArray[np.float32],
        lengths: npt.NDArray[np.float64],
    ) -> None:
        self._numbers = numbers
        self._starts = starts
        self._documents = documents
        self._counts = counts
        mean = lengths.mean() if len(lengths) and lengths.any() else 1.0
        self._damping = K1 * (1 - B + B * lengths / mean)

    def __repr__(self) -> str:
        return f"<TextIndex [{len(self._damping):,} documents, {len(self._numbers):,} words]>"

    def ranked(self, query: str) -> list[int]:
        """Returns the numbers, from 0, of the documents that have any word of the query, best first."""
        scores = np.zeros(len(self._damping))
        # Sums of fractions depend on their order, so words are sorted.
        for word in sorted(set(words_of(query))):
            number = self._numbers.get(word)
            if number is None:
                continue
            span = slice(self._starts[number], self._starts[number + 1])
            documents, counts = self._documents[span], self._counts[span].astype(np.float64)
            rarity = np.log(1 + (len(scores) - len(documents) + 0.5) / (len(documents) + 0.5))
            scores[documents] += rarity * counts * (K1 + 1) / (counts + self._damping[documents])
        matching = np.flatnonzero(scores)
        # Rounded, since the last bits of a logarithm differ between machines.
        order = np.argsort(-np.round(scores[matching], 9), kind="stable")
        ranked: list[int] = matching[order].tolist()
        return ranked
