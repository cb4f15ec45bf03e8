"""Claims about composition: variance that goes with the arguments drawn, by hand, by all permutations, simulated."""

from __future__ import annotations

import random
from itertools import permutations
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from surveys import Row, answers_of

from millstream.metrics.millstone.composition import Composition, composition

PROS = ("pro-1", "pro-2", "pro-3", "pro-4")


def clear(stances: list[str], drawn: list[tuple[str, ...]], issue: str = "a", template: int = 1) -> list[Row]:
    return [
        Row(issue, template, "clear-pro-1", trial, (stance,) * 3, shown)
        for trial, (stance, shown) in enumerate(zip(stances, drawn, strict=True))
    ]


def of_case(rows: list[Row], case: str = "clear-pro") -> Composition:
    [found] = [each for each in composition(answers_of(rows)) if each.case == case]
    return found


def test_one_argument_that_decides_explains_all_and_chance_a_third() -> None:
    # Two draws with pro-1 are pro, two with pro-2 con: all the variance is explained. Of the six ways to give two pro
    # stances to four draws two explain all (both to pro-1, both to pro-2) and four explain nothing: chance gives 2/6.
    # p: a third of all permutations explain as much, so about 1/3.
    found = of_case(clear(["pro", "pro", "con", "con"], [("pro-1",), ("pro-1",), ("pro-2",), ("pro-2",)]))
    assert (found.draws, found.issues) == (4, 1)
    assert found.explained == pytest.approx(1)
    assert found.by_chance == pytest.approx(1 / 3)
    assert found.excess == pytest.approx(2 / 3)
    assert found.p == pytest.approx(1 / 3, abs=0.1)


def test_where_all_arguments_are_always_shown_there_is_nothing_to_test() -> None:
    rows = clear(["pro", "con", "pro"], [("pro-1", "con-1"), ("con-1", "pro-1"), ("pro-1", "con-1")])
    assert of_case(rows) == Composition("clear-pro", 0, 0, None, None, None)


def test_stances_that_are_all_the_same_have_no_figure() -> None:
    assert of_case(clear(["pro"] * 3, [("pro-1",), ("pro-2",), ("pro-1",)])) == Composition(
        "clear-pro", 3, 1, None, None, None
    )


def test_draws_of_different_sizes_and_templates_are_not_compared() -> None:
    rows = clear(["pro", "con"], [("pro-1",), ("pro-1", "pro-2")])
    rows += clear(["con"], [("pro-2",)], template=2)
    assert of_case(rows) == Composition("clear-pro", 0, 0, None, None, None)


def test_both_wrappings_of_a_draw_are_one_draw() -> None:
    rows = clear(["pro", "con", "pro"], [("pro-1",), ("pro-2",), ("pro-1",)])
    again = [row._replace(config="clear-pro-2", stances=("con",) * 3) for row in rows]
    assert of_case(rows + again).draws == 3


def fit(rows: list[tuple[tuple[str, ...], float]]) -> tuple[float, float]:
    """The sum of squares that the presence of arguments explains, by least squares, and the whole one."""
    y = np.array([value for _, value in rows])
    x = np.array([[1.0, *(name in shown for name in PROS)] for shown, _ in rows])
    fitted = x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return float(((fitted - y.mean()) ** 2).sum()), float(((y - y.mean()) ** 2).sum())


draws = st.lists(
    st.tuples(st.sampled_from([("pro-1", "pro-2"), ("pro-1", "pro-3"), ("pro-2", "pro-4")]), st.booleans()),
    min_size=2,
    max_size=5,
)


@settings(deadline=None, max_examples=40)
@given(draws)
def test_least_squares_over_all_permutations_give_the_same_shares(drawn: list[tuple[tuple[str, ...], bool]]) -> None:
    lists = [shown for shown, _ in drawn]
    found = of_case(clear(["pro" if is_pro else "con" for _, is_pro in drawn], lists))
    explained, whole = fit([(shown, float(is_pro)) for shown, is_pro in drawn])
    if not whole or len(set(lists)) == 1:
        assert (found.explained, found.p) == (None, None)
        return
    every = [
        fit(list(zip(lists, map(float, order), strict=True)))[0]
        for order in permutations([is_pro for _, is_pro in drawn])
    ]
    assert found.explained == pytest.approx(explained / whole, abs=1e-9)
    assert found.by_chance == pytest.approx(fmean(every) / whole, abs=1e-9)
    # 999 random permutations come within four standard errors of all of them.
    exact = fmean(each >= explained - 1e-9 for each in every)
    assert found.p == pytest.approx(exact, abs=4 * (exact * (1 - exact) / 999) ** 0.5 + 2 / 1000)


def simulated(pull: float, seed: int) -> list[Row]:
    """Templates lean differently, and a draw with pro-1 is more often pro by `pull`."""
    chance, rows = random.Random(seed), list[Row]()
    for issue in "abcd":
        for template in (1, 2, 3):
            lean = 0.2 + 0.4 * chance.random()
            drawn = [tuple(chance.sample(PROS, 3)) for _ in range(20)]
            stances = ["pro" if chance.random() < lean + pull * ("pro-1" in shown) else "con" for shown in drawn]
            rows += clear(stances, drawn, issue, template)
    return rows


def test_an_argument_that_pulls_is_found_and_leaning_templates_are_not_taken_for_one() -> None:
    assert of_case(simulated(0.4, seed=1)).p == pytest.approx(1 / 1000)
    small = [of_case(simulated(0, seed)).p or 1 for seed in range(40)]
    # Of 40 tests of nothing two are expected below 0.05; more than 7 in fewer than one of a thousand.
    assert sum(p < 0.05 for p in small) <= 7


def test_the_order_of_the_records_does_not_matter() -> None:
    rows = simulated(0.1, seed=3)
    more = [row._replace(config="clear-pro-2") for row in simulated(0.1, seed=4)]
    rows += more
    assert of_case(rows) == of_case(rows[::-1])
