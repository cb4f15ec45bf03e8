"""What is said before a load test starts: how many calls, for how long, and never less than they can cost."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
from collections.abc import Callable
from itertools import islice, takewhile
from pathlib import Path
from random import Random

import pytest
from command_line import Done

from millstream.bench.load.arrivals import ClosedLoop
from millstream.bench.load.forecast import LoadForecast, forecast_of, tell
from millstream.bench.load.goal import highest_rate
from millstream.bench.load.meter import LoadMeter
from millstream.bench.load.options import add_arguments
from millstream.bench.load.spec import LoadSpec
from millstream.bench.load.spec_from_options import spec_from
from millstream.bench.load.timing import CallTimes
from millstream.bench.load.watch import ClientVerdict
from millstream.configuration.options import with_sending
from millstream.engine.attempts.money import worst_cost
from millstream.engine.estimate import TokenEstimate

CommandLine = Callable[..., Done]
MODEL = "openai/gpt-4o-mini"


def spec(*words: str) -> LoadSpec:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    models = [word for word in words[:1] if "/" in word]
    return spec_from(with_sending(parser.parse_args([MODEL, *models, "--plan", *words[len(models) :]])))


def forecast(*words: str) -> LoadForecast:
    return forecast_of(spec(*words))


def line(*words: str) -> str:
    asked = spec(*words)
    return tell(asked, forecast_of(asked))


@pytest.mark.parametrize(
    "words",
    [
        ("--rate", "30"),
        ("--rate", "40", "--arrivals", "constant"),
        ("--ramp", "1:50"),
        ("--ramp", "0:9", "--arrivals", "constant", "--duration", "7"),
        ("--steps", "5,50,1", "--step-time", "7"),
        ("--rate", "20", "--burstiness", "9"),
        ("--rate", "0.2"),
    ],
)
def test_no_draw_has_more_calls_than_were_announced_and_their_mean_is_what_was(words: tuple[str, ...]) -> None:
    asked = spec(*words)
    told = forecast_of(asked)
    assert told.calls is not None and told.calls_most is not None
    arrivals, ends_s = asked.plan.arrivals, asked.plan.ends_s
    assert not isinstance(arrivals, ClosedLoop) and ends_s is not None
    drawn = [sum(1 for _ in takewhile(lambda due: due < ends_s, arrivals.times(Random(n)))) for n in range(200)]
    assert max(drawn) <= told.calls_most
    assert abs(sum(drawn) / len(drawn) - told.calls) <= 1 + 0.05 * told.calls


@pytest.mark.parametrize("length", ["200", "20-2000", "lognormal:100,2000"])
def test_the_cost_at_most_is_above_what_the_cap_would_reserve_for_all_calls(length: str) -> None:
    asked = spec("--calls", "5000", "--prompt-tokens", length, "--max-tokens", "500")
    told, price = forecast_of(asked), asked.settings.price_table().get(MODEL)
    assert price is not None and told.cost is not None and told.cost_most is not None
    reserved = sum(worst_cost(call, price, TokenEstimate()) or 0.0 for call in islice(asked.calls(MODEL, 0), 5_000))
    assert told.cost < reserved <= told.cost_most * 1.000_001
    assert told.cost_most < 3 * reserved


def test_a_cap_on_cost_is_what_it_costs_at_most() -> None:
    told = forecast("--rate", "10", "--max-cost", "0.01")
    assert (told.cost_most, told.is_capped) == (0.01, True)
    said = line("--rate", "10", "--max-cost", "0.01")
    assert "about $0.041 if" in said and said.endswith("at most $0.010 by --max-cost, which is likely to end it early")
    told = forecast("--rate", "10", "--max-cost", "100")
    assert told.cost_most is not None and told.cost_most < 1 and not told.is_capped


def test_calls_and_cost_are_those_of_all_models_together() -> None:
    assert forecast("openai/gpt-4.1", "--arrivals", "constant", "--rate", "5").calls == 600
    assert forecast("openai/gpt-4.1", "--rate", "5", "--calls", "50").calls_most == 50
    assert "sends about 600 calls to 2 models together over 60 s" in line("openai/gpt-4.1", "--rate", "5")


def test_a_limit_on_calls_says_how_long_they_take() -> None:
    assert forecast("--rate", "5", "--calls", "50").seconds == pytest.approx(10)
    assert forecast("--rate", "5", "--calls", "50", "--duration", "3").seconds == pytest.approx(3)
    assert line("--rate", "5", "--calls", "50").startswith("sends at most 50 calls over 10 s; about $0.0034 if answers")


def test_a_closed_loop_tells_what_a_call_costs_where_nobody_knows_how_many() -> None:
    told = line("--in-flight", "8")
    assert told.startswith("keeps 8 calls in flight over 60 s; about $0.000068 a call")
    assert "and no limit on all: --calls or --max-cost sets one" in told
    assert line("--in-flight", "8", "--calls", "90").startswith("keeps 8 calls in flight, 90 at most; about $0.0062")


def test_a_model_without_a_price_is_named() -> None:
    assert "cost unknown: no price for sim/steady" in line("sim/steady")


@pytest.mark.parametrize("precision", ["5%", "0.5%", "50%"])
def test_no_search_sends_more_calls_than_were_announced(precision: str) -> None:
    """Nothing is decided before a rate's last repeat, and then by lot."""
    bounds = ("--from", "3", "--to", "100", "--precision", precision, "--warm-up", "2")
    asked = spec("--goal", "p50 gap <= 1 s and errors <= 20%", *bounds)
    search, told = asked.search, forecast_of(asked)
    assert search is not None and told.calls_most is not None
    for seed in range(10):
        random, sent = Random(seed), 0

        async def run(rate: float, calls: int, random: Random = random) -> tuple[LoadMeter, ClientVerdict]:
            nonlocal sent
            sent += calls + math.ceil(2 * rate)
            meter = LoadMeter()
            if calls == search.calls_at(rate) * 2**search.repeats_max:
                gap_s = 0.1 if random.random() < 0.8 else 9.0
                for _ in range(calls):
                    meter.take(CallTimes(0, 0, 0, 0, 0, gap_s, gap_s, (gap_s,), "ok", 1))
            return meter, ClientVerdict(0, 0, 0, ())

        asyncio.run(highest_rate(search, run))
        assert sent <= told.calls_most


