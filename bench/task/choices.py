"""The scorer of multiple-choice answers: which option an answer chooses, and which is right.

Owns what the data may give as the right option. How a letter is found in a text is in `letters`.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from msgspec import structs

from ...engine.call import Reply
from .letters import letter_in
from .rows import TaskError, TaskRow, shown
from .scorers import Score, Scorer
from .template import LETTERS, ColumnSlot, Template, template
from .texts import normalised


class Choice(Scorer, frozen=True):
    """The scorer that reads the letter of a multiple-choice answer: see `choice`."""

    expected: Template
    letters: str = "ABCD"
    options: Template | None = None
    shuffle: int | None = None

    def score(self, reply: Reply, row: TaskRow) -> Score:
        options, letters = self._options(row)
        # The letters of the data in the order in which their options are shown.
        order = row.order or letters
        read = letter_in(reply.text, letters, tuple(options[letters.index(letter)] for letter in order if options))
        if read is None:
            return Score(None, problem="the answer names no letter for certain")
        of_data = order[letters.index(read)]
        return Score(float(of_data == self.wanted(row)), of_data)

    def shuffled(self, row: TaskRow, trial: int) -> TaskRow:
        """Returns the row as it is shown in a trial: with its options in the order that the seed gives."""
        assert self.options is not None
        (column,) = (piece.name for piece in self.options.pieces if isinstance(piece, ColumnSlot))
        options, letters = list(self.options.alternatives(row)), self._options(row)[1]
        seed = f"{self.shuffle}\0{row.id}\0{trial}"  # all orders are equally likely
        order = "".join(sorted(letters, key=lambda letter: sha256(f"{seed}\0{letter}".encode()).digest()))
        data = {**row.data, column: [options[letters.index(letter)] for letter in order]}
        return structs.replace(row, data=data, order=order)

    def describe(self) -> dict[str, Any]:
        return {name: value for name, value in super().describe().items() if (name, value) != ("shuffle", None)}

    @property
    def has_labels(self) -> bool:
        return True

    def label(self, text: str) -> str:
        return text.strip().upper()

    def _options(self, row: TaskRow) -> tuple[tuple[str, ...], str]:
        if self.options is None:
            return (), self.letters
        options = tuple(map(str, self.options.alternatives(row)))
        if not 2 <= len(options) <= len(LETTERS):
            raise TaskError(f"score: expected 2 to {len(LETTERS)} options in {row.where}, got {len(options)}")
        return options, LETTERS[: len(options)]

    def wanted(self, row: TaskRow) -> str:
        options, letters = self._options(row)
        values = self.expected.alternatives(row)
        value = values[0] if len(values) == 1 else values
        if isinstance(value, int) and not isinstance(value, bool):
            if 0 <= value < len(letters):
                return letters[value]
        elif isinstance(value, str):
            letter = value.strip().strip("().").upper()
            if len(letter) == 1 and letter in letters:
                return letter
            named = [at for at, option in enumerate(options) if normalised(option) == normalised(value)]
            if len(named) == 1:
                return letters[named[0]]
        raise TaskError(
            f"score: the expected answer of {row.where} is {shown(value)}: give one of the letters {letters}, the "
            f"place of the right option as a whole number from 0, or the text of one of the options"
        )


def choice(expected: str, letters: str = "ABCD", options: str | None = None, *, shuffle: int | None = None) -> Choice:
    """Returns a scorer that gives 1 where the answer chooses the right letter, 0 where it chooses another.

    expected: a template of the right letter. A column that holds a whole number (not a text) is a place, from 0.
    letters: the letters of the options.
    options: a template of one column that lists the options, as "{choices}": then there are as many letters as options,
    and the text of an option stands for its letter, in the data and as a whole answer.
    shuffle: a seed: the prompt shows the options of each row and trial in another order, which the seed, the row's id
    and the trial decide. The letter of an answer is read back: `read` and the true letter are those of the data, and
    the record's `order` has the letters as they were shown.

    An answer has a letter where it is a letter ("b", "(B)"), where it states one ("The answer is B"; the last statement
    counts; `\\boxed{B}`), where its last line is one, or where it begins with one and its mark ("B. Paris") and marks
    no other. Any other answer cannot be read and has no score.
    """
    if not 2 <= len(set(letters)) == len(letters) or not all(letter in LETTERS for letter in letters):
        raise TaskError(f"choice: letters: expected two or more different capital letters, got {shown(letters)}")
    listed = None if options is None else template(options, "score")
    if shuffle is not None:
        if not isinstance(shuffle, int) or isinstance(shuffle, bool):
            raise TaskError(f"choice: shuffle: expected a whole number as seed, got {shown(shuffle)}")
        if listed is None or [type(piece) for piece in listed.pieces] != [ColumnSlot]:
            raise TaskError('choice: shuffle: expected the column of the options, as options="{choices}"')
    return Choice(template(expected, "score"), letters, listed, shuffle)
