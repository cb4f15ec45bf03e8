"""Load tests side by side: where their plans are not the same, both are named, and in what they differ."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from load_files import closed, searched, steady, swept
from msgspec.structs import replace
from page_elements import Elements

from millstream.bench.load.report.part import LoadPage, drawn
from millstream.bench.load.report.series import LoadTest
from millstream.metrics.load.load_json import LoadFigures


def side_by_side(*loads: LoadFigures) -> tuple[Elements, LoadPage]:
    made = drawn([LoadTest(f"test {at}", load) for at, load in enumerate(loads, 1)])
    return Elements(made.page), made


def with_options(**options: object) -> LoadFigures:
    return replace(steady(), test={**steady().test, **{name.replace("_", "-"): own for name, own in options.items()}})


# Two tests, words on the page, and an option in which they differ.
PLANS: dict[str, tuple[Callable[[], tuple[LoadFigures, LoadFigures]], str, str]] = {
    "another kind of arrivals": (
        lambda: (steady(), swept()),
        "test 1: rate 20/s for 60 s; test 2: steps 5, 10, 20, 30, 40, 60/s",
        "rate",
    ),
    "a closed loop": (
        lambda: (steady(), closed()),
        "test 2: 8 in flight for 30 s",
        "in-flight",
    ),
    "a search": (
        lambda: (swept(), searched()),
        "test 2: goal “p95 first token <= 1 s and errors <= 1%”",
        "steps",
    ),
    "another time": (
        lambda: (steady(), with_options(duration=30)),
        "test 2: rate 20/s for 30 s",
        "duration",
    ),
    "another length": (
        lambda: (with_options(prompt_tokens="200"), with_options(prompt_tokens="2000")),
        "they differ in prompt-tokens",
        "prompt-tokens",
    ),
    "a part of the plan": (
        lambda: (steady(), replace(steady(), ending="cost")),
        "they differ in ended",
        "ended",
    ),
}


@pytest.mark.parametrize("case", PLANS)
def test_tests_with_different_plans_are_named_as_such(case: str) -> None:
    loads, told, option = PLANS[case]
    page, _ = side_by_side(*loads())
    assert "Read with care, no comparison: different plans (test 1: " in page.text
    assert told in page.text
    options = page.text.partition("they differ in ")[2].partition(".")[0].split(", ")
    assert option in options


def test_of_several_tests_those_with_the_plan_of_the_first_are_not_named() -> None:
    page, _ = side_by_side(swept(), steady(), swept(places=9))
    plans = page.text.partition("different plans (")[2].partition(")")[0]
    assert "test 1: " in plans and "test 2: " in plans and "test 3: " not in plans


def test_who_where_and_which_seed_are_no_part_of_a_plan() -> None:
    other = with_options(seed=4, base_url="http://127.0.0.1:9/v1", max_cost=2, models=["lab/other"])
    page, _ = side_by_side(steady(), other)
    assert "no comparison" not in page.text
