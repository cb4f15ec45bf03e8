"""Claims about what a reader is told on top of Chameleon's part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chameleon_records import STEADY, SWAYING, run_records, turn_record
from chameleon_run import panel_of, written_run
from msgspec import structs

from millstream.bench.chameleon.report.part import tables_and_figures
from millstream.bench.chameleon.report.remarks import remarks
from millstream.bench.chameleon.report.runs import ConversationRun
from millstream.engine.pairs import Pair
from millstream.metrics.chameleon.readings import Readings

PAIR = Pair("m", None)


def told(folder: Path, records: list[dict[str, Any]], **more: Any) -> str:
    chosen = {name: more.pop(name) for name in Readings.__struct_fields__ if name in more}
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


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"uncited": "literal"}, "Read with --uncited literal."),
        ({"sources_by": "hostname"}, "Read with --sources-by hostname."),
        ({"sources": "retrieved"}, "Read with --sources retrieved."),
        ({"confidence": "number"}, "Read with --confidence number."),
    ],
)
def test_a_reading_that_is_not_the_default_is_told(tmp_path: Path, chosen: dict[str, str], said: str) -> None:
    records = [turn_record(turn=at, stance=stance) for at, stance in ((1, "critical"), (2, "unclear"))]
    assert said in told(tmp_path / "chosen", records, **chosen)
    assert said not in told(tmp_path / "default", records)


def test_runs_of_different_conversations_are_told_to_be_no_comparison(tmp_path: Path) -> None:
    one = written_run(tmp_path / "a", run_records([STEADY], [0.0], conversations=2, turns=3), "a")
    two = written_run(tmp_path / "b", run_records([STEADY], [0.5], conversations=3, turns=3), "b")
    said = "\n".join(remarks(panel_of(one, two)))
    assert "they are no comparison" in said
    assert "no comparison" not in "\n".join(remarks(panel_of(one)))


def test_conversations_that_never_change_are_told(tmp_path: Path) -> None:
    said = told(tmp_path, [turn_record(turn=1), turn_record(turn=2), turn_record(conversation="d")])
    assert "1 of 1 scored conversations (100.0%) never change their stance" in said
    assert "1 of 2 complete conversations of m is unscored, since too few of its turns have a clear stance" in said
    assert "m has no rank" in said


def asked_like(folder: Path, label: str, **changed: Any) -> ConversationRun:
    """A run of one turn; `changed` are fields of its specification, or the --window that it kept."""
    options = {"model": [f"m-{label}"], "window": changed.pop("window", None), "dataset": changed.pop("dataset", "x")}
    specification = {
        "judge": "sim/judge",
        "judge_prompt": "extended",
        "judge_temperature": 0.0,
        "search": "search/brave",
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
        "endpoints": {"search/corpus": "corpus:0123456789", f"m-{label}": f"http://{label}.test"},
        "data": "d" * 64,
    }
    manifest = {"specification": specification | changed, "options": {"chameleon": options}}
    return written_run(folder / label, [turn_record(f"m-{label}")], label, manifest=manifest)


def incomparable(folder: Path, **changed: Any) -> str:
    runs = asked_like(folder, "first"), asked_like(folder, "second", **changed)
    said = [remark for remark in remarks(panel_of(*runs)) if "not made alike" in remark]
    assert len(said) <= 1
    return "".join(said)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"judge": "sim/other"}, "judge (sim/judge in first; sim/other in second)"),
        ({"judge_prompt": "paper"}, "judge prompt (extended in first; paper in second)"),
        ({"judge_temperature": None}, "judge temperature (0.0 in first; none in second)"),
        ({"search": "search/exa"}, "search (search/brave in first; search/exa in second)"),
        ({"queries_by": ["m", 0.5]}, "queries by (none in first; m @ 0.5 in second)"),
        ({"pages": 5}, "pages (20 in first; 5 in second)"),
        ({"page_tokens": 500}, "page tokens (1500 in first; 500 in second)"),
        ({"keeps_pages": True}, "keeps pages (False in first; True in second)"),
        ({"window": 4_000}, "window (none in first; 4000 in second)"),
        ({"data": "e" * 64}, "data set (dddddddd in first; eeeeeeee in second)"),
        ({"turns": 3}, "turns (15 in first; 3 in second)"),
        ({"order": "grouped"}, "order (written in first; grouped in second)"),
        ({"max_tokens": 99}, "max tokens (none in first; 99 in second)"),
        ({"prompt_version": 2}, "prompt version (1 in first; 2 in second)"),
    ],
)
def test_runs_that_were_not_made_alike_are_told_by_what_differs(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    assert f"they differ in {said}. What lies" in incomparable(tmp_path, **changed)


def test_runs_that_were_made_alike_are_told_nothing_of_it(tmp_path: Path) -> None:
    assert incomparable(tmp_path) == ""


def test_runs_that_read_their_records_differently_are_told_and_that_the_report_does_not(tmp_path: Path) -> None:
    other = Readings(sources_by="hostname", confidence="number")
    runs = asked_like(tmp_path, "first"), structs.replace(asked_like(tmp_path, "second"), readings=other)
    [said] = [remark for remark in remarks(panel_of(*runs)) if "read alike" in remark]
    assert "by (url in first; hostname in second), confidence (rubric in first; number in second)." in said
    assert not [remark for remark in remarks(panel_of(*runs)) if "not made alike" in remark]


def test_two_corpora_are_two_searches(tmp_path: Path) -> None:
    one = asked_like(tmp_path, "first", search="search/corpus")
    two = asked_like(tmp_path, "second", search="search/corpus", endpoints={"search/corpus": "corpus:fedcba9876"})
    [said] = [remark for remark in remarks(panel_of(one, two)) if "not made alike" in remark]
    assert "search (search/corpus 01234567 in first; search/corpus fedcba98 in second)" in said


def test_a_run_without_a_manifest_beside_one_with_it_is_told(tmp_path: Path) -> None:
    foreign = written_run(tmp_path / "foreign", [turn_record("x")], "foreign")
    said = "\n".join(remarks(panel_of(asked_like(tmp_path, "first"), foreign)))
    assert "no manifest tells how foreign was made" in said
    assert "no manifest" not in "\n".join(remarks(panel_of(foreign)))


def test_models_of_unlike_runs_are_not_ranked_among_each_other_and_nothing_is_over_all(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], bool]] = [({}, True), ({"judge": "sim/other"}, False), ({"turns": 3}, False)]
    for at, (changed, is_alike) in enumerate(cases):
        runs = []
        for label, persona in (("first", STEADY), ("second", SWAYING)):
            like = asked_like(tmp_path / str(at), label, **(changed if persona is SWAYING else {}))
            records = run_records([persona], [None], conversations=2, turns=3)
            runs.append(written_run(like.records.parent, records, label, manifest=like.manifest))
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
        runs.append(written_run(tmp_path / label, records, label, manifest=like.manifest))
    assert list(panel_of(*runs).models) == ["m (cold)", "m (hot)"]


def test_a_models_own_window_makes_no_difference(tmp_path: Path) -> None:
    own = [
        asked_like(tmp_path, label, prompt_tokens={f"m-{label}": tokens})
        for label, tokens in (("first", 9_000), ("second", 4_000))
    ]
    assert "window" not in "\n".join(remarks(panel_of(*own)))


def test_under_the_papers_judge_prompt_confidence_is_told_to_be_a_constant(tmp_path: Path) -> None:
    paper, ours = asked_like(tmp_path, "first", judge_prompt="paper"), asked_like(tmp_path, "second")
    assert "The judge prompt is the paper's own" in "\n".join(remarks(panel_of(paper)))
    said = "\n".join(remarks(panel_of(paper, ours)))
    assert "The judge prompt of first is the paper's own" in said and "confidence is then 0.67 at every" in said
    assert "paper's own" not in "\n".join(remarks(panel_of(ours)))


def test_sample_conversations_are_told_to_be_no_published_data(tmp_path: Path) -> None:
    sample, own = asked_like(tmp_path, "first", dataset=None), asked_like(tmp_path, "second")
    assert "This report's conversations are samples" in "\n".join(remarks(panel_of(sample)))
    assert "The conversations of first are samples" in "\n".join(remarks(panel_of(sample, own)))
    assert "sample ones" not in "\n".join(remarks(panel_of(own)))
