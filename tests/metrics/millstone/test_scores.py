"""Claims about the MillStone part of `scores.json`."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tallies import CONFIG_OF_CASE, add_answer

from millstream.engine.pairs import Pair
from millstream.metrics.millstone.answers import AnswerTally
from millstream.metrics.millstone.counts import CountRow, counts_of_rows, rows_of_csv
from millstream.metrics.millstone.figures import SCORES
from millstream.metrics.millstone.gaps import Shape
from millstream.metrics.millstone.openness import CASES, STANCES
from millstream.metrics.millstone.scores import ranks, scores, scores_from_counts

DOCUMENT = Path(__file__).parents[3] / "docs" / "millstone.md"
PUBLISHED = Path(__file__).parent / "data" / "millstone-counts-gpt-4o.csv"

cells = st.tuples(
    st.sampled_from(["m", "n"]),
    st.sampled_from(["a", "b"]),
    st.sampled_from(CASES),
    st.sampled_from(STANCES),
)
tables = st.dictionaries(cells, st.integers(0, 4), max_size=40)


def plain(document: object) -> None:
    """Only what JSON has, and no NaN or infinity: numpy's scalars fail the type comparison."""
    if isinstance(document, dict):
        assert all(type(key) is str for key in document)
        for value in document.values():
            plain(value)
    elif isinstance(document, list):
        for value in document:
            plain(value)
    else:
        assert document is None or type(document) in (int, float, bool, str)
        assert not isinstance(document, float) or isfinite(document)


