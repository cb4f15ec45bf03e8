"""The scores of a task: how trials combine, what silence is, intervals by item, paired comparisons."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from millstream.metrics.statistics.comparisons import compare
from millstream.metrics.statistics.intervals import interval
from millstream.metrics.task.summary import scores
from millstream.metrics.task.trials import Combine, ModelAnswers, Problems, ReadingRules, Unreadable

MEND = " Mend the function, then `millstream rescore DIR --task FILE` scores these answers again without a call."
NAN = float("nan")


def answers(*trials: Sequence[float], planned: int | None = None, empty: int = 0, cut: int = 0) -> ModelAnswers:
    """Items by the scores of their trials. The first `empty` answers are empty, the first `cut` cut off."""
    score = array("d", [value for each in trials for value in each])
    return ModelAnswers(
        trials=planned or max(map(len, trials)),
        items={f"i{at}": at for at in range(len(trials))},
        item=array("q", [at for at, each in enumerate(trials) for _ in each]),
        score=score,
        is_empty=array("b", [at < empty for at in range(len(score))]),
        is_truncated=array("b", [at < cut for at in range(len(score))]),
    )


def without(problem: str, number: int, part: str | None = None) -> defaultdict[str | None, Problems]:
    """Why answers have no score of a name, in the form of a model's columns."""
    return defaultdict(Problems, {part: Problems({problem: number})})


def model(name: str, given: ModelAnswers, **fields: Any) -> ModelAnswers:
    return replace(given, name=name, **fields)


@pytest.mark.parametrize(
    ("combine", "unreadable", "expected"),
    [
        ("mean", "skip", [2 / 3, 0.5, NAN, 1.0, NAN]),
        ("majority", "skip", [1, 0, NAN, 1, NAN]),
        ("any", "skip", [1, 1, NAN, 1, NAN]),
        ("mean", "zero", [2 / 3, 1 / 3, 0, 2 / 3, 1 / 3]),
        ("any", "zero", [1, 1, 0, 1, 1]),
    ],
)
def test_trials_combine_to_one_figure_an_item_where_half_of_them_have_a_score(
    combine: Combine, unreadable: Unreadable, expected: list[float]
) -> None:
    given = answers([1, 1, 0], [1, 0, NAN], [NAN, NAN, NAN], [1, 1, NAN], [1, NAN, NAN])
    np.testing.assert_allclose(given.values(ReadingRules(combine, unreadable)), expected)


