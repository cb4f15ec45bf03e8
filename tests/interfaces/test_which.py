"""Which benchmark records are of, where no manifest says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chameleon_records import turn_record

from millstream.bench.evaluation.door.registry import benchmark_of
from millstream.engine.fault import DamagedJournal

pytestmark = pytest.mark.needs_benchmark("millstone", "chameleon")

TURN = json.dumps(turn_record())


@pytest.mark.parametrize(
    ("first", "benchmark"),
    [
        (TURN, "chameleon"),
        ("\n\n" + TURN, "chameleon"),
        (json.dumps(turn_record(text="half \ud83d")), "chameleon"),
        ('{"retrieved": []}', "chameleon"),
        ('{"id": "i/1/baseline/0", "text": "\\"conversation\\": half \\ud83d"}', "millstone"),
        ("", "millstone"),
        ("[]", "millstone"),
        ('{"conversation": ', "millstone"),
        ("\xff", "millstone"),
    ],
)
def test_the_first_record_shows_the_benchmark_whatever_its_texts_hold(
    tmp_path: Path, first: str, benchmark: str
) -> None:
    (tmp_path / "records.jsonl").write_text(first, encoding="latin-1")
    assert benchmark_of(tmp_path).name == benchmark


def test_a_first_line_that_is_nested_too_deeply_is_named(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text("[" * 100_000)
    with pytest.raises(DamagedJournal, match=r"records\.jsonl line 1 is nested more than 900 deep"):
        benchmark_of(tmp_path)