def test_a_plan_sends_and_writes_nothing_and_needs_no_key(cli: CommandLine, tmp_path: Path) -> None:
    done = cli("load", MODEL, "--plan", "--out", "test", "--rate", "10")
    assert (done.code, done.err) == (0, "") and done.out.startswith("sends about 600 calls over 60 s")
    done = cli("load", MODEL, "--plan", "--json", "--arrivals", "constant")
    told = json.loads(done.out)
    assert (told["models"], told["calls"], told["calls_most"], told["seconds"]) == ([MODEL], 60, 60, 60)
    assert 0 < told["cost"] < told["cost_most"] and told["without_a_price"] == []
    assert list(tmp_path.iterdir()) in ([], [tmp_path / "home"])


def test_a_search_says_how_long_it_takes_at_least_and_at_most() -> None:
    """Each rate is measured for 5 s, since no queue has to build up for a goal on gaps: 27 calls can bound errors at
    20% (twice ln 0.05 / ln 0.8 = 13.4), and 5 s at 10 calls/s are more."""
    words = ("--goal", "p50 gap <= 1 s and errors <= 20%", "--from", "10", "--to", "40", "--precision", "5%")
    each = 5.0 + spec(*words).plan.warm_up_s
    # Three rates up to the highest, 10, 20 and 40; then log2(ln 2 / ln 1.05) = 3.8, so four halvings between 20 and 40.
    assert forecast(*words).seconds_of_search == pytest.approx((each, 7 * each))
    assert f"takes {each:.0f} s (the first rate misses) to {7 * each:.0f} s (the last one misses)" in line(*words)
    assert forecast("--rate", "5", "--duration", "2s").seconds_of_search is None
