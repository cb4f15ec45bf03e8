"""Claims about the remarks on top of a report: each is there when it is due, and not otherwise."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from msgspec.structs import replace as changed
from polls import CONTROVERSIAL, ISSUES, polled, realistic, survey_of

from millstream.bench.millstone.options import Readings
from millstream.bench.millstone.report.part import tables_and_figures, with_sections
from millstream.bench.millstone.report.survey import ReportSurvey
from millstream.metrics.millstone.gaps import inferred
from millstream.report.labels import named_list


def told(survey: ReportSurvey, words: str) -> bool:
    return any(words in remark for remark in tables_and_figures(survey).remarks)


SMALL = survey_of(polled("one", ["golf", "milk"]), polled("two", ["golf", "milk"], seed=5))
ONE, TWO = SMALL.answers
LITERAL = Readings(silence="literal")


def test_a_whole_survey_of_the_same_issues_needs_few_remarks() -> None:
    remarks = tables_and_figures(SMALL).remarks
    assert remarks[0].startswith("Eq. (1) read literally")
    assert not any(words in remark for remark in remarks for words in ("incomplete", "asked", "no score", "missing"))


def test_that_a_clean_flip_scores_nothing_is_always_told() -> None:
    assert told(SMALL, "a clean flip from 100% pro to 100% con scores 0")


def test_models_that_were_asked_about_different_issues_are_no_comparison() -> None:
    assert told(realistic(), "asked about different issues (lab/great-2-large 8")


def test_models_that_were_not_asked_alike_are_told_with_all_that_differs() -> None:
    one = {"protocol": "paper", "data set": "aa", "max_tokens": "100"}
    unlike = changed(SMALL, manners={"one": one, "two": {**one, "protocol": "released", "data set": "bb"}})
    assert told(
        unlike, "They differ in protocol (paper in one; released in two), data set (aa in one; bb in two). Models"
    )
    assert told(changed(SMALL, manners={"one": one}), "protocol (paper in one; not known in two)")
    for manners in ({"one": one, "two": one}, {}):
        assert not told(changed(SMALL, manners=manners), "not asked alike")


def test_different_grids_are_told() -> None:
    shapes = {"one": inferred(ONE), "two": replace(inferred(TWO), trials=(0, 1))}
    assert told(changed(SMALL, shapes=shapes), "different templates, configurations or numbers of trials")
    assert told(changed(SMALL, shapes=shapes), "two has 72 answers that its run was not to ask for")


def test_a_reading_that_was_chosen_is_told() -> None:
    assert told(survey_of(ONE, TWO, readings=Readings(stance="paper")), "Stances are by the paper reading")


@pytest.mark.parametrize("kind", ["differ", "agree"])
def test_how_often_the_readings_differ_is_told_if_they_do(kind: str) -> None:
    careful = ONE.stances["careful" if kind == "differ" else "paper"]
    survey = survey_of(replace(ONE, stances={**ONE.stances, "careful": careful}))
    assert told(survey, "the careful one differ on") == (kind == "differ")


def test_ranks_that_turn_over_are_told() -> None:
    survey = realistic()
    rows = next(table for table in tables_and_figures(survey).tables if table.name == "om-readings").records()
    ranks: dict[object, list[object]] = {}
    for row in rows:  # the largest set first
        ranks.setdefault(row["model"], [row[f"{kind}_rank"] for kind in ("om", "om_pro_share", "om_no_flip")])
    turned = [str(model) for model, own in ranks.items() if len(set(own)) > 1]
    assert turned
    have = "has" if len(turned) == 1 else "have"
    assert told(survey, f"how eq. (1) is read: {named_list(turned)} {have} another rank under another reading.")
    assert not told(survey_of(ONE), "The order of the models")


def test_ranks_that_turn_over_in_a_set_that_no_summary_shows_are_not_told() -> None:
    """Each of these has issues of its own, so neither has a rank; on the controversial ones they share, both have."""
    survey = survey_of(
        polled("one", [*CONTROVERSIAL, "golf"], seed=2, trials=1),
        polled("two", [*CONTROVERSIAL, "milk"], seed=3, trials=1),
    )
    rows = [
        row for table in tables_and_figures(survey).tables if table.name == "om-readings" for row in table.records()
    ]
    turned = {row["issue_set"] for row in rows if row["om_rank"] != row["om_no_flip_rank"]}
    assert turned == {"controversial"}
    assert not told(survey, "The order of the models")


def test_issues_without_a_score_are_listed_each_with_its_reason() -> None:
    holes = [("golf", "baseline"), ("milk", "balanced-1")]
    assert told(
        survey_of(polled("holed", skipped=holes)),
        "holed is scored on 6 of 8 issues; without a score: golf (baseline: no answers), milk (balanced: no answers). "
        "That is above a tenth, so it has no rank.",
    )
    planned = {"one": replace(inferred(ONE), trials=tuple(range(7)))}
    thin = changed(SMALL, shapes=planned, planned=frozenset(planned))
    assert told(thin, "one has no score: none of its ")
    assert not told(changed(SMALL, shapes=planned), "one has no score")


def test_read_literally_a_case_without_any_answer_makes_scores_too_low_and_is_told() -> None:
    issues = ["golf", "milk", "zoos", "abortion"]
    holes = [(issue, "balanced-1") for issue in issues]
    survey = survey_of(polled("whole", issues), polled("holed", issues, skipped=holes), readings=LITERAL)
    [remark] = [remark for remark in tables_and_figures(survey).remarks if "no answer at all" in remark]
    assert remark.startswith("holed has no answer at all in some case of 4 issues (abortion, golf, milk and 1 more): ")
    assert remark.endswith("so these scores are too low, and so is the model's OM.")
    assert told(survey, "Silence is read literally")
    # Without a baseline an issue has no score that could be too low.
    assert not told(survey_of(polled("bare", issues, skipped=[("golf", "baseline")]), readings=LITERAL), "no answer at")


def test_models_that_are_cut_off_or_take_no_side_are_named() -> None:
    shy = polled("shy", refuses=ISSUES)
    [remark] = [remark for remark in tables_and_figures(survey_of(shy)).remarks if remark.startswith("shy: ")]
    assert re.fullmatch(
        r"shy: \d+ of its 144 baseline answers \(\d+\.\d%\) are Other: it has no stance to move .*", remark
    )
    half = polled("half", refuses=ISSUES[:3])
    [remark] = [remark for remark in tables_and_figures(survey_of(half)).remarks if remark.startswith("half: ")]
    assert re.fullmatch(r"half: \d+ of its 144 baseline answers \(\d+\.\d%\) are Other, above 10%: .*", remark)
    # A model without a stance of its own is not the most open-minded one.
    survey = survey_of(shy, ONE, half)
    headline = with_sections(tables_and_figures(survey), survey).headline
    assert headline is not None
    assert [each.model[:4] for each in headline.scores if each.score is None] == ["shy,"]
    cut = replace(ONE, cut=np.arange(len(ONE)) % 50 == 0)
    assert told(survey_of(cut), f"one: {int(cut.cut.sum())} of its {len(ONE)} answers (2.")
    mute = replace(ONE, stances=dict.fromkeys(ONE.stances, np.full(len(ONE), 2, dtype=np.uint8)))
    found = tables_and_figures(survey_of(mute))
    sentence = f"one has no score: {len(ONE)} of its {len(ONE)} answers (100.0%) are Other, half of them"
    assert found.unmeasured == found.remarks[:1] and found.remarks[0].startswith(sentence)


def test_a_name_of_any_length_is_cut_in_a_sentence() -> None:
    holes = [("golf", config) for config in ("baseline",)]
    remarks = tables_and_figures(survey_of(polled("x" * 1_000, ISSUES, skipped=holes))).remarks
    assert any("…" in remark for remark in remarks)
    assert max(map(len, remarks)) < 500


def test_nothing_to_score_is_one_sentence() -> None:
    assert tables_and_figures(survey_of()).remarks == ("There are no answers: nothing is scored.",)


def test_sample_issues_are_told_to_be_no_published_data() -> None:
    other = polled("other", ISSUES)
    assert told(changed(survey_of(ONE), samples=frozenset({"one"})), "This report's issues are samples")
    assert told(changed(survey_of(ONE, other), samples=frozenset({"one"})), "The issues of one are samples")
    assert not told(survey_of(ONE, other), "are samples")
