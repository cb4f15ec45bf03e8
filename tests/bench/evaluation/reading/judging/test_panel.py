"""The figures of a panel, each with its answer by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from panels import graded, panel

from millstream.bench.evaluation.door.judging import JudgeScore
from millstream.bench.evaluation.door.kept_answer import Key, Verdict
from millstream.bench.evaluation.reading.agreement_text import panel_json, panel_text
from millstream.bench.evaluation.reading.judging.panel import JudgedAnswer, Panel
from millstream.engine.pairs import Pair


def test_agreement_majority_and_ties_are_counted_over_answers_with_two_verdicts() -> None:
    (found,) = panel("aaa", "aab", "ab-", "b--", "a?b", "bbb").agreement
    # Two verdicts or more: aaa, aab, ab, ab (one unread), bbb; of these aaa, aab and bbb have a majority.
    assert (found.answers, found.by_all, found.majority, found.ties) == (6, 3, 3, 2)
    # Alpha: within aaa 0, aab (9-5)/2 = 2, ab (4-2)/1 = 2, ab 2, bbb 0: 6. All 13 values: 7 a and 6 b:
    # (169 - 49 - 36) / 12 = 7; alpha = 1 - 6/7.
    assert found.alpha.units == 5
    assert found.alpha.value == pytest.approx(1 - 6 / 7)


def test_pairs_of_judges_are_compared_over_the_answers_that_both_judged() -> None:
    first, _, last = panel("aaa", "aab", "ab-", "b--", "bba").pairs
    assert (first.first, first.second, first.answers) == ("own", "two", 4)
    # own and two: aa, aa, ab, bb: 3 of 4 agree; by chance 3/4 * 2/4 + 1/4 * 2/4 = 1/2; kappa = (3/4 - 1/2) / (1/2).
    assert first.labels is not None and (first.labels.share, first.labels.kappa) == (0.75, 0.5)
    assert (last.first, last.second, last.answers) == ("two", "three", 3)


def test_bias_is_a_judges_share_minus_the_mean_share_of_the_others() -> None:
    found = panel("aaa", "aab", "abb", "a-a", "bb?")
    biases = {(each.judge, each.label): each for each in found.biases}
    # Three answers with a verdict of every judge: shares of `a` are 3/3, 2/3 and 1/3.
    assert {each.answers for each in biases.values()} == {3}
    assert biases["own", "a"].bias == pytest.approx(1 - (2 / 3 + 1 / 3) / 2)
    assert biases["two", "a"].bias == pytest.approx(0)
    assert biases["three", "a"].bias == pytest.approx(1 / 3 - (1 + 2 / 3) / 2)
    assert biases["three", "b"].bias == pytest.approx(-biases["three", "a"].bias)


def test_grades_have_means_and_differences_in_place_of_labels() -> None:
    found = graded((1, 2, 3), (5, 5, 4), (2, None, 3))
    (whole,) = found.agreement
    assert (whole.majority, whole.ties, whole.by_all) == (0, 0, 2)
    # Units (1, 2, 3), (5, 5, 4), (2, 3). Within: 3 * 2 * 2 / 2 = 6; 3 * 2 * (2/3) / 2 = 2; 2 * 2 * 0.5 / 1 = 2: 10.
    # All eight values have the mean 25/8 and squares that sum to 93 - 625/8 = 119/8: 2 * 8 * 119/8 / 7 = 34.
    assert whole.alpha.value == pytest.approx(1 - 10 / 34)
    assert [pair.difference for pair in found.pairs] == pytest.approx([-0.5, (-2 + 1 - 1) / 3, 0.0])
    biases = {each.judge: each for each in found.biases}
    assert biases["own"].own == 3 and biases["own"].bias == pytest.approx(3 - (3.5 + 3.5) / 2)


def test_a_single_judge_is_compared_with_nobody() -> None:
    alone = panel("a", "b", judges=("own",))
    assert not (alone.replies or alone.agreement or alone.pairs or alone.biases)
    assert "No judge but the run’s own, own, has judged these answers" in panel_text(alone)


def test_the_text_says_over_which_answers_and_never_puts_a_nought_for_nothing() -> None:
    told = panel_text(panel("aa-", "ab-", "-bb"))
    assert "The run’s own judge is own. The same answers were judged anew by two, three." in told
    assert "No answer has a verdict of every judge: there is no bias to show." in told
    assert "No answer was judged by all judges: scores under them can’t be compared." in told
    whole = panel_text(panel("aaa", "aa-"))
    rows = [" ".join(line.split()) for line in whole.splitlines()]
    assert "lab/m score own 0.500 0.250 to 0.750 4 1" in rows
    assert "all judgements are the same, so chance gives complete agreement too" in whole
    assert max(map(len, told.splitlines())) <= 100


def test_scores_over_different_conversations_say_over_how_many() -> None:
    made = panel("aaa")
    scores = {**made.scores, "two": {Pair("lab/m", None): {"score": JudgeScore(0.25, None, None, 3)}}}
    rows = [" ".join(line.split()) for line in panel_text(replace(made, scores=scores)).splitlines()]
    assert "lab/m score own 0.500 0.250 to 0.750 4 1" in rows and "lab/m score two 0.250 - 3 1" in rows


def test_two_judges_are_compared_in_the_words_that_a_person_and_a_judge_are() -> None:
    # own and two say `a` throughout, so that chance gives all of it; own and three share no answer.
    made = panel("aa-", "aa-")
    rows = [" ".join(line.split()) for line in panel_text(made).splitlines()]
    assert "own two 2 100.0% 15.8% to 100.0%" in rows and "own three 0 - -" in rows
    first, second, _ = panel_json(made)["pairs"]
    assert (first["share"], first["kappa"], first["kappa_ci95"]) == (1, None, [None, None])
    assert (second["share"], second["share_ci95"]) == (None, [None, None])


def test_programs_get_the_same_figures() -> None:
    found = panel_json(panel("aaa", "aab", "abb"))
    assert found["judges"] == ["own", "two", "three"] and found["judged_by_all"] == 3
    assert found["agreement"][0]["majority"] == 3 and found["agreement"][0]["alpha_note"] is None
    assert found["pairs"][0]["table"] == {"labels": ("a", "b"), "counts": ((2, 1), (0, 0))}
    assert {(each["judge"], each["label"]): each["bias"] for each in found["biases"]}["own", "a"] == pytest.approx(0.5)
    assert found["scores"]["majority"]["lab/m"]["score"] == {"value": 0.5, "low": 0.25, "high": 0.75, "n": 4}


def test_replies_that_cannot_be_read_are_counted_by_judge_and_are_no_verdicts() -> None:
    made = panel("aa?", "ab?", "a--", "bb?")
    assert [(each.judge, each.answers, each.unread) for each in made.replies] == [
        ("own", 4, 0),
        ("two", 3, 0),
        ("three", 3, 3),
    ]
    assert made.agreement[0].by_all == 0 and not made.biases
    assert "three: 3 of its 3 replies (100.0%) were unreadable and count as no verdict" in panel_text(made)
    assert panel_json(made)["replies"][2] == {"judge": "three", "answers": 3, "unread": 3}


def test_a_grade_that_has_no_label_is_no_verdict_of_a_panel_of_labels() -> None:
    answers = [JudgedAnswer(Key(Pair("lab/m", None), "i/0"), {"own": Verdict("a", 1.0), "two": Verdict(None, 0.5)})]
    found = Panel(("own", "two"), answers, ("a", "b"), {}, 1)
    assert [each.unread for each in found.replies] == [0, 1] and found.pairs[0].answers == 0


def test_a_bias_of_nothing_is_not_shown_below_zero() -> None:
    # Of five answers own says `a` of 3, two of 2 and three of 4: 3/5 - (2/5 + 4/5) / 2 is 0, and -1e-16 in floats.
    rows = [" ".join(line.split()) for line in panel_text(panel("aaa", "aaa", "aba", "bba", "bbb")).splitlines()]
    assert "own a 5 60.0% 60.0% +0.0" in rows and not any("-0.0" in row for row in rows)


def test_the_example_of_the_guide_comes_out_as_written() -> None:
    # "Panels of judges" in docs/labels-and-judges.md has the computation. c: critical, b: balanced, ?: unread.
    found = panel("ccc", "ccb", "cbb", "cb?", judges=("A", "B", "C"), labels=("c", "b"))
    assert found.agreement[0].alpha.value == pytest.approx(1 - 6 / 5.6)
    assert (found.agreement[0].majority, found.agreement[0].ties) == (3, 1)
    kappas = {(each.first, each.second): each.labels.kappa for each in found.pairs if each.labels is not None}
    assert kappas["A", "B"] == 0 and kappas["B", "C"] == pytest.approx(0.4)
    biases = {each.judge: each.bias for each in found.biases if each.label == "c"}
    assert biases == pytest.approx({"A": 0.5, "B": 0, "C": -0.5})


def test_the_majority_is_explained_by_what_judges_give() -> None:
    grades = graded((1, 2, 3))
    of_grades = panel_text(replace(grades, scores=panel("aaa").scores))
    of_labels = " ".join(panel_text(panel("aaa")).split())
    assert "the mean of the judges’ grades" in " ".join(of_grades.split()) and "in a tie" not in of_grades
    assert "in a tie it has no verdict" in of_labels
