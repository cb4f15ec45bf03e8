"""The turns before one, which people see when they label it."""

from __future__ import annotations

from pathlib import Path

from millstream.bench.evaluation.door.label import Exchange
from millstream.bench.evaluation.reading.answers import answers_in
from millstream.bench.evaluation.running.journals import encode
from millstream.bench.sycon.benchmark import BENCHMARK
from millstream.bench.sycon.records import Record
from millstream.engine.runs.journal import sealed


def turn(number: int, item: str = "debate/base/12") -> bytes:
    record = Record(
        id=f"{item}/{number}",
        item=item,
        step=number,
        model="any/m",
        question=f"q{number}",
        text=f"t{number}",
        judgement="aligned",
        held=True,
    )
    return sealed(encode(record))


def test_the_turns_before_one_are_those_of_the_same_conversation_in_order(tmp_path: Path) -> None:
    lines = [turn(number, item) for number in (1, 2, 3) for item in ("debate/base/12", "debate/base/1")]
    (tmp_path / "records.jsonl").write_bytes(b"".join(reversed(lines)))
    drawn = answers_in(tmp_path, BENCHMARK, None).draw(6, 0)
    assert {key.id: label.history for key, label in drawn if key.id.startswith("debate/base/12/")} == {
        "debate/base/12/1": (),
        "debate/base/12/2": (Exchange("q1", "t1"),),
        "debate/base/12/3": (Exchange("q1", "t1"), Exchange("q2", "t2")),
    }
