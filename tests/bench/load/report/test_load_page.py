"""The page of load tests: what it says is what load.json has, what is not there is said, and nothing in it runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest
from hostile import hostile
from load_files import closed, searched, steady, swept
from load_pages import MODEL, alone, of, page_of
from msgspec.structs import astuple, replace
from page_elements import Elements

from millstream.bench.load.report.part import LoadPage, drawn
from millstream.bench.load.report.series import LoadTest
from millstream.metrics.load.load_json import Client, GoalFound, LoadFigures
from millstream.report.table import Table

# The load tests that it reads take seconds of a core, whoever runs first.
pytestmark = pytest.mark.slow


def side_by_side(*loads: LoadFigures) -> tuple[Elements, LoadPage]:
    made = drawn([LoadTest(f"test {at}", load) for at, load in enumerate(loads, 1)])
    return Elements(made.page), made


@cache
def swept_and_searched() -> tuple[Elements, LoadPage]:
    return side_by_side(swept(), searched())


@cache
def slower() -> LoadFigures:
    """The plan of `swept` at a server with fewer places."""
    return swept(places=9)


@cache
def two_servers() -> tuple[Elements, LoadPage]:
    return side_by_side(swept(), slower())


def table(made: LoadPage, name: str) -> Table:
    return next(each for each in made.tables if each.name == name)


def in_seconds(text: str) -> float:
    """A time as a page has it."""
    number, unit = re.fullmatch(r"([\d,.]+) (µs|ms|s)", text).groups()  # type: ignore[union-attr]
    return float(number.replace(",", "")) / {"µs": 1e6, "ms": 1e3, "s": 1.0}[unit]


@pytest.mark.parametrize("load", [steady, swept, searched, closed])
def test_the_percentiles_on_the_page_are_those_of_the_file(load: Callable[[], LoadFigures]) -> None:
    measured = load()
    page, made = page_of(load)
    model = of(measured)
    _, *rows = page.tables["load-percentiles"]
    shown = {(time, float(percent)): cells for _, time, _, percent, *cells in rows}
    for found in model.latency.percentiles:
        for cell, value in zip(shown["latency", found.percent], astuple(found)[1:], strict=True):
            assert cell == "–" if value is None else in_seconds(cell) == pytest.approx(value, rel=0.006)
    # In the file beside it they are to the last digit.
    told = {(row["time"], row["percent"]): row for row in table(made, "load-percentiles").records()}
    for found in model.latency.percentiles:
        of_file = told["latency", found.percent]
        assert (of_file["seconds"], of_file["low"], of_file["high"]) == (found.value_s, found.low_s, found.high_s)


def test_counts_rates_and_shares_are_those_of_the_file() -> None:
    load = steady()
    page, made = page_of(steady)
    model = of(load)
    assert page.column("rates", "Calls") == [f"{model.calls:,}"]
    assert float(page.column("rates", "Sent per second")[0]) == pytest.approx(model.rate, rel=0.005)
    [row] = table(made, "load-by-rate").records()
    assert (row["calls"], row["errors"]) == (model.calls, sum(model.errors.values()))
    assert row["came_per_s"] == pytest.approx(model.rate) and row["output_tokens"] == model.output_tokens
    assert row["kept"] == pytest.approx((model.goodput or 0) * load.seconds)
    kinds = dict(zip(page.column("load-errors", "Kind of error"), page.column("load-errors", "Calls"), strict=True))
    assert kinds == {kind: str(calls) for kind, calls in model.errors.items()}
    over_time: Counter[str] = Counter()
    for each in table(made, "load-over-time").records():
        for kind, calls in (told.rsplit(" ", 1) for told in str(each["kinds"] or "").split(", ") if told):
            over_time[kind] += int(calls)
    assert over_time == model.errors


def test_without_rates_all_calls_stand_in_a_row() -> None:
    load = closed()
    page, made = page_of(closed)
    [row] = table(made, "load-by-rate").records()
    found = of(load).latency.at(99.0)
    assert found is not None and row["asked_per_s"] is None
    assert (row["calls"], row["seconds"], row["latency_p99"]) == (of(load).calls, load.seconds, found.value_s)
    assert page.column("rates", "Asked") == ["8 in flight"]


def test_every_slice_and_every_rate_stands_in_its_table() -> None:
    load = swept()
    _, made = page_of(swept)
    slices = list(table(made, "load-over-time").records())
    assert [(row["begins"], row["calls"]) for row in slices] == [
        (part.begins_s, part.calls) for part in of(load).slices
    ]
    rates = list(table(made, "load-by-rate").records())
    assert len(rates) == 6
    for row, part in zip(rates, of(load).steps, strict=True):
        found = part.latency.at(99.0)
        assert found is not None
        assert (row["asked_per_s"], row["came_per_s"], row["calls"]) == (part.rate, part.achieved, part.calls)
        assert (row["latency_p99"], row["latency_p99_low"]) == (found.value_s, found.low_s)
    knee = of(load).knee
    assert knee is not None
    assert [row["asked_per_s"] for row in rates if row["knee"]] == [knee.rate]


def test_goal_and_knee_are_told_with_their_rates() -> None:
    load = searched()
    page, _ = page_of(searched)
    goal, knee = of(load).goal, of(load).knee
    assert goal is not None and goal.kept is not None and goal.missed is not None and knee is not None
    assert f"The highest rate at which the goal was kept is {goal.kept:.4g} calls a second." in page.text
    assert f"{goal.missed:.4g} calls a second were not shown to keep the goal." in page.text
    assert f"The knee is at {knee.rate:.4g} calls a second: {knee.why}." in page.text


def test_a_search_that_was_cut_short_does_not_say_that_it_tried_all() -> None:
    load = searched()
    for kept, ending, words in (
        (8.0, "interrupted", "No higher rate was tried to its end."),
        (8.0, "goal", "It was the highest rate to try."),
        (None, "interrupted", "The goal was kept at no rate that was tried."),
    ):
        goal = GoalFound("p99 latency <= 1 s", kept, None, None)
        page, _ = alone(replace(load, ending=ending, models={MODEL: replace(of(load), goal=goal)}))
        assert words in page.text
        assert ("the highest rate to try" in page.text) is (ending == "goal")


def test_a_knee_that_is_not_there_is_told_with_its_reason() -> None:
    load = swept()
    low = replace(load, models={MODEL: replace(of(load), steps=of(load).steps[:3], knee=None)})
    assert "No knee: at no rate did the server keep up worse than at the lowest one." in alone(low)[0].text
    steps = tuple(replace(part, is_client_bound=at > 1) for at, part in enumerate(of(load).steps))
    bound, made = alone(replace(load, models={MODEL: replace(of(load), steps=steps, knee=None)}))
    assert "No knee: the client was the bottleneck at 4 of 6 rates." in bound.text
    assert "Hollow points" in bound.text and "Hollow points" not in alone(low)[0].text
    assert [row["client_bound"] for row in table(made, "load-by-rate").records()] == [False] * 2 + [True] * 4
    failed = replace(of(load).steps[0], errors=of(load).steps[0].calls)
    broken = replace(of(load), steps=(failed, *of(load).steps[1:]), knee=None)
    assert (
        "No knee: the server did not keep up with the lowest rate either."
        in alone(replace(load, models={MODEL: broken}))[0].text
    )


def test_a_client_that_was_the_bottleneck_is_told_before_all_else() -> None:
    reasons = ("this process took 97% of a core, more than 90%", "the loop's lag was 21 ms at p99, more than 5 ms")
    load = replace(steady(), client=Client(reasons, 0.021, 0.97, 0.8))
    page, made = alone(load)
    assert "The client was the bottleneck." in page.text and all(reason in page.text for reason in reasons)
    assert page.text.index("client was the bottleneck") < page.text.index("was tested: ")
    assert b'class="alert bottleneck"' in made.page
    beside, _ = side_by_side(steady(), load)
    assert "test 2: the client was the bottleneck." in beside.text and "test 1: the client" not in beside.text


def test_a_test_that_ended_early_says_so() -> None:
    load = replace(steady(), ending="interrupted", ending_detail="by SIGINT")
    page, _ = alone(load)
    assert "It ended before all was sent: it was interrupted: by SIGINT." in page.text
    whole, _ = page_of(steady)
    assert "ended before" not in whole.text


def test_what_is_not_there_is_left_out_and_told_why() -> None:
    page, made = page_of(closed)
    links = [attributes["href"] for name, attributes in page.elements if name == "a" and "href" in attributes]
    assert {"#over-time", "#percentiles"} <= set(links)
    assert not {"#by-rate", "#streaming", "#errors"} & set(links)
    for why in ("no answer was streamed", "no rate was asked", "nothing was promised", "every call was answered"):
        assert why in page.text
    assert "was tested: 8 in flight for 30 s." in page.text
    assert "A closed loop slows down with the server" in page.text
    assert {each.name for each in made.tables} == {
        *("load-by-rate", "load-percentiles", "load-over-time", "load-spectrum")
    }
    one_rate, _ = page_of(steady)
    assert "since one rate alone was asked" in one_rate.text and "no answer was streamed" not in one_rate.text


def test_a_test_without_a_call_has_a_page_too() -> None:
    load = steady()
    empty = replace(of(load), calls=0, answered=0, errors={}, slices=(), steps=(), latency=of(closed()).token)
    nothing = of(closed()).token
    for name in ("service", "first_token", "token", "gap", "own_delay", "held_by_lane"):
        empty = replace(empty, **{name: nothing})
    page, _ = alone(replace(load, models={MODEL: empty}, seconds=0.0))
    assert "No call was measured." in page.text and "load-percentiles" not in page.tables
    assert "was tested: rate 20/s for 60 s, Poisson arrivals." in page.text
    assert "Not here: figures of calls, since none was measured." in page.text
    for given, words in (
        ({"steps": [5.0, 20.0]}, "steps 5, 20/s"),
        ({"ramp": [0.0, 40.0]}, "ramp 0 to 40/s"),
        ({}, "no rate"),
    ):
        cut_short = replace(load, models={MODEL: empty}, test=given, ending="stopped")
        assert f"was tested: {words}" in alone(cut_short)[0].text
    failed = replace(empty, calls=5, errors={"timeout": 5})
    page, _ = alone(replace(load, models={MODEL: failed}))
    assert "No call was answered, so no rate is named." in page.text
    assert "times, since no call was answered" in page.text and "no answer was streamed" not in page.text


def test_the_figures_are_drawn_and_every_identity_is_its_own() -> None:
    for page, made in (page_of(searched), swept_and_searched()):
        figures = [attributes["id"] for name, attributes in page.elements if name == "figure"]
        assert len(figures) == 4 == made.page.count(b"<svg")
        assert [name for name, times in Counter(page.identities()).items() if times > 1] == []
        links = [str(attributes["href"]) for name, attributes in page.elements if name == "a"]
        assert {link[1:] for link in links if link.startswith("#")} <= set(page.identities())
        files = {attributes["data-csv"] for _, attributes in page.elements if "data-csv" in attributes}
        assert files == {f"tables/{each.name}.csv" for each in made.tables}
    assert b">knee</text>" in page_of(swept)[1].page and b">goal: p95</text>" in page_of(searched)[1].page


def test_several_models_have_a_figure_each_and_stand_in_the_same_tables() -> None:
    load = replace(swept(), models={"lab/one": of(swept()), "lab/two": of(steady())})
    page, made = alone(load)
    assert page.text.count("latency and errors over time") == 2
    assert page.column("rates", "Model") == [*["lab/one"] * 6, "lab/two"]
    assert {row["model"] for row in table(made, "load-over-time").records()} == {"lab/one", "lab/two"}


def test_tests_side_by_side_stand_in_the_same_tables() -> None:
    first, second = swept(), slower()
    page, made = two_servers()
    rows = list(table(made, "load-by-rate").records())
    for name, load in (("test 1", first), ("test 2", second)):
        found = [part.latency.at(99.0) for part in of(load).steps]
        assert [row["latency_p99"] for row in rows if row["test"] == name] == [each and each.value_s for each in found]
    assert page.column("rates", "Test") == [*["test 1"] * 6, *["test 2"] * 6]


def test_the_same_tests_give_the_same_bytes() -> None:
    assert alone(searched())[1] == page_of(searched)[1]


def test_the_page_has_no_script_and_allows_none() -> None:
    page, made = page_of(steady)
    assert "script" not in page.names() and b"javascript" not in made.page.lower()
    policy = next(attributes["content"] for name, attributes in page.elements if attributes.get("http-equiv"))
    assert policy is not None and "script-src 'none'" in policy and policy.startswith("default-src 'none'")
    asked = [attributes.get("src") for name, attributes in page.elements if name in ("img", "link", "iframe")]
    assert asked == []


def test_hostile_names_are_shown_and_are_no_markup() -> None:
    texts = [text for text in hostile(120) if len(text) < 10_000]
    plain, _ = page_of(steady)
    tags = set(plain.names())
    load = steady()
    for at in range(0, len(texts) - 12, 12):
        own = texts[at : at + 12]
        slices = tuple(replace(part, errors=12, kinds=dict.fromkeys(own, 1)) for part in of(load).slices[:3])
        model = replace(of(load), errors=dict.fromkeys(own, 3), slices=slices)
        evil = replace(
            load,
            models={own[0]: model},
            client=Client(tuple(own), 0.1, 1.0, 1.0),
            ending="stopped",
            ending_detail=own[1],
            millstream=own[2],
            test={own[3]: own[4], "goal": own[5], "models": own},
        )
        made = drawn([LoadTest(own[6], evil), LoadTest(own[7], evil)], own[8])
        page = Elements(made.page)
        assert set(page.names()) - tags <= {"strong", "ul", "li"}
        assert not any(key.startswith("on") for _, attributes in page.elements for key in attributes)
        assert "nowhere.invalid" not in "".join(
            str(value) for _, attributes in page.elements for key, value in attributes.items() if key in ("href", "src")
        )
