"""Claims about what a reader is told on top of Chameleon's part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chameleon_records import STEADY, run_records, turn_record, url
from chameleon_run import panel_of, written_run

from millstream.engine.pairs import Pair
from millstream.metrics.report.chameleon.remarks import remarks

PAIR = Pair("m", None)


def told(folder: Path, records: list[dict[str, Any]], **more: Any) -> str:
    chosen = {name: more.pop(name) for name in ("unclear", "confidence", "empty", "by", "documents") if name in more}
    return "\n".join(remarks(panel_of(written_run(folder, records, **more), **chosen)))


def test_what_is_missing_is_told_first(tmp_path: Path) -> None:
    said = told(tmp_path, [turn_record()], asked={PAIR: {"c": 3, "d": 3}, Pair("n", 0.5): {"c": 3, "d": 3}})
    first, second = said.split("\n")[:2]
    assert first == (
        "m is incomplete: 5 of 6 turns are missing, in 2 conversations, which enter no mean; 0 are complete."
    )
    assert second == "n @ 0.5 has no turns: all 6 are missing."


def test_without_turns_nothing_else_is_said(tmp_path: Path) -> None:
    assert told(tmp_path, [], asked={PAIR: {"c": 3}}) == (
        "There are no turns: nothing is scored.\nm has no turns: all 3 are missing."
    )


def test_pages_that_gave_nothing_are_told_by_their_reasons(tmp_path: Path) -> None:
    hits = [
        {"url": url(1, at), "status": status} for at, status in enumerate(("ok", "blocked", "blocked", "too_large"))
    ]
    said = told(tmp_path, [{**turn_record(), "retrieved": hits}])
    assert "3 of 4 pages (75.0%) gave no text: blocked 2, too large 1." in said


def test_troubles_of_judge_search_and_citations_are_told(tmp_path: Path) -> None:
    records = [
        turn_record(turn=1, judge_repaired=True, invalid_citations=["99"], cited=[url(1, 1)]),
        turn_record(turn=2, stance="unclear", judge_repaired=True, raw_judgement="Hm."),
        turn_record(turn=3, status="refused", stance="unclear", cut={"history": 2}),
    ]
    records[2]["retrieved"] = []
    failures = [{**turn_record(turn=4), "status": "search_failed", "stance": None}]
    said = told(tmp_path, records, failures=failures)
    assert "asked a second time for JSON on 2 turns; 1 of its judgements could not be read" in said
    assert "2 of 3 turns (66.7%) are unclear; they keep the last clear stance." in said
    assert "1 answer is a refusal." in said
    assert "1 search failed for good" in said and "1 search found nothing" not in said
    assert "1 citation stands for no page that was shown." in said
    assert "1 prompt had no room" in said
    assert "2 of 3 turns (66.7%) cite nothing; they add 0 to the source re-use rate." in said


def test_turns_that_stand_there_twice_are_told(tmp_path: Path) -> None:
    said = told(tmp_path, [turn_record(), turn_record()])
    assert "1 turn stand there twice" not in said
    assert "1 turn stands there twice (c/1 of m): the first counts." in said


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"unclear": "drop"}, "Unclear turns are left out of the trace of stances."),
        ({"unclear": "count"}, "An unclear turn counts as a stance of its own."),
        ({"empty": "skip"}, "Turns without sources are left out"),
        ({"by": "hostname"}, "Two pages of one host count as one source."),
        ({"documents": "retrieved"}, "all that were retrieved for it"),
        ({"confidence": "number"}, "Confidence is the judge's own number"),
    ],
)
def test_a_reading_that_is_not_the_default_is_told(tmp_path: Path, chosen: dict[str, str], said: str) -> None:
    records = [turn_record(turn=at, stance=stance) for at, stance in ((1, "critical"), (2, "unclear"))]
    assert said in told(tmp_path / "chosen", records, **chosen)
    assert said not in told(tmp_path / "default", records)


def test_runs_of_different_conversations_are_told_to_be_no_comparison(tmp_path: Path) -> None:
    one = written_run(tmp_path / "a", run_records([STEADY], [0.0], conversations=2, turns=3), "a", data="x")
    two = written_run(tmp_path / "b", run_records([STEADY], [0.5], conversations=3, turns=3), "b", data="y")
    said = "\n".join(remarks(panel_of(one, two)))
    assert "they are no comparison" in said and "different data sets" in said
    assert "no comparison" not in "\n".join(remarks(panel_of(one)))


def test_conversations_that_never_change_are_told(tmp_path: Path) -> None:
    said = told(tmp_path, [turn_record(turn=1), turn_record(turn=2), turn_record(conversation="d")])
    assert "2 of 2 complete conversations (100.0%) never change their stance" in said
    assert "1 of 2 complete conversations has no score" in said
