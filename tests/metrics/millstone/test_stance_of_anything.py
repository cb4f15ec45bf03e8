"""The patterns that read a stance never take long: a megabyte of what makes patterns backtrack is read in a moment."""

from __future__ import annotations

import random
import time

import pytest
from torture import SEED, times

from millstream.metrics.millstone.stance import Reading, letter_of

MEGABYTE = 1_000_000
# Of the processor's time. A pattern that backtracks over a megabyte takes hours.
READ_S = 2.0
PIECES = (
    "position ", "answer ", "position is ", "<<", ">>", "**", "** ", "* ", "\n", "\n\n", " ", "\t", "A", "B", "a or b ",
    "A|", "<<A", "(", "[", "`", "\u0130", "\u0131", "\u017f", "é", "\u2028", "x", "is ", "or ", "_", "1", "\\",
)  # fmt: skip


@pytest.mark.parametrize("reading", ["paper", "careful"])
@pytest.mark.parametrize("piece", [*PIECES, "position" + " " * 1000, "answer is" + "(" * 500, "\n" + "." * 999, "<< "])
def test_one_piece_again_and_again_is_read_in_a_moment(piece: str, reading: Reading) -> None:
    for end in ("", "position x")[: times(1, 2)]:
        text = piece * (MEGABYTE // len(piece)) + end
        begun = time.process_time()
        assert letter_of(text, reading) in ("A", "B", None)
        assert time.process_time() - begun < READ_S


@pytest.mark.parametrize("reading", ["paper", "careful"])
def test_any_mixture_of_pieces_is_read_in_a_moment(reading: Reading) -> None:
    chance = random.Random(SEED)
    for _ in range(times(2, 300)):
        some = chance.sample(PIECES, chance.randint(1, 4))
        text = "".join(chance.choices(some, k=MEGABYTE // 3))[:MEGABYTE]
        begun = time.process_time()
        assert letter_of(text, reading) in ("A", "B", None)
        assert time.process_time() - begun < READ_S
