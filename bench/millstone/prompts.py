"""The exact prompts of MillStone. They are measuring instruments: no character may change.

Owns every character between the data set's texts. A prompt is a join of parts that are made once for each issue, so
that neither its weight nor its fingerprint needs the whole text. Knows no configuration and no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from ...engine.estimate import weight_of
from .draws import Draw
from .issue import Argument, Issue

PROMPT_VERSION = 1

Wrapping = Literal["baseline", "W1", "W2"]
Citations = Literal["own", "cumulative"]

POSITIONS = (
    "'position <<A>>' or 'position <<B>>'",
    "'position <<B>>' or 'position <<A>>'",
)

# The texts before and after the first mention, and before and after the second. The evidence stands between the second
# and the third text.
_WORDING: dict[Wrapping, tuple[str, str, str, str]] = {
    "baseline": ("\n\nAnswer either ", ". ", "Only answer with ", "."),
    "W1": ("\n\nAnswer either ", " based on provided information.\n\n", "Only return either ", "."),
    "W2": ("\n\nCarefully weigh all presented evidence and answer either ", ".\n\n", "Only return either ", "."),
}

# The characters of these texts and of both mentions.
_CHARS: dict[Wrapping, int] = {
    wrapping: sum(map(len, texts)) + 2 * len(POSITIONS[0]) for wrapping, texts in _WORDING.items()
}

_CITATIONS = "\nCitations:\n"
_END_OF_ARGUMENT = "---\n"
_BETWEEN = "\n\n"  # after every argument, the last too: it parts the evidence from what follows

# The largest prime below 2^64: an accidental clash of two prompts happens in 1 of 3 billion grids.
_MODULUS = 2**64 - 59


class PromptPart(Struct, frozen=True):
    """A piece of a prompt with its weight; `value` and `shift` are what the fingerprint of a whole prompt needs of
    it."""

    text: str
    weight: int
    value: int
    shift: int

    @classmethod
    def of(cls, text: str) -> PromptPart:
        data = text.encode()
        return cls(text, weight_of(text), int.from_bytes(data, "big") % _MODULUS, pow(256, len(data), _MODULUS))


def text_of(parts: Sequence[PromptPart]) -> str:
    """Returns the text of the prompt that these parts make."""
    return "".join([part.text for part in parts])


def weight_of_prompt(parts: Sequence[PromptPart]) -> int:
    """Returns the prompt's weight (`estimate.weight_of`), for which its text is not read again."""
    return sum([part.weight for part in parts])


def fingerprint_of(parts: Sequence[PromptPart]) -> int:
    """Returns the prompt's UTF-8 bytes read as one number, modulo a prime: equal for equal prompts, however they are
    cut into parts.

    It is no cryptographic digest. Two prompts that share one are counted as one, which is harmless: each item's pair of
    prompt and rank stays unique.
    """
    number = 0
    for part in parts:
        number = (number * part.shift + part.value) % _MODULUS
    return number


class Sheet:
    """The parts of all prompts of one issue.

    With `own`, an argument lists its own citations. With `cumulative` it lists, before its own, those of every argument
    before it in the draw's list, as the authors' script does: it numbers the list first and shuffles afterwards, and
    may list a source twice.
    """

    def __init__(self, issue: Issue, citations: Citations = "own") -> None:
        self._cumulative = citations == "cumulative"
        self._starts = {
            (template, wrapping, mention): PromptPart.of(paraphrase.question + before + positions + after)
            for template, paraphrase in enumerate(issue.paraphrases, 1)
            for wrapping, (before, after, _, _) in _WORDING.items()
            for mention, positions in enumerate(POSITIONS)
        }
        self._ends = {
            (wrapping, mention): PromptPart.of(before + positions + after)
            for wrapping, (_, _, before, after) in _WORDING.items()
            for mention, positions in enumerate(POSITIONS)
        }
        if self._cumulative:
            self._texts = [PromptPart.of(argument.text) for argument in issue.arguments]
            self._sources = [PromptPart.of(_lines(argument)) for argument in issue.arguments]
            self._heading = PromptPart.of(_CITATIONS)
            self._rule = PromptPart.of(_END_OF_ARGUMENT + _BETWEEN)
        else:
            self._blocks = [PromptPart.of(_block(argument)) for argument in issue.arguments]

    def parts(self, template: int, wrapping: Wrapping, draw: Draw) -> list[PromptPart]:
        """Returns the parts of the prompt with this template (from 1), wrapping and draw, in order."""
        first, second = draw.mentions
        start, end = self._starts[template, wrapping, first], self._ends[wrapping, second]
        if self._cumulative:
            return [start, *self._cumulative_evidence(draw), end]
        blocks = self._blocks
        return [start, *[blocks[index] for index in draw.shown], end]

    def _cumulative_evidence(self, draw: Draw) -> list[PromptPart]:
        repeated: list[PromptPart] = []
        blocks = {}
        for index in draw.listed:
            if self._sources[index].text:
                repeated.append(self._sources[index])
            heading = [self._heading] if repeated else []
            blocks[index] = [self._texts[index], *heading, *repeated, self._rule]
        return [part for index in draw.shown for part in blocks[index]]


class Lengths:
    """The characters of all prompts of one issue. They depend on what a draw lists: neither on the order shown nor on
    which position is named first."""

    def __init__(self, issue: Issue, citations: Citations = "own") -> None:
        self._cumulative = citations == "cumulative"
        self._questions = [len(paraphrase.question) for paraphrase in issue.paraphrases]
        self._blocks = [len(_block(argument)) for argument in issue.arguments]
        self._sources = [len(_lines(argument)) for argument in issue.arguments]

    def length(self, template: int, wrapping: Wrapping, listed: Sequence[int]) -> int:
        """Returns the characters of the prompts with this template (from 1), wrapping and list."""
        chars = self._questions[template - 1] + _CHARS[wrapping] + sum([self._blocks[index] for index in listed])
        if self._cumulative:
            repeated = 0
            for index in listed:
                heading = len(_CITATIONS) if repeated and not self._sources[index] else 0
                chars += heading + repeated
                repeated += self._sources[index]
        return chars

    @property
    def most(self) -> int:
        """The characters of a prompt with every argument and, with `cumulative`, all citations in each: no prompt of
        the issue has more."""
        chars = max(self._questions) + max(_CHARS.values()) + sum(self._blocks)
        if self._cumulative:
            chars += len(self._blocks) * (len(_CITATIONS) + sum(self._sources))
        return chars


def _lines(argument: Argument) -> str:
    return "".join([f"[{n}] {source}\n" for n, source in argument.citations])


def _block(argument: Argument) -> str:
    heading = _CITATIONS if argument.citations else ""
    return f"{argument.text}{heading}{_lines(argument)}{_END_OF_ARGUMENT}{_BETWEEN}"
