"""Claims about what is missing: counted cell by cell, whoever wrote the records."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from itertools import product
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st
from surveys import CONFIGS, Row, answers_of, surveys

from millstream.metrics.millstone.gaps import Shape, gaps, inferred
from millstream.metrics.millstone.openness import CASES, case_of

Value = TypeVar("Value")


FULL = Shape(("a", "b"), (1, 2), ("baseline", "one-sided-pro", "balanced-1", "balanced-2"), (0, 1, 2))


def row(issue: str, template: int, config: str, trial: int) -> Row:
    return Row(issue, template, config, trial, ("pro", "pro", "pro"))


def some(values: Sequence[Value]) -> st.SearchStrategy[tuple[Value, ...]]:
    return st.lists(st.sampled_from(values), unique=True).map(tuple)


shapes = st.builds(Shape, some("abcd"), some(range(1, 5)), some(CONFIGS), some(range(6)))


@given(surveys(), shapes, st.lists(st.integers(0, 39), max_size=3))
def test_a_second_implementation_counts_the_same(rows: list[Row], shape: Shape, repeated: list[int]) -> None:
    rows = rows + [rows[at] for at in repeated if at < len(rows)]
    wanted = set(product(shape.issues, shape.templates, shape.configs, shape.trials))
    there = [(r.issue, r.template, r.config, r.trial) for r in rows]
    missing = wanted - set(there)
    found = gaps(answers_of(rows), shape)
    assert found.expected == len(wanted) == len(shape)
    assert found.answered == len(wanted & set(there))
    assert found.missing == len(missing)
    assert found.is_complete == (not missing)
    assert found.beyond == sum(place not in wanted for place in there)
    by_case: dict[tuple[str, str], int] = {}
    for issue, case in product(shape.issues, CASES):
        if number := sum(place[0] == issue and case_of(place[2]) == case for place in missing):
            by_case[issue, case] = number
    assert list(found.by_case.items()) == list(by_case.items())


@given(surveys(), surveys())
def test_the_inferred_shape_has_a_models_issues_and_everything_else_that_its_run_has(
    rows: list[Row], beside: list[Row]
) -> None:
    shape = inferred(answers_of(rows), [answers_of(beside, "n")])
    both = rows + beside
    assert shape.issues == tuple(sorted({r.issue for r in rows}))
    assert shape.templates == tuple(sorted({r.template for r in both}))
    assert set(shape.configs) == {r.config for r in both}
    assert shape.trials == tuple(sorted({r.trial for r in both}))


def test_a_stray_trial_number_costs_no_memory() -> None:
    rows = [row("a", 1, "baseline", trial) for trial in range(0, 2_000_000_000, 1_000_000)]
    answers = answers_of([*rows, *(row("a", template, config, 0) for template in range(1, 7) for config in CONFIGS)])
    shape = inferred(answers)
    tracemalloc.start()
    try:
        found = gaps(answers, shape)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.missing == 6 * len(CONFIGS) * 2_000 - found.answered
    assert peak < 2_000_000


def test_a_run_without_an_answer_misses_everything() -> None:
    nothing = answers_of([])
    assert gaps(nothing, FULL).missing == len(FULL) == 48
    assert gaps(nothing, inferred(nothing)).expected == 0


def test_a_shape_says_its_size() -> None:
    assert repr(FULL) == "<Shape [2 issues x 2 templates x 4 configurations x 3 trials = 48 answers]>"
