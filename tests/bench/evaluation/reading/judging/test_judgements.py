"""The lines of judgements.jsonl as they are read beside a run: what is damaged or none is refused with its place."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from millstream.bench.evaluation.door.judgement import JUDGEMENTS, Judgement, read_judgements
from millstream.bench.evaluation.door.kept_answer import Key
from millstream.configuration.errors import UsageError
from millstream.engine.fault import DamagedJournal
from millstream.engine.pairs import Pair
from millstream.engine.runs.journal import sealed


def line(number: int) -> bytes:
    return sealed(msgspec.json.encode(Judgement(id=f"c/{number}", model="lab/x", temperature=0.5, judge="lab/judge")))


def test_a_judgement_names_its_answer_and_half_a_line_is_skipped(tmp_path: Path) -> None:
    assert list(read_judgements(tmp_path, Judgement)) == []
    (tmp_path / JUDGEMENTS).write_bytes(line(0) + line(1) + line(2)[:20])
    answers = [each.answer for each in read_judgements(tmp_path, Judgement)]
    assert answers == [Key(Pair("lab/x", 0.5), "c/0"), Key(Pair("lab/x", 0.5), "c/1")]


@pytest.mark.parametrize(
    ("bad", "error", "said"),
    [
        (line(1).replace(b"c/1", b"c/7"), DamagedJournal, "line 2 is damaged: restore the file, or remove this line"),
        (b'{"id": 7}\n', UsageError, "line 2: expected a judgement, got something else"),
    ],
)
def test_what_is_damaged_or_none_is_refused_with_its_place(
    tmp_path: Path, bad: bytes, error: type[Exception], said: str
) -> None:
    (tmp_path / JUDGEMENTS).write_bytes(line(0) + bad)
    with pytest.raises(error, match=said):
        list(read_judgements(tmp_path, Judgement))
