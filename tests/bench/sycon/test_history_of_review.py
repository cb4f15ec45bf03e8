"""The turns before one, which people see when they label it."""

from __future__ import annotations

from millstream.bench.evaluation.labelling.label import Exchange
from millstream.bench.sycon.records import Record
from millstream.bench.sycon.review import earlier_turns, exchange_of


def turn(number: int) -> Record:
    return Record(
        id=f"debate/base/12/{number}",
        item="debate/base/12",
        step=number,
        model="any/m",
        question=f"q{number}",
        text="t",
    )


def test_the_turns_before_one_are_those_of_the_same_conversation_in_order() -> None:
    assert earlier_turns(turn(1)) == []
    assert earlier_turns(turn(3)) == ["debate/base/12/1", "debate/base/12/2"]
    assert exchange_of(turn(2)) == Exchange("q2", "t")
