"""What a plan says before anything is paid for, what a pilot adds to it, and what the run then costs."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from toy_outside import COST, Toys, ToyServer


def planned(toys: Toys, name: str, *more: str, model: str = "lab/good") -> Any:
    done = toys.cli(*toys.words("plan", name, "--json", *more, model=model))
    assert done.code == 0, done.err
    (plan,) = json.loads(done.out)["runs"]
    return plan


def pilot_in(plan: Any) -> Any:
    """What a pilot found of the one model, or of all lanes together where an item takes several calls."""
    (found,) = plan["pilot"]["estimates"]
    return found


@pytest.mark.parametrize(("name", "calls"), [("sums", 10), ("twins", 20)])
def test_a_plan_counts_calls_and_bounds_the_cost_and_sends_nothing(
    toys: Toys, server: ToyServer, name: str, calls: int
) -> None:
    plan = planned(toys, name, "--limit", "10", "--max-tokens", "5")
    assert server.asked == [] and not (toys.home / "run").exists()
    (lane,) = plan["lanes"]
    assert (lane["lane"], lane["calls"]) == ("lab/good", 2 * [calls])
    assert lane["output_tokens"] == [calls, 5 * calls]
    low, high = plan["cost"]
    # Output at ten cents a token, at most 5 an answer; prompts of 4 to 8 tokens.
    assert 0.1 * calls < low < high <= calls * (0.5 + 0.8)


def test_a_plan_names_every_model_and_its_temperatures(toys: Toys) -> None:
    plan = planned(toys, "sums", "--temperature", "0", "1", model="lab/good lab/poor")
    assert {lane["lane"]: lane["calls"] for lane in plan["lanes"]} == {"lab/good": [16, 16], "lab/poor": [16, 16]}
    assert plan["pairs"] == ["lab/good @ 0", "lab/good @ 1", "lab/poor @ 0", "lab/poor @ 1"]


def test_a_plan_leaves_out_what_the_cache_answers(toys: Toys) -> None:
    toys.run("sums", "--limit", "3", "--max-tokens", "5")
    (lane,) = planned(toys, "sums", "--limit", "10", "--max-tokens", "5")["lanes"]
    assert (lane["calls"], lane["cached"]) == ([7, 7], 3)
    (lane,) = planned(toys, "sums", "--limit", "10", "--max-tokens", "5", "--no-cache-check")["lanes"]
    assert lane["calls"] == [10, 10] and not lane["cached"]


def test_a_plan_of_conversations_counts_a_call_a_step_and_those_of_the_judge(toys: Toys, server: ToyServer) -> None:
    plan = planned(toys, "doubts", "--limit", "5")
    assert server.asked == [] and plan["lines"] == 15
    lanes = {lane["lane"]: lane["calls"] for lane in plan["lanes"]}
    assert lanes == {"lab/good": [15, 15], "lab/judge": [15, 15]}


@pytest.mark.parametrize(("name", "calls"), [("sums", 1), ("twins", 1), ("doubts", 6)])
def test_a_pilot_sends_some_items_and_the_run_takes_them_from_the_cache(
    toys: Toys, server: ToyServer, name: str, calls: int
) -> None:
    plan = planned(toys, name, "--limit", "10", "--pilot", "4")
    assert len(server.asked) == 4 * calls and not (toys.home / "run").exists()
    pilot = pilot_in(plan)
    items = 20 if name == "twins" else 10
    # What is left of conversations is counted in items, of which four were whole.
    assert (pilot["sent"], pilot["left"]) == (4 * calls, items - 4)
    assert toys.run(name, "--limit", "10").code == 0
    assert len(server.asked) == items * calls and max(server.prompts().values()) == 1


@pytest.mark.parametrize("name", ["sums", "doubts"])
def test_what_a_pilot_reckons_is_what_the_run_then_costs(toys: Toys, server: ToyServer, name: str) -> None:
    plan = planned(toys, name, "--limit", "10", "--pilot", "4")
    sent = len(server.asked)
    pilot = pilot_in(plan)
    toys.run(name, "--limit", "10")
    rest = COST * (len(server.asked) - sent)
    low, high = pilot["cost"]["ci95"]
    assert low <= rest <= high and pilot["cost"]["estimate"] == pytest.approx(rest)


def test_a_conversations_answers_wait_for_each_other_and_so_does_the_time(toys: Toys, server: ToyServer) -> None:
    server.delay_s = 0.05
    minutes = pilot_in(planned(toys, "doubts", "--limit", "10", "--pilot", "2", "--concurrency", "16"))["minutes"]
    assert minutes["bound_by"] == "items whose calls follow each other"
    # Three answers, each judged: all eight left are held at once.
    assert minutes["estimate"] * 60 > 3 * 0.05
    again = pilot_in(planned(toys, "doubts", "--limit", "10", "--pilot", "2"))
    assert again["sent"] == 0 and again["minutes"] is None


def test_a_pilot_spread_over_the_run_leaves_no_part_of_it_out(toys: Toys, server: ToyServer) -> None:
    planned(toys, "sums", "--limit", "40", "--pilot", "4")
    numbers = sorted(int(re.findall(r"\d+", prompt)[0]) for _, prompt in server.prompts())
    assert numbers[0] < 10 and numbers[-1] >= 30


def test_a_pilot_whose_calls_fail_says_so(toys: Toys, server: ToyServer) -> None:
    with server.failing("good: "):
        done = toys.cli(*toys.words("plan", "doubts", "--pilot", "3", "--json"))
    assert done.code == 3 and "told to fail" in done.out + done.err
    with server.failing("good: ", 401):
        done = toys.cli(*toys.words("plan", "sums", "--pilot", "3", "--json"))
    assert done.code == 4


def test_a_pilot_keeps_to_max_cost(toys: Toys, server: ToyServer) -> None:
    done = toys.cli(*toys.words("plan", "doubts", "--max-tokens", "5", "--pilot", "8", "--max-cost", "20", "--json"))
    assert done.code == 4 and 0 < COST * len(server.asked) <= 20


def test_progress_tells_what_is_done_of_how_much_unless_it_is_not_wanted(toys: Toys, server: ToyServer) -> None:
    assert "8 of 8" not in toys.run("sums", out="quiet").err
    words = [word for word in toys.words("run", "sums", "--mode", "live", out="told") if word != "--no-progress"]
    server.delay_s = 0.05
    done = toys.cli(*words)
    (line,) = (line for line in done.err.splitlines() if line.startswith("8 of 8 (100%)"))
    assert line.endswith(f"${8 * COST:.2f}") and "0 from the cache" in line
    # Of conversations the answers are counted.
    words = [word for word in toys.words("run", "doubts", out="talks") if word != "--no-progress"]
    assert "24 of 24" in toys.cli(*words).err
