"""Load tests side by side: only those with the same plan are compared, and in what others differ is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from load_files import closed, searched, steady, swept
from msgspec.structs import replace
from page_elements import Elements

from millstream.bench.load.report.part import LoadPage, drawn
from millstream.bench.load.report.series import LoadTest
from millstream.metrics.load.load_json import LoadFigures
from millstream.report.table import Table


def side_by_side(*loads: LoadFigures) -> tuple[Elements, LoadPage]:
    made = drawn([LoadTest(f"test {at}", load) for at, load in enumerate(loads, 1)])
    return Elements(made.page), made


def table(made: LoadPage, name: str) -> Table:
    return next(each for each in made.tables if each.name == name)


def with_options(**options: object) -> LoadFigures:
    return replace(steady(), test={**steady().test, **{name.replace("_", "-"): own for name, own in options.items()}})


# Two tests, words on the page, and an option with its values in the second and the first.
PLANS: dict[str, tuple[Callable[[], tuple[LoadFigures, LoadFigures]], str, tuple[str, str, str]]] = {
    "another kind of arrivals": (
        lambda: (steady(), swept()),
        "test 1: rate 20/s for 60 s; test 2: steps 5, 10, 20, 30, 40, 60/s",
        ("rate", "not set", "20"),
    ),
    "a closed loop": (
        lambda: (steady(), closed()),
        "test 2: 8 in flight for 30 s",
        ("in-flight", "8", "not set"),
    ),
    "a search": (
        lambda: (swept(), searched()),
        "test 2: goal “p95 first token <= 1 s and errors <= 1%”",
        ("steps", "not set", "5, "),
    ),
    "another time": (
        lambda: (steady(), with_options(duration=30)),
        "test 2: rate 20/s for 30 s",
        ("duration", "30", "60"),
    ),
    "another length": (
        lambda: (with_options(prompt_tokens="200"), with_options(prompt_tokens="2000")),
        "they differ in prompt-tokens",
        ("prompt-tokens", "2000", "200"),
    ),
    "a part of the plan": (
        lambda: (steady(), replace(steady(), ending="cost")),
        "they differ in ended",
        ("ended", "after ", "after "),
    ),
}


@pytest.mark.parametrize("case", PLANS)
def test_tests_with_different_plans_are_named_as_such_and_get_no_difference_and_no_verdict(case: str) -> None:
    loads, told, (option, value, of_first) = PLANS[case]
    page, made = side_by_side(*loads())
    names = {each.name for each in made.tables}
    assert "load-plans" in names and "load-differences" not in names
    assert "Read with care, no comparison: different plans, so no difference and no verdict is given" in page.text
    assert told in page.text and "Beside each other" not in page.text
    assert "may be the same" not in page.text and "<td>more" not in made.page.decode()
    row = next(row for row in table(made, "load-plans").records() if row["option"] == option)
    assert str(row["value"]).startswith(value) and str(row["of_first"]).startswith(of_first)


def test_of_several_tests_only_those_with_the_plan_of_the_first_are_compared() -> None:
    page, made = side_by_side(swept(), steady(), swept(places=9))
    assert {row["test"] for row in table(made, "load-differences").records()} == {"test 3"}
    assert {row["test"] for row in table(made, "load-plans").records()} == {"test 2"}
    assert "test 3 beside test 1" in page.text and "test 2 beside" not in page.text


def test_who_where_and_which_seed_are_no_part_of_a_plan() -> None:
    other = with_options(seed=4, base_url="http://127.0.0.1:9/v1", max_cost=2, models=["lab/other"])
    page, made = side_by_side(steady(), other)
    assert "load-plans" not in {each.name for each in made.tables} and "no comparison" not in page.text


def test_searches_are_compared_at_rates_that_both_tried_alone() -> None:
    _, made = side_by_side(searched(), searched())
    rows = {str(row["what"]) for row in table(made, "load-differences").records()}
    assert rows and all(what.startswith("latency at ") for what in rows)
