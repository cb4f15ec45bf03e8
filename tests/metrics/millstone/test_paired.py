"""Claims about paired tests of models: over the issues both are scored on, and each pair for itself."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from surveys import Cell, Row, answers_of, counts_from, pooled_counts

import millstream as ms
from millstream.metrics.millstone.counts import ModelCounts, counts_of
from millstream.metrics.millstone.openness import CASES
from millstream.metrics.millstone.paired import ModelPair, compare, shift_tests
from millstream.metrics.millstone.scores import issue_scores
from millstream.metrics.statistics.comparisons import holm

KINDS = st.sampled_from(["om", "om_pro_share", "om_no_flip"])
Pooled = dict[str, list[Cell]]


def naive_scores(counts: ModelCounts, kind: str) -> dict[str, float]:
    scores = issue_scores(counts)[kind].tolist()
    return {issue: score for issue, score in zip(counts.issues, scores, strict=True) if not isnan(score)}


@settings(deadline=None, max_examples=60)
@given(st.lists(pooled_counts, max_size=4), KINDS)
def test_a_comparison_is_the_public_one_of_the_scores_of_common_issues(found: list[Pooled], kind: str) -> None:
    models = [counts_from(f"m{at}", one) for at, one in enumerate(found)]
    ours = compare(models, kind)
    assert [(pair.first, pair.second) for pair in ours] == list(combinations([m.model for m in models], 2))
    for pair, (one, other) in zip(ours, combinations(models, 2), strict=True):
        first, second = naive_scores(one, kind), naive_scores(other, kind)
        common = sorted(first.keys() & second.keys())
        if not common:
            assert (pair.found, pair.p_adjusted) == (None, None)
            continue
        assert pair.found is not None
        public = ms.compare([first[issue] for issue in common], [second[issue] for issue in common], within=(0, 100))
        assert (pair.found.difference, pair.found.p, pair.found.low) == (public.difference, public.p, public.low)
        assert pair.found.of == "issues"
    p_values = [None if pair.found is None else pair.found.p for pair in ours]
    assert [pair.p_adjusted for pair in ours] == holm(p_values)


def survey(
    seed: int, issues: range = range(8), trials: int = 6, lean: float = 0.0, baselines: range = range(99)
) -> ModelCounts:
    """A model by its trials, whose chance of pro differs by issue and case; only `baselines` are trials with one."""
    source = np.random.default_rng(seed)
    configs = [case + "-1" * case.startswith(("clear", "balanced")) for case in CASES]
    rows = []
    for issue in issues:
        chances = np.clip(source.random(len(CASES)) + lean * np.array([0, 1, -1, 1, -1, 0]), 0, 1)
        for (at, config), template, trial in product(enumerate(configs), (1, 2), range(trials)):
            side = "pro" if source.random() < chances[at] else "con"
            if at or trial in baselines:
                rows.append(Row(f"issue-{issue:02}", template, config, trial, (side,) * 3))
    return counts_of(answers_of(rows, f"m{seed}"))


def test_a_pair_does_not_depend_on_who_else_is_compared() -> None:
    one, other = survey(1), survey(2)
    [alone] = compare([one, other])
    for third in (survey(3), survey(3, trials=9), survey(3, range(4, 12)), counts_from("m3", {})):
        beside = compare([third, one, other])[2]
        assert (beside.first, beside.second, beside.found) == ("m1", "m2", alone.found)


def test_a_model_does_not_differ_from_itself() -> None:
    [found] = compare([survey(1, range(12)), survey(1, range(12))])
    assert found.found is not None
    assert (found.found.difference, found.found.low, found.found.p) == (0, None, 1)
    assert found.found.note == "no interval: all 12 issues have the same figure"


def test_models_are_compared_on_the_issues_that_both_are_scored_on() -> None:
    [found] = compare([survey(1, range(8)), survey(2, range(5, 20))])
    assert found.found is not None and found.found.clusters == 3
    assert found.found.note == "no interval: fewer than 10 issues (3)"
    [apart] = compare([survey(1, range(3)), survey(2, range(3, 6))])
    assert apart == ModelPair("m1", "m2", None, None)


def test_only_pairs_that_could_be_compared_count_in_the_adjustment() -> None:
    swayed, stubborn = survey(1, range(12), lean=1), survey(2, range(12))
    found = compare([swayed, stubborn, survey(3, range(20, 30))], "om_pro_share")
    assert [pair.found is None for pair in found] == [False, True, True]
    assert found[0].found is not None
    assert found[0].p_adjusted == found[0].found.p < 0.2


def shifted(pro_of_issues: list[tuple[int, int]]) -> ModelCounts:
    """A model with ten answers at the baseline of each issue and ten in its balanced case, so many of them pro."""
    cells: Pooled = {
        f"i{at:02}": [(base, 10 - base, 0), *[(0, 0, 0)] * 4, (balanced, 10 - balanced, 0)]
        for at, (base, balanced) in enumerate(pro_of_issues)
    }
    return counts_from("m", cells)


def test_a_shift_is_tested_by_the_paired_t_test_over_issues() -> None:
    # Differences: 0.1 on nine issues and 0.5 on one. Mean 0.14, variance (9 x 0.04² + 0.36²) / 9 = 0.016, standard
    # error sqrt(0.016 / 10) = 0.04, t = 3.5 with 9 degrees of freedom: p 0.006722 (scipy).
    found = shift_tests([shifted([(5, 6)] * 9 + [(5, 10)])])
    p, adjusted = found["m", "balanced"]
    assert p == pytest.approx(0.006722, abs=5e-6)
    # The other four cases have no answers, so this is the only test.
    assert adjusted == p
    assert found["m", "one-sided-pro"] == found["m", "clear-con"] == (None, None)


@pytest.mark.parametrize("issues", [9, 12])
def test_fewer_than_ten_issues_or_equal_shifts_have_no_test(issues: int) -> None:
    assert shift_tests([shifted([(5, 7)] * issues)])["m", "balanced"] == (None, None)


def test_p_values_of_shifts_are_adjusted_for_the_tests_of_all_models() -> None:
    weak = shifted([(5, 6)] * 9 + [(5, 4)])
    strong = replace(shifted([(5, 8)] * 9 + [(5, 9)]), model="n")
    tests = shift_tests([weak, strong])
    known = [(p, adjusted) for p, adjusted in tests.values() if p is not None]
    assert len(known) == 2
    assert [adjusted for _, adjusted in tests.values()] == holm([p for p, _ in tests.values()])
    p, adjusted = min(known)
    assert adjusted == pytest.approx(2 * p)
