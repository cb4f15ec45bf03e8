"""Claims about Krippendorff's alpha: his published example, a second way to every number, and what is undefined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from random import Random

import pytest

from millstream.metrics.statistics.alpha import interval_alpha, nominal_alpha

# Krippendorff's reliability data: four observers, twelve units, missing values (Computing Krippendorff's
# Alpha-Reliability, 2011): nominal 0.743, interval 0.849.
OBSERVERS: tuple[tuple[int | None, ...], ...] = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)
UNITS = [[value for value in unit if value is not None] for unit in zip(*OBSERVERS, strict=True)]


def by_pairs(units: Sequence[Sequence[float]], distance: Callable[[float, float], float]) -> float:
    """Alpha from the definition: the mean distance of two values of one unit, each unit counting by its values, over
    the mean distance of any two values that can be paired."""
    pairable = [unit for unit in units if len(unit) > 1]
    values = [value for unit in pairable for value in unit]
    observed = 0.0
    for unit in pairable:
        distances = [distance(*pair) for pair in permutations(unit, 2)]
        observed += len(unit) * sum(distances) / len(distances)
    every = [distance(*pair) for pair in permutations(values, 2)]
    return 1 - (observed / len(values)) / (sum(every) / len(every))


def test_krippendorffs_example_comes_out_as_printed() -> None:
    nominal, interval = nominal_alpha(UNITS), interval_alpha(UNITS)
    assert (round(nominal.value or 0, 3), round(interval.value or 0, 3)) == (0.743, 0.849)
    # Unit 12 has a single value, which can't be paired: 40 of 41 values are.
    assert (nominal.units, nominal.values) == (interval.units, interval.values) == (11, 40)


@pytest.mark.parametrize("seed", range(10))
def test_a_thousand_random_tables_agree_with_the_definition_by_pairs(seed: int) -> None:
    chance = Random(seed)
    compared = 0
    while compared < 100:
        judges, labels = chance.randint(2, 5), chance.randint(2, 5)
        missing = chance.choice([0.0, 0.2, 0.6])
        units = [
            [chance.randrange(labels) for _ in range(judges) if chance.random() >= missing]
            for _ in range(chance.randint(1, 12))
        ]
        nominal, interval = nominal_alpha(units), interval_alpha(units)
        values = {value for unit in units if len(unit) > 1 for value in unit}
        if len(values) < 2:
            assert nominal.value is interval.value is None and nominal.note and interval.note
            continue
        assert nominal.value == pytest.approx(by_pairs(units, lambda a, b: float(a != b)), abs=1e-12)
        assert interval.value == pytest.approx(by_pairs(units, lambda a, b: (a - b) ** 2), abs=1e-12)
        compared += 1


def test_what_is_undefined_says_why() -> None:
    assert nominal_alpha([["a"], []]).note == "nothing was judged by two judges"
    alike = nominal_alpha([["a", "a"], ["a", "a"], ["b"]])
    assert alike.value is None and alike.units == 2 and "all judgements are the same" in (alike.note or "")
    assert interval_alpha([[0.1, 0.1], [0.1, 0.1, 0.1]]).value is None
    assert nominal_alpha([["a", "b"], ["b", "a"]]).value == pytest.approx(-0.5)