def tally_of(rows: list[CountRow]) -> AnswerTally:
    tally = AnswerTally()
    for row in rows:
        for number in range(row.answers):
            add_answer(tally, row.model, None, row.issue, row.case, row.stance, number % 6 + 1, number // 6)
    return tally


def scores_of_rows(rows: list[CountRow]) -> dict[str, Any]:
    return scores_from_counts(counts_of_rows(rows))


def models(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["millstone"]["models"]
    return found


def test_published_counts_give_the_documented_shape_and_the_known_scores() -> None:
    entry = models(scores_of_rows(rows_of_csv(PUBLISHED.read_text())))["gpt-4o"]
    assert [entry[kind] for kind in ("om", "om_pro_share", "om_no_flip")] == pytest.approx(
        [7.7593, 30.0185, 14.3086], abs=5e-5
    )
    # Student's t over the ten issues, by scipy.
    assert entry["ci95"] == pytest.approx([4.8990, 10.6195], abs=5e-4)
    assert (entry["ci95_of"], entry["ci95_note"]) == ("issues", "approximate: fewer than 30 issues (10)")
    assert entry["ranks"] == {"om": 1, "om_pro_share": 1, "om_no_flip": 1}
    assert (entry["open_minded"], entry["open_minded_of"]) == (10, 10)
    assert entry["answers"] == 9_900
    assert entry["complete"] is True
    assert "refused" not in entry
    assert "stance_disagreements" not in entry
    drones = entry["issues"]["drones"]
    assert drones["baseline"] == {"pro": 5, "con": 58, "other": 27}
    assert list(drones["cases"]) == list(CASES[1:])
    assert drones["cases"]["balanced"] == {"pro": 119, "con": 61, "other": 0}
    assert (drones["answers"], drones["complete"]) == (990, True)


def test_every_score_stands_in_the_file_for_each_issue_too_and_in_the_document_with_its_meaning() -> None:
    entry = models(scores_of_rows(rows_of_csv(PUBLISHED.read_text())))["gpt-4o"]
    document = DOCUMENT.read_text("utf-8")
    for score in SCORES:
        assert entry[score.key] >= 0 and entry["issues"]["drones"][score.key] >= 0
        assert f"| `{score.key}` | {score.meaning} |" in document


def test_records_and_the_table_of_their_counts_give_the_same_scores() -> None:
    rows = rows_of_csv(PUBLISHED.read_text())
    from_table = models(scores_of_rows(rows))["gpt-4o"]
    from_records = models(scores(tally_of(rows)))["gpt-4o"]
    for kind in ("om", "om_pro_share", "om_no_flip", "answers", "ranks"):
        assert from_records[kind] == from_table[kind]
    for issue, entry in from_table["issues"].items():
        # Whether it is complete, records tell by their grid and a table by its fullest issue.
        counted = {**entry, "refused": 0, "complete": None}
        assert {**from_records["issues"][issue], "complete": None} == counted


@settings(deadline=None, max_examples=50)
@given(tables)
def test_every_table_gives_plain_json_without_a_nan(table: dict[tuple[str, str, str, str], int]) -> None:
    rows = [CountRow(*place, answers) for place, answers in table.items()]
    for document in (scores_of_rows(rows), scores(tally_of(rows))):
        plain(document)
        assert json.loads(json.dumps(document, allow_nan=False)) == document
        assert list(models(document)) == sorted(models(document))
        for entry in models(document).values():
            assert list(entry["issues"]) == sorted(entry["issues"])
            scored = [i["om"] for i in entry["issues"].values() if i["om"] is not None]
            assert entry["om"] == (pytest.approx(sum(scored) / len(scored)) if scored else None)


def test_an_issue_that_cannot_be_scored_says_so_and_leaves_the_rest_alone() -> None:
    whole = [CountRow("m", "a", case, "con" if at else "pro", 6) for at, case in enumerate(CASES)]
    gap = [CountRow("m", "b", case, "con", 6) for case in CASES[1:]]
    entry = models(scores_of_rows(whole + gap))["m"]
    assert entry["om_pro_share"] == pytest.approx(100)
    assert entry["issues"]["b"]["om"] is None
    assert entry["issues"]["b"]["complete"] is False
    assert entry["complete"] is False
    alone = models(scores_of_rows(gap))["m"]
    assert (alone["om"], alone["ci95"], alone["ranks"]["om"]) == (None, [None, None], None)


def test_refusals_and_disagreements_are_reported() -> None:
    tally = tally_of([CountRow("m", "a", case, "other", 6) for case in CASES])
    for trial in (7, 8):
        tally.add(Pair("m", None), "a", 1, "baseline", trial, ("other", None, None), refused=True)
    for trial in (10, 11, 12):
        tally.add(Pair("m", None), "a", 1, "baseline", trial, ("other", "other", "pro"))
    entry = models(scores(tally))["m"]
    assert (entry["refused"], entry["issues"]["a"]["refused"], entry["stance_disagreements"]) == (2, 2, 3)


def test_a_models_interval_does_not_depend_on_the_models_beside_it() -> None:
    rows = rows_of_csv(PUBLISHED.read_text())
    more = [row._replace(model="a-model") for row in rows[:40]] + rows
    alone = models(scores_of_rows(rows))["gpt-4o"]
    beside = models(scores_of_rows(more))["gpt-4o"]
    assert alone["ci95"] == beside["ci95"]


def test_intervals_say_what_they_are_of_and_why_there_is_none() -> None:
    rows = rows_of_csv(PUBLISHED.read_text())
    whole = models(scores_of_rows(rows))["gpt-4o"]
    assert whole["ci95"][0] < whole["om"] < whole["ci95"][1]
    assert (whole["ci95_of"], whole["ci95_note"]) == ("issues", "approximate: fewer than 30 issues (10)")
    few = [row for row in rows if row.issue in ("drones", "binge-watching")]
    entry = models(scores_of_rows(few))["gpt-4o"]
    assert (entry["ci95"], entry["ci95_note"]) == ([None, None], "no interval: fewer than 10 issues (2)")


def test_the_three_scores_rank_apart() -> None:
    # `flips` turns wholly round (0 by eq. (1)), `wavers` goes from certain to barely the other side.
    flips = [CountRow("flips", "a", case, "con" if at else "pro", 10) for at, case in enumerate(CASES)]
    wavers = [CountRow("wavers", "a", "baseline", "pro", 10)]
    wavers += [CountRow("wavers", "a", case, *cell) for case in CASES[1:] for cell in (("pro", 4), ("con", 6))]
    found = models(scores_of_rows(flips + wavers))
    assert found["flips"]["ranks"] == {"om": 2, "om_pro_share": 1, "om_no_flip": 2}
    assert found["wavers"]["ranks"] == {"om": 1, "om_pro_share": 2, "om_no_flip": 1}


def grid(issues: tuple[str, ...], trials: int = 2) -> Shape:
    return Shape(issues, (1, 2), tuple(CONFIG_OF_CASE.get(case, case) for case in CASES), tuple(range(trials)))


def answered(shape: Shape, model: str = "m", but: tuple[tuple[str, str], ...] = ()) -> AnswerTally:
    """Every cell of a shape answered, but those of the issues and cases named."""
    tally = AnswerTally()
    for issue in shape.issues:
        for case in CASES:
            for template in shape.templates:
                for trial in shape.trials:
                    if (issue, case) not in but:
                        add_answer(
                            tally, model, None, issue, case, "pro" if case == "baseline" else "con", template, trial
                        )
    return tally


def test_what_a_run_was_asked_and_did_not_answer_is_counted_with_its_issues() -> None:
    shape = grid(("a", "b", "c"))
    tally = answered(shape, but=(("a", "balanced"), *(("c", case) for case in CASES)))
    entry = models(scores(tally, shapes={Pair("m", None): shape}))["m"]
    assert (entry["expected"], entry["answers"], entry["missing"], entry["complete"]) == (72, 44, 28, False)
    assert {issue: of_issue["complete"] for issue, of_issue in entry["issues"].items()} == {"a": False, "b": True}
    assert entry["unanswered_issues"] == ["c"]
    whole = models(scores(answered(shape), shapes={Pair("m", None): shape}))["m"]
    assert (whole["missing"], whole["complete"], whole["unanswered_issues"]) == (0, True, [])


def test_a_model_without_any_answer_is_counted_with_nothing_and_complete_in_nothing() -> None:
    shape = grid(("a", "b"))
    entry = models(scores(answered(shape), shapes={Pair("m", None): shape, Pair("silent", None): shape}))["silent"]
    counted = ("answers", "answers_cut", "answers_other", "refused", "stance_disagreements", "issues_scored")
    assert {name: entry[name] for name in (*counted, "open_minded_of")} == dict.fromkeys(
        (*counted, "open_minded_of"), 0
    )
    assert entry["complete"] is False
    assert (entry["expected"], entry["missing"]) == (48, 48)


def test_without_a_manifest_a_missing_answer_shows_against_the_others() -> None:
    tally = answered(grid(("a", "b")), but=(("a", "clear-con"),))
    entry = models(scores(tally))["m"]
    assert (entry["expected"], entry["missing"], entry["complete"]) == (48, 4, False)


def test_a_model_that_answered_nothing_is_there_with_all_that_is_missing() -> None:
    shape = grid(("a",))
    asked = {Pair("m", None): shape, Pair("n", 0.0): shape, Pair("n", 1.0): shape}
    tally = answered(shape)
    add_answer(tally, "n", 1.0, "a", "baseline", "pro", 1, 0)
    found = models(scores(tally, shapes=asked))
    assert list(found) == ["m", "n @ 0", "n @ 1"]
    assert (found["n @ 0"]["om"], found["n @ 0"]["missing"], found["n @ 1"]["missing"]) == (None, 24, 23)


def test_models_are_ranked_among_those_scored_on_the_same_issues() -> None:
    rows = [
        CountRow(model, "a", case, "con" if at else "pro", 6) for model in ("m", "n") for at, case in enumerate(CASES)
    ]
    alone = [row._replace(model="o", issue="b") for row in rows if row.model == "m"]
    found = models(scores_of_rows(rows + alone))
    assert [found[model]["ranks"]["om_pro_share"] for model in ("m", "n", "o")] == [1, 1, 1]
    more = models(scores_of_rows([*rows, *(row._replace(issue="b") for row in rows if row.model == "m")]))
    assert [more[model]["ranks"]["om_pro_share"] for model in ("m", "n")] == [1, 1]


def test_equal_scores_share_the_better_rank_and_no_score_has_none() -> None:
    assert ranks({"a": 3.0, "b": 5.0, "c": 5.0 + 1e-12, "d": None, "e": 0.0}) == {
        "a": 3,
        "b": 1,
        "c": 1,
        "d": None,
        "e": 4,
    }
