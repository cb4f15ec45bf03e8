"""The first screen of a load test's page: what was tested, and a row a rate with goal and promise kept or missed."""

from __future__ import annotations

import pytest
from load_files import searched, steady, swept
from load_pages import MODEL, alone, of, page_of
from msgspec.structs import replace

# The load tests that it reads take seconds of a core, whoever runs first.
pytestmark = pytest.mark.slow


def test_the_lead_says_what_was_asked_and_what_was_measured() -> None:
    load = steady()
    page, _ = page_of(steady)
    assert "sim/steady was tested: rate 20/s for 60 s, Poisson arrivals." in page.text
    # 1,790,000,000 s are 20,717 days and 51,200 s (14:13:20). 56 years with 14 leap days are 20,454 days, so this is
    # day 264 of 2026; August ends with day 243.
    assert "Begun 2026-09-21 14:13 UTC; measured for 50.0 s, besides 5 s of warm-up and 5 s of cool-down" in page.text
    model = of(load)
    assert f"{model.held} calls were due while 10 were in flight" in page.text
    assert "times from sending leave out the difference" in page.text
    assert "besides 5 s of warm-up and 5 s of cool-down" in page.text
    assert "client was the bottleneck" not in page.text


def test_the_table_by_rate_stands_first_and_says_where_the_goal_was_kept() -> None:
    load = searched()
    page, made = page_of(searched)
    steps = sorted(of(load).steps, key=lambda step: step.rate or 0.0)
    assert [cell.partition("/s")[0] for cell in page.column("rates", "Asked")] == [f"{step.rate:.4g}" for step in steps]
    words = {"kept": "kept", "missed": "missed", "open": "not decided"}
    assert page.column("rates", "Goal") == [words[str(step.standing)] for step in steps]
    assert {"kept", "missed"} <= set(page.column("rates", "Goal"))
    assert page.column("rates", "Calls") == [f"{step.calls:,}" for step in steps]
    # Its own class is what colours a verdict.
    assert made.page.count(b'<td class="kept">kept</td>') == [step.standing for step in steps].count("kept")
    goal = of(load).goal
    assert goal is not None and goal.kept is not None
    assert f"The highest rate at which the goal was kept is {goal.kept:.4g} calls a second." in page.text
    assert made.page.index(b'id="rates"') < made.page.index(b"<svg")
    none = replace(goal, kept=None, missed=None, unmeasured="no answer came in two pieces or more")
    unmeasured, _ = alone(replace(load, models={MODEL: replace(of(load), goal=none)}))
    assert "The goal was not measured: no answer came in two pieces or more." in unmeasured.text


def test_a_promise_is_kept_at_a_rate_only_by_all_its_calls() -> None:
    load = swept()
    steps = tuple(replace(step, kept=step.calls - 3 * at) for at, step in enumerate(of(load).steps))
    page, _ = alone(replace(load, test={"promise": "ttft <= 1 s"}, models={MODEL: replace(of(load), steps=steps)}))
    shown = page.column("rates", "Promise")
    assert shown[0] == f"kept by all {steps[0].calls:,}" and shown[1].startswith("missed by 3 (")
    assert "The highest rate at which every call kept the promise “ttft <= 1 s” is 5 calls a second." in page.text
    nowhere = tuple(replace(step, kept=0) for step in steps)
    page, _ = alone(replace(load, test={"promise": "ttft <= 1 s"}, models={MODEL: replace(of(load), steps=nowhere)}))
    assert "At no rate did every call keep the promise “ttft <= 1 s”." in page.text
    assert page.column("rates", "Promise")[0] == f"missed by {steps[0].calls:,} (100.0%)"


def test_steps_and_ramps_are_told_by_their_rates() -> None:
    load = swept()
    assert "was tested: steps 5, 10, 20, 30, 40, 60/s." in page_of(swept)[0].text
    ramp, _ = alone(replace(load, test={"ramp": [2.0, 20.0], "arrivals": "poisson"}))
    assert "was tested: ramp 2 to 20/s, Poisson arrivals." in ramp.text
