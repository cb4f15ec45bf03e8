"""`plan --pilot N`: real calls of the run, paid once, and an interval that the run then keeps to."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Done, Provider, finish, ids_of, lines_of, start

pytestmark = pytest.mark.needs_benchmark("millstone")

PROMPTS = 2 * 2 * 11 * 3
MIDDLE = ("--limit", "2", "--templates", "2", "--trials", "3", "--no-progress")
PRICES = "".join(f'[prices."sim/{name}"]\ninput = 1\noutput = 40\n' for name in ("open", "steady", "contrary"))


@pytest.fixture(autouse=True)
def prices(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)


def millstone(provider: Provider, *more: str, model: str = "sim/open") -> tuple[str, ...]:
    sent = ("--base-url", provider.base_url, "--cache", "cache", "--config", "prices.toml")
    return ("millstone", *MIDDLE, "--model", model, *sent, *more)


def estimated(done: Done) -> dict[str, Any]:
    """The estimate of the only model of the only run, with the lane's tokens in it."""
    (run,) = json.loads(done.out)["runs"]
    (found,) = run["pilot"]["estimates"]
    (lane,) = found["lanes"] or ({},)
    return {**lane, **found}


def cached_in(done: Done) -> int | None:
    (run,) = json.loads(done.out)["runs"]
    cached: int | None = run["lanes"][0]["cached"]
    return cached


def paid(folder: Path) -> tuple[float, int, int]:
    """What a run's own calls cost, and their tokens."""
    own = [line for line in lines_of(folder / "records.jsonl") if not line["cached"]]
    usages = [line["usage"] for line in own]
    return sum(line["cost"] for line in own), sum(u["input"] for u in usages), sum(u["output"] for u in usages)


@pytest.mark.parametrize(
    ("model", "size", "more"),
    [
        ("sim/open", 40, ()),
        ("sim/steady", 25, ("--protocol", "released")),
        ("sim/contrary", 60, ("--temperature", "0", "1")),
    ],
    ids=["open", "steady, released", "contrary, two temperatures"],
)
def test_the_intervals_hold_what_the_run_then_costs_and_the_run_sends_so_many_calls_fewer(
    cli: CommandLine, provider: Provider, tmp_path: Path, model: str, size: int, more: tuple[str, ...]
) -> None:
    asked = millstone(provider, *more, model=model)
    pairs = 2 if more[:1] == ("--temperature",) else 1
    plan = cli("plan", *asked, "--pilot", str(size), "--json")
    pilot = estimated(plan)
    assert provider.calls() == pilot["sent"] == pairs * size
    assert cached_in(plan) == pairs * size and pilot["left"] == pairs * (PROMPTS - size)
    done = cli("run", *asked, "--out", "run")
    assert done.code == 0, done.err
    assert provider.calls() == pairs * PROMPTS
    assert len(set(ids_of(tmp_path / "run"))) == pairs * PROMPTS
    cost, inputs, outputs = paid(tmp_path / "run")
    for figure, truth in (("cost", cost), ("input_tokens", inputs), ("output_tokens", outputs)):
        low, high = pilot[figure]["ci95"]
        assert low <= truth <= high, figure
        assert low <= pilot[figure]["estimate"] <= high
    low, high = (end + pilot["spent"] for end in pilot["cost"]["ci95"])
    assert low <= cost + pilot["spent"] <= high < 1.3 * low


def test_it_says_before_what_it_will_send_and_at_most_pay(cli: CommandLine, provider: Provider) -> None:
    done = cli("plan", *millstone(provider, "--max-tokens", "50"), "--pilot", "20", "--json")
    said = re.search(r"pilot: 20 calls to send; at most \$([\d.]+), if none has to be sent twice", done.err)
    assert said is not None, done.err
    assert estimated(done)["spent"] < float(said[1]) < 100 * estimated(done)["spent"]


def test_a_model_without_a_price_is_named_before_it_is_asked(cli: CommandLine, provider: Provider) -> None:
    done = cli("plan", *millstone(provider, model="sim/refusing"), "--pilot", "5", "--json")
    assert "pilot: 5 calls to send; no price for sim/refusing" in done.err
    assert estimated(done)["cost"] is None and estimated(done)["input_tokens"]["ci95"] is not None


