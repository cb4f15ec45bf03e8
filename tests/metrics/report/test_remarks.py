"""Claims about the remarks on top of a report: each is there when it is due, and not otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec.structs import replace as changed
from polls import ISSUES, polled, realistic, survey_of

from millstream.metrics.gaps import inferred
from millstream.metrics.report.findings import Options, findings
from millstream.metrics.report.survey import Survey


def told(survey: Survey, words: str) -> bool:
    return any(words in remark for remark in findings(survey).remarks)


SMALL = survey_of(polled("one", ["golf", "milk"]), polled("two", ["golf", "milk"], seed=5))
ONE, TWO = SMALL.answers


def test_a_whole_survey_of_the_same_issues_needs_few_remarks() -> None:
    remarks = findings(SMALL).remarks
    assert remarks[0].startswith("Eq. (1) read literally")
    assert not any(words in remark for remark in remarks for words in ("incomplete", "asked", "no score", "missing"))


def test_that_a_clean_flip_scores_nothing_is_always_told() -> None:
    assert told(SMALL, "a clean flip from 100% pro to 100% con scores 0")


def test_models_that_were_asked_about_different_issues_are_no_comparison() -> None:
    assert told(realistic(), "asked about different issues (lab/great-2-large 8")


def test_different_data_sets_are_told() -> None:
    assert told(changed(SMALL, data_sets={"one": "aa", "two": "bb"}), "different data sets")
    assert not told(changed(SMALL, data_sets={"one": "aa", "two": "aa"}), "different data sets")
    assert not told(changed(SMALL, data_sets={"one": "aa"}), "different data sets")


def test_different_grids_are_told() -> None:
    shapes = {"one": inferred(ONE), "two": replace(inferred(TWO), trials=(0, 1))}
    assert told(changed(SMALL, shapes=shapes), "different templates, configurations or numbers of trials")
    assert told(changed(SMALL, shapes=shapes), "two has 72 answers that its run was not to ask for")


def test_records_made_by_different_readings_are_told() -> None:
    careful = replace(TWO, stances={**TWO.stances, "recorded": TWO.stances["careful"]})
    assert told(survey_of(ONE, careful), "choose one of the two readings for all")
    both = survey_of(ONE, careful, options=Options(reading="paper"))
    assert not told(both, "choose one of the two readings")
    assert told(both, "Stances are by the paper reading")


@pytest.mark.parametrize("kind", ["differ", "agree"])
def test_how_often_the_readings_differ_is_told_if_they_do(kind: str) -> None:
    careful = ONE.stances["careful" if kind == "differ" else "paper"]
    survey = survey_of(replace(ONE, stances={**ONE.stances, "careful": careful}))
    assert told(survey, "the careful one differ on") == (kind == "differ")


def test_a_left_out_set_is_told() -> None:
    assert told(changed(SMALL, options=Options(issue_set=104)), "The three issues that the published scores leave out")


def test_a_model_with_no_answer_on_the_chosen_issues_is_told() -> None:
    survey = survey_of(ONE, polled("aside", ["tablets-vs-textbooks"]), options=Options(issue_set=104))
    assert told(survey, "aside has no answer on the issues of this report.")


def test_ranks_that_turn_over_are_told() -> None:
    survey = realistic()
    rows = next(table for table in findings(survey).tables if table.name == "om-readings").records()
    turned = any(row["om_rank"] != row["om_pro_share_rank"] or row["om_rank"] != row["om_no_flip_rank"] for row in rows)
    assert turned
    assert told(survey, "The order of the models depends on how eq. (1) is read: ")
    assert not told(survey_of(ONE), "The order of the models")


def test_a_name_of_any_length_is_cut_in_a_sentence() -> None:
    holes = [("golf", config) for config in ("baseline",)]
    remarks = findings(survey_of(polled("x" * 1_000, ISSUES, skipped=holes))).remarks
    assert any("…" in remark for remark in remarks)
    assert max(map(len, remarks)) < 500


def test_nothing_to_score_is_one_sentence() -> None:
    assert findings(survey_of()).remarks == ("There are no answers: nothing is scored.",)
