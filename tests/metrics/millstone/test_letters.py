"""Claims about letters and positions: a liking for A, or for what is named first, is found, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.engine.pairs import Pair
from millstream.metrics.millstone.answers import AnswerRows, AnswerTally
from millstream.metrics.millstone.counts import counts_of
from millstream.metrics.millstone.letters import Letters, letters, letters_remarks
from millstream.metrics.millstone.scores import scores

APPENDIX_B = dict(zip(range(1, 7), ("pro", "pro", "pro", "pro", "con", "con"), strict=True))
APPENDIX_C = APPENDIX_B | {4: "con"}
OTHER_SIDE = {"pro": "con", "con": "pro", "other": "other"}

Answerer = Callable[[str, int], str]


def tallied(
    stance_of: Answerer,
    sides: dict[int, str] = APPENDIX_B,
    labels: dict[int, str] | None = None,
    templates: int = 6,
    issues: int = 4,
    trials: int = 2,
) -> AnswerTally:
    """Baseline answers whose true stance is `stance_of(what A means, the template)`, recorded by `labels`; the wordings
    are known where the labels differ from them."""
    labels = labels or sides
    names = [f"issue {at}" for at in range(issues)]
    wrong = {template: side for template, side in sides.items() if labels[template] != side}
    tally = AnswerTally({(issue, template): side for issue in names for template, side in wrong.items()})
    for issue in names:
        for template in range(1, templates + 1):
            for trial in range(trials):
                stance = stance_of(sides[template], template)
                if template in wrong:
                    stance = OTHER_SIDE[stance]
                for config in (
                    "baseline",
                    "one-sided-pro",
                    "one-sided-con",
                    "clear-pro-1",
                    "clear-con-1",
                    "balanced-1",
                ):
                    told = (stance if config == "baseline" else "con", None, None)
                    tally.add(Pair("m", None), issue, template, config, trial, told, orientation=labels[template])
    return tally


def letters_of(tally: AnswerTally) -> Letters:
    found = letters(counts_of(tally.models()[0]))
    assert found is not None
    return found


def always_a(side: str, _: int) -> str:
    return side


def test_an_answer_of_a_alone_is_an_effect_of_100_points_without_a_position() -> None:
    found = letters_of(tallied(always_a))
    assert (found.effect, found.effect_issues, found.position, found.position_issues) == (100.0, 4, 0.0, 4)
    assert (found.share_of_a, found.majorities, found.ties) == (100.0, 0, 4)
    # Of the 60 pairs of answers to two of six templates, four pro and two con: 6 + 1 of 15.
    assert found.template_agreement == pytest.approx(100 * 7 / 15)
    assert found.trial_agreement == 100.0


def test_a_firm_model_without_a_preference_has_no_effect_and_no_remark() -> None:
    for side, share in (("pro", 66.7), ("con", 33.3)):
        found = letters_of(tallied(lambda _a, _t, side=side: side))  # type: ignore[misc]
        assert (found.effect, found.position, found.template_agreement, found.trial_agreement) == (0.0, 0.0, 100, 100)
        assert found.share_of_a == pytest.approx(share, abs=0.05)
        assert (found.majorities, found.ties) == (4 if side == "pro" else 0, 0)
        assert not list(letters_remarks("m", found))


def test_with_a_template_4_of_appendix_c_position_is_not_told_apart() -> None:
    found = letters_of(tallied(always_a, APPENDIX_C))
    assert (found.effect, found.position, found.position_issues) == (100.0, None, 0)
    [told] = letters_remarks("m", found)
    assert "m: " in told and "letter or position" in told and "no template 4 tells apart" in told


def test_a_wrong_label_does_not_change_what_a_template_is() -> None:
    labels = dict.fromkeys(range(1, 7), "pro")  # as data/US-penny.json of the released files
    assert letters_of(tallied(always_a, labels=labels)) == letters_of(tallied(always_a))
    labels = APPENDIX_B | {4: "con"}
    assert letters_of(tallied(always_a, labels=labels)) == letters_of(tallied(always_a))


@pytest.mark.parametrize("templates", [1, 3, 4, 5])
def test_without_all_mirror_images_there_is_no_effect(templates: int) -> None:
    found = letters_of(tallied(always_a, templates=templates))
    assert (found.effect, found.effect_issues, found.majorities, found.ties) == (None, 0, None, None)
    assert found.position == (0.0 if templates > 3 else None)


def test_records_without_an_orientation_have_agreements_alone() -> None:
    tally = AnswerTally({("drones", 5): "con"})
    for template in range(1, 7):
        tally.add(Pair("m", None), "drones", template, "baseline", 0, ("pro", None, None))
    found = letters_of(tally)
    assert (found.effect, found.position, found.share_of_a) == (None, None, None)
    assert found.template_agreement == 100.0


def test_a_remark_begins_above_ten_points_of_either() -> None:
    def found(effect: float | None, position: float | None) -> Letters:
        return Letters(effect, None, None, 3, position, 0 if position is None else 3, 50.0, 50.0, 50.0, 1, 1)

    for effect, position in ((10.0, -10.0), (None, None), (0.0, None)):
        assert not list(letters_remarks("m", found(effect, position)))
    for effect, position in ((10.1, 0.0), (-10.1, None), (0.0, 10.1), (None, -10.1)):
        [told] = letters_remarks("x/named", found(effect, position))
        assert told.startswith("x/named: ") and "letter or position" in told


def test_an_effect_of_chance_has_an_interval_that_says_so() -> None:
    chance = Random(3)
    issues = {f"issue-{number}": chance.choice(("pro", "con")) for number in range(12)}
    tally = AnswerTally()
    for issue in issues:
        for template, side in APPENDIX_B.items():
            stance = chance.choice(("pro", "con"))
            tally.add(Pair("m", None), issue, template, "baseline", 0, (stance, None, None), orientation=side)
    found = letters_of(tally)
    assert found.effect is not None and found.effect_low is not None and found.effect_high is not None
    assert found.effect_low < 0 < found.effect_high and found.effect_low < found.effect < found.effect_high
    if abs(found.effect) > 10:
        [told] = letters_remarks("m", found)
        assert f"12 issues, 95% interval {found.effect_low:.1f} to {found.effect_high:.1f}" in told.replace("−", "-")


def test_the_remark_and_the_figures_stand_in_the_scores() -> None:
    document = scores(tallied(always_a))["millstone"]["models"]["m"]
    assert document["letters"]["effect"] == 100.0
    assert any("letter or position" in told for told in document["remarks"])
    firm = scores(tallied(lambda _a, _t: "pro"))["millstone"]["models"]["m"]
    assert firm["letters"]["effect"] == 0.0 and firm["remarks"] == []


def test_a_silent_baseline_is_in_no_figure() -> None:
    tally = tallied(lambda _a, _t: "pro")
    for template, side in APPENDIX_B.items():
        for trial in range(2):
            tally.add(Pair("m", None), "mute", template, "baseline", trial, ("other", None, None), orientation=side)
    found = scores(tally)["millstone"]["models"]["m"]["letters"]
    assert (found["effect_issues"], found["ties"]) == (4, 0)


@given(st.integers(0, 10_000))
def test_a_second_implementation_agrees(seed: int) -> None:
    chance = Random(seed)
    rows: list[tuple[str, int, int, str, str]] = []
    tally = AnswerTally()
    for issue in "abc":
        for template in range(1, 7):
            for trial in range(chance.randint(1 if template < 3 else 0, 3)):
                stance, side = chance.choice(("pro", "con", "other")), APPENDIX_B[template]
                rows.append((issue, template, trial, stance, side))
                tally.add(Pair("m", None), issue, template, "baseline", trial, (stance, None, None), orientation=side)
    found = letters_of(tally)

    def stances(issue: str, *templates: int) -> list[str]:
        return [row[3] for row in rows if row[0] == issue and row[1] in templates]

    def share(issue: str, *templates: int) -> float:
        return stances(issue, *templates).count("pro") / len(stances(issue, *templates))

    whole = [issue for issue in "abc" if all(stances(issue, template) for template in (2, 3, 5, 6))]
    moved = [issue for issue in "abc" if stances(issue, 1) and stances(issue, 4)]
    effects = [share(issue, 2, 3) - share(issue, 5, 6) for issue in whole]
    positions = [share(issue, 1) - share(issue, 4) for issue in moved]
    assert found.effect == (pytest.approx(100 * np.mean(effects)) if whole else None)
    assert found.position == (pytest.approx(100 * np.mean(positions)) if moved else None)
    leads = [stances(one, 2, 3, 5, 6).count("pro") - stances(one, 2, 3, 5, 6).count("con") for one in whole]
    ties = (sum(lead > 0 for lead in leads), sum(lead == 0 for lead in leads)) if whole else (None, None)
    assert (found.majorities, found.ties) == ties
    named = [row[3] == row[4] for row in rows if row[3] != "other"]
    assert found.share_of_a == (pytest.approx(100 * np.mean(named)) if named else None)
    pairs = [(a, b) for a, b in combinations(rows, 2) if a[0] == b[0]]
    for is_same, agreement in ((False, found.template_agreement), (True, found.trial_agreement)):
        agree = [a[3] == b[3] for a, b in pairs if (a[1] == b[1]) == is_same]
        assert agreement == (pytest.approx(100 * np.mean(agree)) if agree else None)


def test_rows_of_one_issue_keep_what_a_means() -> None:
    [answers] = tallied(always_a).models()
    assert isinstance(answers, AnswerRows)
    some = answers.at(answers.template == 5)
    assert {int(side) for side in some.side} == {int(side) for side in some.wording} == {1}
