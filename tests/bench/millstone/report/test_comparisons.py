"""Claims about models beside each other: who is ranked among whom, and who makes a pair."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest
from msgspec.structs import replace as replaced
from polls import ISSUES, polled, realistic, survey_of

from millstream.bench.millstone.report.part import tables_and_figures
from millstream.report.sections import PageContents
from millstream.report.table import THIS_RUN, Cell


def own(found: PageContents, name: str) -> list[dict[str, Cell]]:
    """The run's rows of a table."""
    [table] = [table for table in found.tables if table.name == name]
    return [row for row in table.records() if row.get("source", THIS_RUN) == THIS_RUN]


def test_only_models_that_were_asked_the_same_issues_are_ranked() -> None:
    survey = survey_of(
        polled("a", ["golf", "milk"], seed=1),
        polled("b", ["golf", "milk"], seed=2),
        polled("c", ["golf", "zoos"], seed=3),
        polled("d", ["golf", "milk", "zoos"], seed=4, skipped=[("zoos", "baseline")]),
        polled("e", ["golf", "milk", "zoos"], seed=5),
    )
    for kind in ("om", "om_pro_share", "om_no_flip"):
        found = {row["model"]: row for row in own(tables_and_figures(survey), "om-readings")}
        alike = sorted("ab", key=lambda model: -float(str(found[model][kind])))
        assert [found[model][f"{kind}_rank"] for model in alike] == [1, 2]
        # A third of d's issues has no score, so nobody is left for e to be ranked among.
        assert [found[model][f"{kind}_rank"] for model in "cde"] == [None, None, None]


def test_a_model_with_a_tenth_of_its_issues_unscored_keeps_its_rank_and_one_with_more_has_none() -> None:
    issues = [*ISSUES, "bees", "cats"]
    survey = survey_of(
        polled("whole", issues, seed=1),
        polled("tenth", issues, seed=2, skipped=[("golf", "balanced-1")]),
        polled("fifth", issues, seed=3, skipped=[("golf", "balanced-1"), ("milk", "baseline")]),
    )
    found = {row["model"]: row for row in own(tables_and_figures(survey), "om-readings") if row["issue_set"] == "all"}
    assert {found[name]["om_rank"] for name in ("whole", "tenth")} == {1, 2}
    assert (found["tenth"]["issues"], found["tenth"]["unscored"]) == (9, 1)
    assert (found["fifth"]["om_rank"], found["fifth"]["issues"], found["fifth"]["unscored"]) == (None, 8, 2)


ALIKE = {"protocol": "paper", "data set": "aa", "stance reading": "paper"}


@pytest.mark.parametrize("changed", [{"protocol": "released"}, {"data set": "bb"}, {"stance reading": "careful"}])
def test_models_that_were_not_asked_alike_have_no_common_rank_test_or_agreement(changed: dict[str, str]) -> None:
    answers = [polled(name, ["golf", "milk"], seed=at) for at, name in enumerate("abc")]
    survey = replaced(survey_of(*answers), manners={"a": ALIKE, "b": ALIKE, "c": ALIKE | changed})
    found = tables_and_figures(survey)
    ranks = {row["model"]: row["om_rank"] for row in own(found, "om-readings") if row["issue_set"] == "all"}
    assert ranks["c"] is None and None not in (ranks["a"], ranks["b"])
    assert [(row["first"], row["second"]) for row in own(found, "paired-tests")] == [("a", "b")]
    pairs = [(row["first"], row["second"]) for row in own(found, "figure-6-correlations") if row["r"] is not None]
    assert pairs == [("a", "b")]
    compared = ("table-2-agreement", "table-6-unanimous", "table-7-disagreement", "figure-3-disagreement")
    assert [own(found, name) for name in compared] == [[], [], [], []]
    assert found.unlike in found.remarks and "not asked alike" in found.unlike
    alike = tables_and_figures(replaced(survey, manners=dict.fromkeys("abc", ALIKE)))
    assert alike.unlike == "" and len(own(alike, "paired-tests")) == 3 and own(alike, "table-2-agreement")


def test_models_are_ranked_at_one_temperature_and_only_tested_beside_themselves_at_others() -> None:
    a, b = (polled(name, ["golf", "milk"], seed=at) for at, name in enumerate("ab"))
    survey = survey_of(
        a,
        replace(a, name="a @ 1", pair=a.pair._replace(temperature=1.0)),
        replace(b, name="b @ 1", pair=b.pair._replace(temperature=1.0)),
    )
    found = tables_and_figures(survey)
    ranks = {row["model"]: row["om_rank"] for row in own(found, "om-readings") if row["issue_set"] == "all"}
    assert ranks["a"] is None and None not in (ranks["a @ 1"], ranks["b @ 1"])
    pairs = {(row["first"], row["second"]) for row in own(found, "paired-tests")}
    assert pairs == {("a", "a @ 1"), ("a @ 1", "b @ 1")}
    assert any("asked at different temperatures" in remark for remark in found.remarks)


def test_a_model_beside_itself_is_no_pair_of_a_family() -> None:
    great, mini, shy, _ = realistic().answers
    again = (
        replace(great, name=f"{great.pair.model} @ 1", pair=great.pair._replace(temperature=1.0)),
        replace(great, name=f"{great.pair.model} (other)"),
    )
    found = tables_and_figures(survey_of(great, *again, mini, shy))
    same = {(row["first"], row["second"]) for row in own(found, "figure-6-correlations") if row["same_model"]}
    assert len(same) == 3
    assert all(str(name).startswith(great.pair.model) for pair in same for name in pair)
    rows = own(found, "figure-6-correlations")
    values = [row["r"] for row in rows if row["same_family"] and not row["same_model"]]
    middle = median(float(str(value)) for value in values)
    [figure] = [figure for figure in found.figures if figure.name == "figure-6-correlations"]
    assert figure.spec is not None
    # Three times the large one with the mini, and four models with the one that is of no family.
    assert f" Median within a family {middle:.3f} (3 pairs), between families " in figure.caption
    assert " (4 pairs); in the paper 0.722 and 0.511." in figure.caption
    assert figure.caption.endswith(" A model beside itself is in no median.")
    assert sum(bool(row["is_family"]) for row in figure.spec["datasets"]["rows"]) == 3