def test_a_mean_has_the_interval_over_items_and_groups_their_own() -> None:
    rng = np.random.default_rng(1)
    values = (rng.random((40, 3)) < 0.6).astype(float)
    given = model("a/x", answers(*values.tolist()), groups=["odd" if at % 2 else "even" for at in range(40)])
    found = scores([given], ReadingRules())["models"]["a/x"]
    expected = interval(values.ravel(), [at // 3 for at in range(120)], within=(0, 1))
    assert (found["mean"], found["ci95"]) == (expected.mean, [expected.low, expected.high])
    assert (found["items"], found["items_scored"], found["trials"], found["answers"]) == (40, 40, 3, 120)
    assert found["groups"]["odd"]["mean"] == pytest.approx(values[1::2].mean())
    assert [found["groups"][name]["items"] for name in ("even", "odd")] == [20, 20]


def test_shares_and_their_differences_have_exact_intervals_and_the_exact_test() -> None:
    rng = np.random.default_rng(3)
    right, better = (rng.random((2, 12)) < [[0.5], [1]]).astype(float)
    given = [model("a/x", answers(*better[:, None].tolist())), model("a/y", answers(*right[:, None].tolist()))]
    found = scores(given, ReadingRules(within=(0, 1)))
    assert found["models"]["a/x"]["ci95"] == pytest.approx([0.7353515, 1.0], abs=1e-6)  # 0.025 ** (1 / 12)
    assert found["models"]["a/x"]["ci95_note"] is None
    expected = compare(better, right)
    (pair,) = found["pairs"]
    assert (pair["ci95"], pair["p"]) == ([expected.low, expected.high], expected.p)
    assert expected.p == pytest.approx(2.0 ** (1 - (better - right).sum()))


@pytest.mark.parametrize(("number", "compared", "left_out"), [(30, 435, 0), (31, 30, 435), (1_000, 999, 498_501)])
def test_comparisons_grow_no_faster_than_models_from_31_on(number: int, compared: int, left_out: int) -> None:
    drawn = (np.random.default_rng(4).random((number, 12)) < np.linspace(0, 1, number)[:, None]).astype(float)
    given = [model(f"a/{at}", answers(*drawn[at, :, None].tolist())) for at in range(number)]
    given.append(model("a/silent", answers(*[[NAN]] * 12)))
    found = scores(given, ReadingRules(within=(0, 1)))
    assert (len(found["pairs"]), found["pairs_left_out"]) == (compared, left_out)
    if left_out:
        means = [found["models"][pair["a"]]["mean"] for pair in found["pairs"]]
        assert means == sorted(means, reverse=True)
        assert [pair["b"] for pair in found["pairs"][:-1]] == [pair["a"] for pair in found["pairs"][1:]]


def test_a_model_with_scores_outside_the_scorers_range_has_no_score() -> None:
    changed = answers(*[[1.0]] * 20, [-1.0], [5.0], [5.0], [0.0])
    other = answers(*[[1.0], [0.0]] * 12)
    found = scores([model("a/x", changed), model("a/y", other)], ReadingRules(within=(0, 1)))
    entry = found["models"]["a/x"]
    assert (entry["mean"], entry["ci95"], found["pairs"]) == (None, [None, None], [])
    (sentence,) = found["unmeasured"]
    assert sentence.startswith(
        "a/x has no score: 3 of its 24 answers (12.5%) have one outside the range of 0 to 1, which"
    )
    assert found["models"]["a/y"]["mean"] == 0.5


def test_models_are_compared_over_the_items_that_both_have_a_score_for() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.random((2, 30))
    second[:5] = NAN
    both = [model("a/x", answers(*first[:, None].tolist())), model("a/y", answers(*second[:, None].tolist()))]
    (pair,) = scores(both, ReadingRules(within=(0, 1)))["pairs"]
    expected = compare(first[5:], second[5:], within=(0, 1))
    assert (pair["a"], pair["b"], pair["items"]) == ("a/x", "a/y", 25)
    assert (pair["difference"], pair["ci95"], pair["p"]) == (
        expected.difference,
        [expected.low, expected.high],
        expected.p,
    )
    assert pair["p_adjusted"] == pair["p"]


def test_variants_are_adjusted_over_all_models_as_two_runs_are() -> None:
    trials = [[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 4
    of_each = answers(*trials, planned=1)
    both = [
        model(name, of_each, variants=["A", "B"], variant=array("q", [0, 1] * len(trials))) for name in ("a/x", "a/y")
    ]
    for models, adjusted in ((both[:1], 0.754), (both, 1.0)):
        for entry in scores(models, ReadingRules(within=(0, 1)))["models"].values():
            (pair,) = entry["variant_pairs"]
            assert (pair["p"], pair["p_adjusted"]) == pytest.approx((0.754, adjusted), abs=1e-3)


@pytest.mark.parametrize(("silent", "is_worthless"), [(9, False), (10, True), (20, True)])
def test_half_of_the_answers_without_a_score_leave_the_model_without_one(silent: int, is_worthless: bool) -> None:
    given = answers(*[[NAN if at < silent else 1.0] for at in range(20)], empty=1)
    other = model("a/y", answers(*[[0.0]] * 20))
    problems = without("the answer names no letter for certain", silent)
    found = scores([model("a/x", given, problems=problems), other], ReadingRules(items=20))
    entry = found["models"]["a/x"]
    assert (entry["mean"] is None) == is_worthless
    assert len(found["unmeasured"]) == is_worthless
    assert len(found["pairs"]) == 1 - is_worthless
    if is_worthless:
        share = 100 * silent / 20
        assert found["unmeasured"][0] == (
            f"a/x has no score: {silent} of its 20 answers ({share:.1f}%) have no score (1 empty, {silent - 1} that "
            f"cannot be read), half of them or more. Most often: the answer names no letter for certain."
        )
    else:
        assert (entry["mean"], entry["mean_with_unreadable_as_0"]) == (1.0, 0.55)
        assert "as 0 they would make its mean 0.550" in entry["remarks"][0]


def test_a_model_without_a_single_scored_item_measured_nothing() -> None:
    silent = answers(*[[1.0]] * 4, planned=3)
    found = scores([model("a/x", silent)], ReadingRules(items=4))
    assert found["unmeasured"] == ["a/x has no score: none of its items has half of its 3 trials yet (4 answers)."]
    # Half of the trials are there, and each second one has no score.
    split = answers(*[[1.0, NAN]] * 4, [1.0, 1.0], planned=4)
    assert scores([model("a/x", split)], ReadingRules(items=5))["unmeasured"] == []
    uneven = answers(*[[1.0, NAN]] * 4, *[[1.0]] * 2, planned=4)
    (told,) = scores([model("a/x", uneven)], ReadingRules(items=6))["unmeasured"]
    assert told == "a/x has no score: none of its items has one (10 answers)."


def test_errors_of_the_score_function_are_told_apart_from_answers_that_cannot_be_read() -> None:
    problems = without("the score function raised KeyError in t.py line 7: 'total'", 3)
    problems[None].add("the answer is empty")
    found = scores([model("a/x", answers(*[[NAN]] * 4, empty=1), problems=problems)], ReadingRules(items=4))
    of_model, raised = found["unmeasured"]
    assert "(1 empty, 0 that cannot be read, 3 whose score function raised an error)" in of_model
    assert raised == f"the score function raised on 3 of 4 answers: KeyError in t.py line 7: 'total'.{MEND}"


def test_a_score_function_that_raises_once_leaves_a_score_that_is_not_whole() -> None:
    problems = without("the score function raised KeyError in t.py line 7: 'total'", 1)
    found = scores([model("a/x", answers(*[[1.0]] * 199, [NAN]), problems=problems)], ReadingRules(items=200))
    assert found["models"]["a/x"]["mean"] == 1.0
    (told,) = found["unmeasured"]
    assert told == f"the score function raised on 1 of 200 answers: KeyError in t.py line 7: 'total'.{MEND}"


def test_errors_of_one_line_are_one_cause_over_all_models_whatever_their_words_and_number() -> None:
    models = []
    for name in ("a/x", "a/y"):
        problems = without("the score function gave 'a', which is no finite number", 1)
        for number in range(60):
            problems[None].add(f"the score function gave {number}, which is too large for a mean")
            problems[None].add(f"the score function raised KeyError in t.py line 7: {name}: {number}")
        problems[None].add("the score function raised TypeError in t.py line 9: no")
        models.append(model(name, answers(*[[1.0]] * 200, *[[NAN]] * 122), problems=problems))
    found = scores(models, ReadingRules(items=322))
    (told,) = found["unmeasured"]
    causes = "KeyError in t.py line 7: a/x: 0 (120); TypeError in t.py line 9: no (2)"
    assert told == f"the score function raised on 122 of 644 answers: {causes}.{MEND}"
    assert (
        "(0 empty, 61 that cannot be read, 61 whose score function raised an error)"
        in found["models"]["a/x"]["remarks"][0]
    )
    assert found["models"]["a/x"]["problems"]["others"] == 12


def test_a_score_without_a_figure_has_its_reason_whether_it_is_the_main_one_or_not() -> None:
    given = answers(*[[1.0]] * 8)
    problems = without("the score function raised KeyError in t.py line 7: 'tone'", 8, "tone")
    problems["terse"].add("the judge's reply cannot be read: it holds no JSON object", 5)
    problems["length"].add("the score function raised TypeError in u.py line 3: no", 1)
    parts = {
        "right": given.score,
        "tone": array("d", [NAN] * 8),
        "terse": array("d", [NAN] * 5 + [1.0] * 3),
        "length": array("d", [NAN] + [1.0] * 7),
    }
    found = scores([model("a/x", given, parts=parts, firsts={"right"}, problems=problems)], ReadingRules(items=8))
    entry = found["models"]["a/x"]
    assert [entry["scores"][name]["mean"] for name in parts] == [1.0, None, None, 1.0]
    assert ["problems" in entry["scores"][name] for name in parts] == [False, True, True, True]
    assert found["unmeasured"] == [
        "a/x: tone has no score: 8 of its 8 answers (100.0%) have no score (0 empty, 0 that cannot be read, 8 whose "
        "score function raised an error), half of them or more.",
        "a/x: terse has no score: 5 of its 8 answers (62.5%) have no score (0 empty, 5 that cannot be read), half of "
        "them or more. Most often: the judge's reply cannot be read: it holds no JSON object.",
        f"tone: the score function raised on 8 of 8 answers: KeyError in t.py line 7: 'tone'.{MEND}",
        f"length: the score function raised on 1 of 8 answers: TypeError in u.py line 3: no.{MEND}",
    ]
    (told,) = entry["remarks"]
    assert told.startswith("a/x: length: 1 of its 8 answers (12.5%) have no score (0 empty, 0 that cannot be read, 1 ")
    assert told.endswith("; they are left out.")


def test_silence_of_all_scores_of_an_answer_is_told_once() -> None:
    given = answers(*[[1.0]] * 6, *[[NAN]] * 2)
    problems = without("the answer is empty", 2)
    problems["right"].add("the answer is empty", 2)
    problems["tone"].add("the answer is empty", 2)
    parts = {"right": given.score, "tone": given.score}
    found = scores([model("a/x", given, parts=parts, firsts={"right"}, problems=problems)], ReadingRules(items=8))
    assert found["unmeasured"] == [] and len(found["models"]["a/x"]["remarks"]) == 2
    assert all("problems" not in each for each in found["models"]["a/x"]["scores"].values())


def test_cut_and_missing_items_are_told_before_the_score() -> None:
    found = scores([model("a/x", answers(*[[1.0]] * 40, cut=1))], ReadingRules(items=50))
    remarks = found["models"]["a/x"]["remarks"]
    assert remarks == [
        "a/x: 1 of its 40 answers (2.5%) are cut off at max_tokens, above 1%.",
        "a/x is scored on 40 of 50 items: its mean is of these alone, so compare models by the paired differences.",
    ]


def test_several_scores_have_a_mean_each() -> None:
    given = answers(*[[1.0], [0.0]] * 10)
    parts = {"first": given.score, "polite": array("d", np.linspace(0, 5, 20)), "rare": array("d", [NAN] * 20)}
    found = scores([model("a/x", given, parts=parts)], ReadingRules())["models"]["a/x"]["scores"]
    assert (found["first"]["mean"], found["polite"]["mean"], found["rare"]["mean"]) == (0.5, 2.5, None)


def test_scores_beyond_one_have_no_bounds_unless_they_are_given() -> None:
    wide = model("a/x", answers(*[[value] for value in np.linspace(0, 9, 12)]))
    assert scores([wide], ReadingRules())["within"] is None
    assert scores([model("a/x", answers([1.0], [0.0]))], ReadingRules())["within"] == [0.0, 1.0]
