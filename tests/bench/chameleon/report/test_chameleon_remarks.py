"""Claims about what a reader is told on top of Chameleon's part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chameleon_records import STEADY, SWAYING, run_records, turn_record, url
from chameleon_run import panel_of, written_run
from msgspec import structs

from millstream.bench.chameleon.report.part import tables_and_figures
from millstream.bench.chameleon.report.remarks import remarks
from millstream.bench.chameleon.report.runs import ConversationRun
from millstream.engine.runs.pairs import Pair

PAIR = Pair("m", None)


def told(folder: Path, records: list[dict[str, Any]], **more: Any) -> str:
    chosen = {name: more.pop(name) for name in ("confidence", "empty", "by", "documents") if name in more}
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


def test_turns_that_no_judge_read_are_told(tmp_path: Path) -> None:
    records = [turn_record(turn=at, stance=stance) for at, stance in ((1, "critical"), (2, "balanced"))]
    assert "read by no judge" not in told(tmp_path / "judged", records)
    unjudged = turn_record(turn=3, status="refused", stance="unclear", confidence=None)
    said = told(tmp_path / "unjudged", [*records, unjudged], asked={PAIR: {"c": 4}})
    assert "1 of 3 turns (33.3%) was read by no judge" in said


def test_turns_that_stand_there_twice_are_told(tmp_path: Path) -> None:
    said = told(tmp_path, [turn_record(), turn_record()])
    assert "1 turn stand there twice" not in said
    assert "1 turn stands there twice (c/1 of m): the first counts." in said


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"empty": "literal"}, "A turn without sources: adds 0 to the source re-use rate (--uncited literal)."),
        ({"by": "hostname"}, "Two sources are one: by host name."),
        ({"documents": "retrieved"}, "Sources of a turn: all that were retrieved for it."),
        ({"confidence": "number"}, "Confidence: the judge's own number."),
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
    assert "1 of 1 scored conversations (100.0%) never change their stance" in said
    assert "1 of 2 complete conversations of m is unscored, since too few of its turns have a clear stance" in said
    assert "m has no rank" in said


def asked_like(folder: Path, label: str, **changed: Any) -> ConversationRun:
    """A run of one turn; `changed` are fields of its specification."""
    specification = {
        "judge": "sim/judge",
        "judge_prompt": "extended",
        "judge_temperature": 0.0,
        "search": "search/brave",
        "retrieval": "own",
        "queries_by": None,
        "pages": 20,
        "page_tokens": 1_500,
        "keeps_pages": False,
        "turns": 15,
        "order": "written",
        "seed": None,
        "max_tokens": None,
        "prompt_version": 1,
        "pairs": [[f"m-{label}", None]],
        "prompt_tokens": {f"m-{label}": 111_104, "sim/judge": 5},
        "endpoints": {"search/corpus": "corpus:0123456789", f"m-{label}": f"http://{label}.test"},
        "readings": {"documents": "cited", "by": "url", "empty": "literal", "confidence": "rubric"},
    }
    records = [turn_record(f"m-{label}")]
    return written_run(folder / label, records, label, data="d" * 64, specification=specification | changed)


def incomparable(folder: Path, **changed: Any) -> str:
    runs = asked_like(folder, "first"), asked_like(folder, "second", **changed)
    said = [remark for remark in remarks(panel_of(*runs)) if "no comparison" in remark]
    assert len(said) <= 1
    return "".join(said)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"judge": "sim/other"}, "judge (sim/judge in first; sim/other in second)"),
        ({"judge_prompt": "paper"}, "judge prompt (extended in first; paper in second)"),
        ({"judge_temperature": None}, "judge temperature (0 in first; none in second)"),
        ({"search": "search/exa"}, "search (search/brave in first; search/exa in second)"),
        ({"queries_by": ["m", 0.5]}, "retrieval (own in first; queries of m @ 0.5 in second)"),
        ({"pages": 5}, "pages (20 in first; 5 in second)"),
        ({"page_tokens": 500}, "page tokens (1,500 in first; 500 in second)"),
        ({"keeps_pages": True}, "old pages (dropped in first; kept in second)"),
        ({"prompt_tokens": {"m-second": 4_000}}, "window (111,104 tokens in first; 4,000 tokens in second)"),
        ({"turns": 3}, "turns (15 in first; 3 in second)"),
        ({"order": "shuffled", "seed": 7}, "order (written in first; shuffled by seed 7 in second)"),
        ({"max_tokens": 99}, "max_tokens (none in first; 99 in second)"),
        ({"prompt_version": 2}, "prompt version (1 in first; 2 in second)"),
    ],
)
def test_runs_that_were_not_made_alike_are_told_by_what_differs(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    assert f"They differ in {said}. What lies" in incomparable(tmp_path, **changed)


def test_runs_that_were_made_alike_are_told_nothing_of_it(tmp_path: Path) -> None:
    assert incomparable(tmp_path) == ""


def test_runs_that_read_their_records_differently_are_told_and_that_the_report_does_not(tmp_path: Path) -> None:
    readings = {"documents": "cited", "by": "hostname", "empty": "literal", "confidence": "number"}
    runs = asked_like(tmp_path, "first"), asked_like(tmp_path, "second", readings=readings)
    [said] = [remark for remark in remarks(panel_of(*runs)) if "read alike" in remark]
    assert "by (url in first; hostname in second), confidence (rubric in first; number in second)." in said
    assert not [remark for remark in remarks(panel_of(*runs)) if "no comparison" in remark]


def test_two_corpora_are_two_searches(tmp_path: Path) -> None:
    one = asked_like(tmp_path, "first", search="search/corpus")
    two = asked_like(tmp_path, "second", search="search/corpus", endpoints={"search/corpus": "corpus:fedcba9876"})
    [said] = [remark for remark in remarks(panel_of(one, two)) if "no comparison" in remark]
    assert "search (search/corpus 01234567 in first; search/corpus fedcba98 in second)" in said


def test_a_run_without_a_manifest_beside_one_with_it_is_told(tmp_path: Path) -> None:
    foreign = written_run(tmp_path / "foreign", [turn_record("x")], "foreign")
    said = "\n".join(remarks(panel_of(asked_like(tmp_path, "first"), foreign)))
    assert "How foreign was asked is not known" in said
    assert "is not known" not in "\n".join(remarks(panel_of(foreign)))


def test_models_of_unlike_runs_are_not_ranked_among_each_other_and_nothing_is_over_all(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], bool]] = [({}, True), ({"judge": "sim/other"}, False), ({"turns": 3}, False)]
    for at, (changed, is_alike) in enumerate(cases):
        runs = []
        for label, persona in (("first", STEADY), ("second", SWAYING)):
            like = asked_like(tmp_path / str(at), label, **(changed if persona is SWAYING else {}))
            records = run_records([persona], [None], conversations=2, turns=3)
            runs.append(written_run(like.records.parent, records, label, data="d", specification=like.specification))
        made = panel_of(*runs)
        assert list(made.ranks.values()) == ([1, 2] if is_alike else [None, None])
        found = tables_and_figures(made)
        assert (found.unlike == "") is is_alike
        tables = {table.name: list(table.records()) for table in found.tables}
        over_all = (("chameleon-table-1-scores", "model", "Overall"), ("chameleon-correlations", "whose", "all models"))
        for name, column, value in over_all:
            assert any(row[column] == value for row in tables[name] if row["source"] == "this run") is is_alike


def test_a_model_of_unlike_runs_stands_twice_whatever_its_temperatures(tmp_path: Path) -> None:
    runs = []
    for label, heat, turns in (("cold", 0.0, 15), ("hot", 1.0, 3)):
        like = asked_like(tmp_path, label, turns=turns)
        records = [turn_record("m") | {"temperature": heat}]
        runs.append(written_run(tmp_path / label, records, label, data="d", specification=like.specification))
    assert list(panel_of(*runs).models) == ["m (cold)", "m (hot)"]


def test_a_models_own_window_makes_no_difference_and_one_that_was_asked_for_does(tmp_path: Path) -> None:
    own = [
        asked_like(tmp_path / "a", label, window=None, prompt_tokens={f"m-{label}": tokens})
        for label, tokens in (("first", 9_000), ("second", 4_000))
    ]
    assert "window" not in "\n".join(remarks(panel_of(*own)))
    first = asked_like(tmp_path / "b", "first", window=None)
    second = asked_like(tmp_path / "b", "second", window=4_000)
    assert "window (each model's own in first; 4,000 tokens in second)" in "\n".join(remarks(panel_of(first, second)))


def test_other_data_are_told_by_their_digests(tmp_path: Path) -> None:
    one, two = asked_like(tmp_path, "first"), structs.replace(asked_like(tmp_path, "second"), data="e" * 64)
    assert "different data sets (dddddddd in first; eeeeeeee in second)" in "\n".join(remarks(panel_of(one, two)))


def test_under_the_papers_judge_prompt_confidence_is_told_to_be_a_constant(tmp_path: Path) -> None:
    paper, ours = asked_like(tmp_path, "first", judge_prompt="paper"), asked_like(tmp_path, "second")
    assert "The judge prompt is the paper's own" in "\n".join(remarks(panel_of(paper)))
    said = "\n".join(remarks(panel_of(paper, ours)))
    assert "The judge prompt of first is the paper's own" in said and "confidence is then 0.67 at every" in said
    assert "paper's own" not in "\n".join(remarks(panel_of(ours)))


def test_sample_conversations_are_told_to_be_no_published_data(tmp_path: Path) -> None:
    sample, own = structs.replace(asked_like(tmp_path, "first"), is_sample=True), asked_like(tmp_path, "second")
    assert "This report's conversations are sample ones" in "\n".join(remarks(panel_of(sample)))
    assert "The conversations of first are sample ones" in "\n".join(remarks(panel_of(sample, own)))
    assert "sample ones" not in "\n".join(remarks(panel_of(own)))
