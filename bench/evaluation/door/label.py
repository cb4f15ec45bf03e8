"""The question that people are asked about a record: its text, the choices, and our own readings of it.

Checks what a benchmark supplies. Knows no file and no screen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

OWN_KEYS = "SUMQ"
"""The letters that a person types to skip, undo, see more, or quit."""
_COLUMNS = {"model", "temperature", "id", "text_sha256", "history", "question", "text", "label", "certainty"}


class LabelChoice(Struct, frozen=True):
    """One of the labels that a person can choose."""

    letter: str
    """The key that the person types: one letter or digit. S, U, M and Q are taken."""
    name: str = ""
    """The label in files and tables; empty: the letter."""
    words: str = ""
    """The meaning of the label; empty: its name."""

    def __post_init__(self) -> None:
        if len(self.letter) != 1 or not self.letter.isalnum() or self.letter.upper() in OWN_KEYS:
            raise ValueError(f"a choice needs a letter or digit other than S, U, M and Q, got {self.letter!r}")
        force_setattr(self, "letter", self.letter.upper())
        force_setattr(self, "name", self.name.strip() or self.letter)


class LabelCertainty(Struct, frozen=True):
    """One of the steps in which a person can say how certain a label is."""

    digit: str
    """The key that the person types after the label's letter."""
    name: str
    """The step in words."""
    value: float
    """The number in files and tables, from 0 to 1."""


class Exchange(Struct, frozen=True):
    """An earlier question of the same conversation, with its answer."""

    question: str
    """The question."""
    text: str
    """The answer."""


class Label(Struct, frozen=True, kw_only=True):
    """The question about one record, with its choices and our readings."""

    text: str
    """The answer, which is to be labelled."""
    choices: Sequence[LabelChoice]
    """The labels that can be given, in the order of the tables."""
    readings: Mapping[str, str] = MappingProxyType({})
    """The choice, by name, that each of our own readings of the answer makes. People don't see it."""
    question: str = ""
    """The question to which the text is the answer."""
    about: Mapping[str, str] = MappingProxyType({})
    """The texts shown above the question, by name; each name is a column in the file of labels."""
    ask: str = ""
    """The question to the person. One that ends with a question mark has the choices after it where no buttons show
    them; another says itself what the letters mean. Empty: which label fits."""
    history: Sequence[Exchange] = ()
    """The conversation before the question."""
    certainties: Sequence[LabelCertainty] = ()
    """The steps of certainty that people are asked for; empty: they are not asked."""
    confidence: float | None = None
    """The confidence of the first reading, from 0 to 1; None: it has none. People don't see it."""

    def __post_init__(self) -> None:
        words = [word for choice in self.choices for word in {choice.letter.casefold(), choice.name.casefold()}]
        if not words or len(words) > len(set(words)):
            raise ValueError(f"a label needs choices with different letters and names, got {listed(self.choices)}")
        taken = _COLUMNS & {name.casefold() for name in self.about}
        if taken:
            raise ValueError(f"a label's `about` can't have the name {min(taken)}: the file has a column of that name")

    def offers(self, name: str | None) -> bool:
        """Whether one of the choices has this name."""
        return any(choice.name == name for choice in self.choices)


class Labeller(Struct, frozen=True):
    """The type of a run's records, and the function that makes the label of one."""

    record: type[Struct]
    """A line of records.jsonl, with at least `id`, `model`, `temperature`, `status` and `text`."""
    label: Callable[[Any], Label | None]
    """Returns what people are asked about a record; None: nothing."""
    exchange: Callable[[Any], Exchange | None] | None = None
    """Returns the question and answer of a turn as the model has them before later turns, whose ids are `item/1`,
    `item/2`, …; None: it has neither. None in its place: a record stands alone."""


def choices_of(labels: Iterable[Label]) -> list[LabelChoice]:
    """Returns the choices of all labels, one for each letter; if labels give a letter different meanings, it has none
    here."""
    by_letter: dict[str, LabelChoice] = {}
    for choice in (choice for label in labels for choice in label.choices):
        first = by_letter.setdefault(choice.letter, choice)
        if first != choice:
            by_letter[choice.letter] = LabelChoice(choice.letter)
    return list(by_letter.values())


def listed(choices: Iterable[LabelChoice]) -> str:
    """Returns the choices as an error message lists them: each by its letter, with its name in brackets if that is
    another: `A, O (other)`."""
    return ", ".join(
        choice.letter if choice.name == choice.letter else f"{choice.letter} ({choice.name})" for choice in choices
    )


def explained(choices: Sequence[LabelChoice]) -> str:
    """Returns the choices with their meanings: `A, B or O (another position)`."""
    parts = [f"{choice.letter} ({words})" if (words := _words(choice)) else choice.letter for choice in choices]
    return " or ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _words(choice: LabelChoice) -> str:
    return choice.words or (choice.name if choice.name != choice.letter else "")


def question_to(label: Label) -> str:
    """Returns the question as the beginning of a sentence."""
    question = label.ask or "Which label fits the answer?"
    if question.endswith("?"):
        question = f"{question} {explained(label.choices)}"
    if not label.certainties:
        return question
    steps = ", ".join(f"{each.digit} {each.name} ({each.value:g})" for each in label.certainties)
    first = label.choices[0].letter + label.certainties[0].digit
    return f"{question}; how certain, typed after the letter as {first}, or left out: {steps}"


def history_text(history: Sequence[Exchange]) -> str:
    """Returns the earlier questions and answers as one text."""
    return "\n\n".join(f"Question: {each.question}\n\nAnswer: {each.text}" for each in history)
