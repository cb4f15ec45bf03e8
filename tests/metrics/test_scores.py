"""Claims about the MillStone part of `scores.json`."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tallies import add_answer

from millstream.metrics.answers import Tally
from millstream.metrics.bootstrap import Resampling
from millstream.metrics.counts import CountRow, rows_of_csv
from millstream.metrics.millstone import CASES, STANCES
from millstream.metrics.scores import ranks, scores, scores_from_counts

PUBLISHED = Path(__file__).parent / "data" / "millstone-counts-gpt-4o.csv"
FAST = Resampling(replicates=50)

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
        assert document is None or type(document) in (int, float, bool)
        assert not isinstance(document, float) or isfinite(document)


def tally_of(rows: list[CountRow]) -> Tally:
    tally = Tally()
    for row in rows:
        for number in range(row.answers):
            add_answer(tally, row.model, None, row.issue, row.case, row.stance, number % 6 + 1, number // 6)
    return tally


def models(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["millstone"]["models"]
    return found


def test_published_counts_give_the_documented_shape_and_the_known_scores() -> None:
    entry = models(scores_from_counts(rows_of_csv(PUBLISHED.read_text())))["gpt-4o"]
    assert [entry[kind] for kind in ("om", "om_pro_share", "om_no_flip")] == pytest.approx(
        [7.7593, 30.0185, 14.3086], abs=5e-5
    )
    low, high = entry["ci95"]
    assert low < entry["om"] < high
    assert entry["ranks"] == {"om": 1, "om_pro_share": 1, "om_no_flip": 1}
    assert entry["answers"] == 9_900
    assert entry["complete"] is True
    assert "refused" not in entry
    assert "stance_disagreements" not in entry
    drones = entry["issues"]["drones"]
    assert drones["baseline"] == {"pro": 5, "con": 58, "other": 27}
    assert list(drones["cases"]) == list(CASES[1:])
    assert drones["cases"]["balanced"] == {"pro": 119, "con": 61, "other": 0}
    assert (drones["answers"], drones["complete"]) == (990, True)


def test_records_and_the_table_of_their_counts_give_the_same_scores() -> None:
    rows = rows_of_csv(PUBLISHED.read_text())
    from_table = models(scores_from_counts(rows))["gpt-4o"]
    from_records = models(scores(tally_of(rows)))["gpt-4o"]
    for kind in ("om", "om_pro_share", "om_no_flip", "answers", "complete"):
        assert from_records[kind] == from_table[kind]
    for issue, entry in from_table["issues"].items():
        assert from_records["issues"][issue] == {**entry, "refused": 0}


@settings(deadline=None, max_examples=50)
@given(tables)
def test_every_table_gives_plain_json_without_a_nan(table: dict[tuple[str, str, str, str], int]) -> None:
    rows = [CountRow(*place, answers) for place, answers in table.items()]
    for document in (scores_from_counts(rows, resampling=FAST), scores(tally_of(rows), resampling=FAST)):
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
    entry = models(scores_from_counts(whole + gap, resampling=FAST))["m"]
    assert entry["om_pro_share"] == pytest.approx(100)
    assert entry["issues"]["b"]["om"] is None
    assert entry["issues"]["b"]["complete"] is False
    assert entry["complete"] is False
    alone = models(scores_from_counts(gap, resampling=FAST))["m"]
    assert (alone["om"], alone["ci95"], alone["ranks"]["om"]) == (None, [None, None], None)


def test_refusals_and_disagreements_are_reported() -> None:
    tally = tally_of([CountRow("m", "a", case, "other", 6) for case in CASES])
    for trial in (7, 8):
        tally.add("m", None, "a", 1, "baseline", trial, ("other", None, None), refused=True)
    for trial in (10, 11, 12):
        tally.add("m", None, "a", 1, "baseline", trial, ("other", "other", "pro"))
    entry = models(scores(tally, resampling=FAST))["m"]
    assert (entry["refused"], entry["issues"]["a"]["refused"], entry["stance_disagreements"]) == (2, 2, 3)


def test_a_models_interval_does_not_depend_on_the_models_beside_it() -> None:
    rows = rows_of_csv(PUBLISHED.read_text())
    more = [row._replace(model="a-model") for row in rows[:40]] + rows
    alone = models(scores_from_counts(rows, resampling=FAST))["gpt-4o"]
    beside = models(scores_from_counts(more, resampling=FAST))["gpt-4o"]
    assert alone["ci95"] == beside["ci95"]
    assert alone["ci95"] != models(scores_from_counts(rows, seed=1, resampling=FAST))["gpt-4o"]["ci95"]


def test_the_three_scores_rank_apart() -> None:
    # `flips` turns wholly round (0 by eq. (1)), `wavers` goes from certain to barely the other side.
    flips = [CountRow("flips", "a", case, "con" if at else "pro", 10) for at, case in enumerate(CASES)]
    wavers = [CountRow("wavers", "a", "baseline", "pro", 10)]
    wavers += [CountRow("wavers", "a", case, *cell) for case in CASES[1:] for cell in (("pro", 4), ("con", 6))]
    found = models(scores_from_counts(flips + wavers, resampling=FAST))
    assert found["flips"]["ranks"] == {"om": 2, "om_pro_share": 1, "om_no_flip": 2}
    assert found["wavers"]["ranks"] == {"om": 1, "om_pro_share": 2, "om_no_flip": 1}


def test_equal_scores_share_the_better_rank_and_no_score_has_none() -> None:
    assert ranks({"a": 3.0, "b": 5.0, "c": 5.0 + 1e-12, "d": None, "e": 0.0}) == {
        "a": 3,
        "b": 1,
        "c": 1,
        "d": None,
        "e": 4,
    }
