"""Agreement weighted back to a run: an example by hand, a second way to every number, and intervals that hold the
truth."""

from __future__ import annotations

import numpy as np
import pytest

from millstream.metrics.statistics.agreement import agreement
from millstream.metrics.statistics.stratified_agreement import (
    StratumPairs,
    single_label_agreement,
    stratified_agreement,
)

# A run of 900 answers that the judge calls A and 100 that it calls B; ten of each are labelled, the person first.
EXAMPLE = [
    StratumPairs(900, [("A", "A")] * 9 + [("B", "A")]),
    StratumPairs(100, [("B", "B")] * 5 + [("A", "B")] * 5),
]


def test_an_even_sample_of_uneven_labels_is_weighted_back_to_the_run() -> None:
    found = stratified_agreement(EXAMPLE)
    # 0.9 x 9/10 + 0.1 x 5/10; of the labelled answers themselves 14 of 20 agree.
    assert found.agreed.share == pytest.approx(0.86)
    # The person's A: 0.9 x 0.9 + 0.1 x 0.5 = 0.86; the judge's 0.9. By chance 0.86 x 0.9 + 0.14 x 0.1 = 0.788, so kappa
    # is (0.86 - 0.788) / 0.212. Of the labelled answers it is (0.7 - 0.5) / 0.5.
    assert found.kappa == pytest.approx(0.072 / 0.212)
    pairs = [pair for stratum in EXAMPLE for pair in stratum.pairs]
    assert agreement(pairs).share == 0.7
    assert agreement(pairs).kappa == pytest.approx(0.4)
    assert (found.population, found.covered, found.agreed.count) == (1000, 1000, 20)
    assert found.agreed.interval is not None and found.kappa_interval is not None
    # Kish's size is 1 / (0.81 / 10 + 0.01 / 10) = 12.195; by the variances within strata it would be larger: 0.1204 /
    # (0.81 x 0.1 / 10 + 0.01 x 0.2778 / 10) = 14.4. Of 10.488 in 12.195 the exact ends are, by SciPy, the quantiles at
    # 2.5% of the beta distribution of 10.488 and 2.707, and at 97.5% of that of 11.488 and 1.707.
    assert found.agreed.interval == pytest.approx((0.5493, 0.9867), abs=1e-4)


def test_one_label_is_compared_with_the_rest_in_both_directions() -> None:
    found = single_label_agreement(EXAMPLE, "B")
    # The person's B: one of the first stratum, which stands for 90, and five that stand for 10 each.
    assert found.first.count == 6
    assert found.first.share == pytest.approx(50 / 140)
    assert found.second.count == 10
    assert found.second.share == pytest.approx(0.5)
    assert found.whole.kappa == pytest.approx(0.072 / 0.212)
    assert single_label_agreement(EXAMPLE, "C").first.share is None


def test_strata_without_a_label_are_left_out_and_counted() -> None:
    found = stratified_agreement([*EXAMPLE, StratumPairs(50, [])])
    assert (found.population, found.covered) == (1050, 1000)
    assert found.agreed.share == pytest.approx(0.86)
    nothing = stratified_agreement([StratumPairs(50, [])])
    assert (nothing.covered, nothing.agreed.share, nothing.kappa) == (0, None, None)


def test_kappa_of_one_label_throughout_is_undefined() -> None:
    found = stratified_agreement([StratumPairs(9, [("A", "A")] * 3)])
    assert (found.agreed.share, found.kappa, found.kappa_interval) == (1, None, None)


def test_kappa_is_that_of_a_second_way_to_it_on_a_thousand_random_tables() -> None:
    generator = np.random.default_rng(2)
    for _ in range(1000):
        labels, strata = int(generator.integers(2, 6)), int(generator.integers(1, 5))
        # Counts by stratum, first and second label, and the size of each stratum, always with something in each.
        tables = generator.integers(0, 5, (strata, labels, labels))
        tables[:, 0, 0] += 1
        tables[0, 0, 1] += 1
        sizes = generator.integers(100, 10_000, strata)
        # By matrices: kappa is 1 less the weighted disagreement over the one that the margins give.
        table = np.einsum("s,sij->ij", sizes / sizes.sum() / tables.sum((1, 2)), tables)
        differ = 1 - np.eye(labels)
        expected = 1 - (differ * table).sum() / (differ * np.outer(table.sum(1), table.sum(0))).sum()
        found = stratified_agreement(
            StratumPairs(
                int(size),
                [("ABCDE"[i], "ABCDE"[j]) for (i, j), count in np.ndenumerate(counts) for _ in range(count)],
            )
            for size, counts in zip(sizes, tables, strict=True)
        )
        assert found.kappa == pytest.approx(expected, abs=1e-12)
        assert found.kappa_interval is not None
        assert found.kappa_interval[0] <= expected <= found.kappa_interval[1]


def test_intervals_hold_the_truth_of_the_run() -> None:
    """1,000 runs, four strata of uneven size, 12 to 50 labelled in each: the person agrees more or less by stratum."""
    generator = np.random.default_rng(1)
    names = np.array(list("ABCD"))
    for sizes, per_stratum in (((0.6, 0.25, 0.1, 0.05), 50), ((0.9, 0.06, 0.03, 0.01), 25), ((0.4, 0.3, 0.2, 0.1), 12)):
        for chances in ((0.95, 0.9, 0.7, 0.6), (0.7, 0.7, 0.7, 0.7), (0.99, 0.95, 0.9, 0.5)):
            table = np.zeros((4, 4))
            for at in range(4):
                table[:, at] = sizes[at] * (1 - chances[at]) / 3
                table[at, at] = sizes[at] * chances[at]
            share = float(np.trace(table))
            by_chance = float(table.sum(1) @ table.sum(0))
            kappa = (share - by_chance) / (1 - by_chance)
            held_share = held_kappa = 0
            for _ in range(250):
                strata = []
                for at in range(4):
                    firsts = generator.choice(names, per_stratum, p=table[:, at] / sizes[at])
                    strata.append(
                        StratumPairs(round(10_000 * sizes[at]), [(str(first), str(names[at])) for first in firsts])
                    )
                found = stratified_agreement(strata)
                assert found.agreed.interval is not None and found.kappa_interval is not None
                held_share += found.agreed.interval[0] <= share <= found.agreed.interval[1]
                held_kappa += found.kappa_interval[0] <= kappa <= found.kappa_interval[1]
            # 95% of 250 is 237, with a standard deviation of 3.4.
            assert min(held_share, held_kappa) >= 225, (sizes, chances, held_share, held_kappa)
