"""Figures over all answers: the values that scikit-learn 1.9.1 and hand computation give."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from millstream.metrics.task.figures import NO_LABEL, auroc, calibration_error, f1, pass_at

TRUTH = np.array([2, 0, 0, 0, 0, 2, 2, 1, 0, 0, 0, 1, 1, 1, 0, 0, 2, 2, 0, 0, 1, 1, 2, 1])
PREDICTED = np.array([2, 0, 1, 2, 0, 2, 1, 1, 0, 2, 0, 1, 0, 1, 0, 2, 2, 1, 0, 0, 0, 2, 2, 0])
SCORES = np.array([8, 4, 5, 1, 7, 3, 9, 6, 6, 4, 6, 5, 5, 10, 8, 6, 9, 2, 9, 2, 13, 9, 6, 13]) / 10
EACH = np.arange(24)


def test_f1_is_that_of_scikit_learn() -> None:
    macro, binary = f1(PREDICTED, TRUTH, EACH, 3), f1(PREDICTED, TRUTH, EACH, 3, positive=1)
    assert macro is not None and binary is not None
    assert macro.mean == pytest.approx(0.5665445665445665, abs=1e-12)  # f1_score(average="macro")
    assert binary.mean == pytest.approx(0.46153846153846156, abs=1e-12)  # f1_score of label 1
    assert macro.low is None and macro.note == "no interval: fewer than 30 items (24)"
    twice = f1(np.tile(PREDICTED, 2), np.tile(TRUTH, 2), np.arange(48), 3)
    assert twice is not None and twice.low is not None and twice.high is not None
    assert twice.mean == pytest.approx(macro.mean) and twice.low < twice.mean < twice.high


def test_an_answer_without_a_label_counts_against_the_true_one_alone() -> None:
    found = f1(np.array([0, NO_LABEL, 1, 2]), np.array([0, 0, 1, 1]), np.arange(4), 3)
    assert found is not None and found.mean == pytest.approx((2 / 3 + 2 / 3) / 2)
    assert f1(np.array([0]), np.array([0]), np.array([0]), 2, positive=1) is None


def test_auroc_is_that_of_scikit_learn_and_a_tie_is_half_a_win() -> None:
    found = auroc(SCORES, TRUTH == 1, EACH)
    assert found is not None and found.mean == pytest.approx(0.7436974789915967, abs=1e-12)  # roc_auc_score
    tied = auroc(np.array([1.0, 1.0]), np.array([True, False]), np.array([0, 1]))
    assert tied is not None and tied.mean == 0.5
    assert auroc(SCORES, TRUTH >= 0, EACH) is None


def test_the_jackknife_of_auroc_leaves_out_whole_items() -> None:
    """Compared with the interval from figures computed anew without each item."""
    source = np.random.default_rng(1)
    item = np.repeat(np.arange(35), 3)
    is_right, score = source.random(105) < 0.4, source.integers(0, 11, 105) / 10
    whole = auroc(score, is_right, item)
    assert whole is not None and whole.low is not None and whole.high is not None
    kept = [auroc(score[item != left], is_right[item != left], item[item != left]) for left in range(35)]
    figures = np.array([each.mean for each in kept if each is not None])
    logits = np.log(figures / (1 - figures))
    error = np.sqrt(34 / 35 * ((logits - logits.mean()) ** 2).sum())
    half = 2.032244509317718 * error  # Student's t, 34 degrees of freedom
    middle = np.log(whole.mean / (1 - whole.mean))
    ends = [1 / (1 + np.exp(-end)) for end in (middle - half, middle + half)]
    assert [whole.low, whole.high] == pytest.approx(ends, abs=1e-9)


def test_pass_at_k_is_the_share_of_subsets_of_k_trials_with_a_right_one() -> None:
    right = {0: [1, 0, 0, 0, 1], 1: [0, 0, 0, 0, 0], 2: [1, 1, 1, 1, 0], 3: [1, 0]}
    item = np.array([at for at, trials in right.items() for _ in trials])
    flat = np.array([trial for trials in right.values() for trial in trials]) == 1
    for k in (1, 2, 3):
        of_item = [np.mean([max(each) for each in combinations(t, k)]) for t in right.values() if len(t) >= k]
        found = pass_at(k, flat, item, item)
        assert found is not None and found.mean == pytest.approx(np.mean(of_item)), k
        assert found.clusters == len(of_item)
    assert pass_at(6, flat, item, item) is None
    assert found is not None and found.note == "no interval: fewer than 30 items (3)"
    sixty = np.repeat(np.arange(60), 3)
    few, more = (pass_at(2, (sixty >= hard) | (np.arange(180) % 3 == 0), sixty, sixty) for hard in (4, 5))
    assert few is not None and few.note == "no interval: fewer than 5 items of one kind (4)"
    assert more is not None and more.low is not None and more.low < more.mean == pytest.approx(1 - 5 / 180)
    one = np.zeros(1_000, dtype=np.int64)
    many = pass_at(50, np.arange(1_000) < 3, one, one)
    assert many is not None and many.mean == pytest.approx(1 - comb(997, 50) / comb(1_000, 50), abs=1e-12)


def test_calibration_error_weighs_the_bins_by_their_answers() -> None:
    confidence = np.array([0.1, 0.1, 0.7, 0.9, 0.9, 1.0, 0.0])
    is_right = np.array([False, True, True, True, False, True, False])
    # Bins (0, 0.1] with 0 in it, (0.6, 0.7], (0.8, 0.9], (0.9, 1]: |0.2 - 1|, |0.7 - 1|, |1.8 - 1|, |1 - 1| over 7.
    found = calibration_error(confidence, is_right, np.arange(7), 10)
    assert found is not None and found.mean == pytest.approx((0.8 + 0.3 + 0.8 + 0.0) / 7)
    assert found.low is None and found.note is not None and "chance alone" in found.note


@pytest.mark.parametrize(
    ("items", "rarer", "why"),
    [(29, 9, "fewer than 30 items (29)"), (30, 4, "fewer than 5 items of one kind (4)"), (30, 10, "is 0 or 1")],
)
def test_a_figure_that_allows_no_interval_says_why(items: int, rarer: int, why: str) -> None:
    is_right = np.arange(items) < rarer
    score = is_right.astype(np.float64) if items == 30 else np.arange(items, dtype=np.float64)
    found = auroc(score, is_right, np.arange(items))
    assert found is not None and (found.low, found.high) == (None, None) and why in str(found.note)


def test_the_jackknife_of_f1_leaves_out_whole_items_and_many_labels_take_little_memory() -> None:
    source = np.random.default_rng(2)
    item = np.repeat(np.arange(60), 2)
    truth = np.repeat(source.integers(0, 3, 60), 2)
    predicted = np.where(source.random(120) < 0.7, truth, source.integers(NO_LABEL, 3, 120))
    whole = f1(predicted, truth, item, 3)
    assert whole is not None and whole.low is not None and whole.high is not None
    kept = [f1(predicted[item != left], truth[item != left], item[item != left], 3) for left in range(60)]
    figures = np.array([each.mean for each in kept if each is not None])
    logits = np.log(figures / (1 - figures))
    half = 2.0009953780882688 * np.sqrt(59 / 60 * ((logits - logits.mean()) ** 2).sum())  # t, 59 degrees of freedom
    middle = np.log(whole.mean / (1 - whole.mean))
    ends = [1 / (1 + np.exp(-end)) for end in (middle - half, middle + half)]
    assert [whole.low, whole.high] == pytest.approx(ends, abs=1e-9)
    each = np.arange(50_000)
    many = f1(np.where(each % 2 == 0, each, NO_LABEL), each, each, 50_000)
    assert many is not None and many.mean == 0.5 and many.low is None