def test_what_the_cache_holds_already_costs_nothing(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    # The whole of one issue is there: half of the grid.
    one = tuple("1" if before == "--limit" else word for before, word in zip(("", *MIDDLE), MIDDLE, strict=False))
    own = millstone(provider)[len(MIDDLE) + 1 :]
    assert cli("run", "millstone", *one, *own, "--out", "one").code == 0
    pilot = estimated(cli("plan", *millstone(provider), "--pilot", "40", "--json"))
    assert (pilot["sent"], pilot["from_cache"], pilot["left"]) == (20, 20, PROMPTS // 2 - 20)
    assert cli("run", *millstone(provider), "--out", "both").code == 0
    cost, inputs, _ = paid(tmp_path / "both")
    low, high = pilot["cost"]["ci95"]
    assert low <= cost <= high
    assert pilot["input_tokens"]["ci95"][0] <= inputs <= pilot["input_tokens"]["ci95"][1]


def test_progress_goes_to_stderr_unless_it_is_not_wanted(cli: CommandLine, provider: Provider) -> None:
    shown = cli("plan", *(word for word in millstone(provider) if word != "--no-progress"), "--pilot", "5")
    assert "5 of 5 (100%)" in shown.err and "5 of 5" not in shown.out
    assert "of 6 (" not in cli("plan", *millstone(provider), "--pilot", "6").err


def test_what_the_runs_folder_cost_counts_against_max_cost(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    limited = millstone(provider, "--out", "run", "--max-tokens", "50", "--max-cost", "0.02", "--concurrency", "1")
    assert cli("run", *limited).code == 4
    cost, _, _ = paid(tmp_path / "run")
    done = cli("plan", *limited, "--pilot", str(PROMPTS), "--json")
    assert done.code == 4
    assert cost + estimated(done)["spent"] <= 0.02 < 2 * cost


def test_a_pilot_needs_a_key_and_a_plan_none(cli: CommandLine, provider: Provider) -> None:
    asked = ("millstone", *MIDDLE, "--model", "openai/gpt-4o-mini")
    assert cli("plan", *asked).code == 0
    refused = cli("plan", *asked, "--pilot", "5")
    assert refused.code == 2 and "set OPENAI_API_KEY" in refused.err
    assert provider.calls() == 0


@pytest.mark.parametrize("size", ["0", "-3", "2.5", "many"])
def test_a_pilot_of_no_whole_number_is_refused(cli: CommandLine, provider: Provider, size: str) -> None:
    done = cli("plan", *millstone(provider), f"--pilot={size}")
    assert (done.code, provider.calls()) == (2, 0)
    assert f'--pilot: expected a whole number of prompts, 1 to 1,000,000,000, got "{size}"' in done.err


def test_a_live_pilot_is_refused_since_it_would_be_paid_twice(cli: CommandLine, provider: Provider) -> None:
    done = cli("plan", *millstone(provider), "--pilot", "5", "--mode", "live")
    assert (done.code, provider.calls()) == (2, 0)
    assert "expected mode record, replay or strict, got live" in done.err


def test_a_strict_pilot_sends_nothing_and_says_what_is_missing(cli: CommandLine, provider: Provider) -> None:
    done = cli("plan", *millstone(provider), "--pilot", "12", "--mode", "strict")
    assert (done.code, provider.calls()) == (3, 0)
    assert "pilot: 0 calls to send; 12 more can't be sent: mode strict" in done.err
    assert "  no estimate    no prompt ran to its end" in done.out
    assert re.search(r"  not_cached, (all|\d+ of) 12: call \w+ to sim/open is not in the cache", done.out)
    cli("plan", *millstone(provider), "--pilot", "8")
    half = cli("plan", *millstone(provider), "--pilot", "12", "--mode", "strict", "--json")
    pilot = estimated(half)
    assert (half.code, pilot["from_cache"], pilot["failures"]["not_cached"]["count"]) == (3, 8, 4)
    assert pilot["input_tokens"]["ci95"] is not None


def test_an_interruption_ends_with_130_and_tells_what_came(provider: Provider, tmp_path: Path) -> None:
    provider.set_faults("slow_body=1.5,at=11-1000")
    asked = millstone(provider, "--concurrency", "4")
    pilot = start(tmp_path, "plan", *asked, "--pilot", "40", "--json")
    provider.await_calls(12)
    pilot.send_signal(signal.SIGINT)
    done = finish(pilot)
    assert done.code == 130
    assert "SIGINT: waiting up to 30 s for calls in flight" in done.err and "Traceback" not in done.err
    found = estimated(done)
    assert 10 <= found["whole"] == provider.calls() and found["pending"] == 40 - found["whole"]
    ending = json.loads(done.out)["runs"][0]["pilot"]
    assert (ending["exit_code"], ending["signal"], ending["maybe_billed_pending"]) == (130, 2, 0)


def test_a_run_file_has_a_pilot_for_each_of_its_runs(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    small = "limit = 1\ntemplates = 1\ntrials = 2\n"
    (tmp_path / "sweep.toml").write_text(
        f'[run]\nout = "out"\ncache = "cache"\n'
        f'[[run.millstone]]\nname = "one"\nmodel = "sim/open"\n{small}'
        f'[[run.millstone]]\nname = "two"\nmodel = ["sim/open", "sim/steady"]\n{small}'
        f'[providers.sim]\nbase_url = "{provider.base_url}"\n{PRICES}'
    )
    done = cli("plan", "sweep.toml", "--pilot", "8", "--json", "--no-progress")
    assert done.code == 0, done.err
    runs = json.loads(done.out)["runs"]
    sent = [[(each["sent"], each["from_cache"]) for each in run["pilot"]["estimates"]] for run in runs]
    # The second run's first model is asked the same as the first run's.
    assert sent == [[(8, 0)], [(0, 8), (8, 0)]]
    assert provider.calls() == 16
    assert not (tmp_path / "out").exists()
