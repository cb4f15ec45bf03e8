"""What a load test may be asked: the unsaid has a meaning, and what contradicts itself is one line and exit code 2."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from command_line import Done

from millstream.bench.evaluation.door.declarations import BUILT_IN
from millstream.bench.load.arrivals import ClosedLoop, OpenLoop, Replay, Stretch
from millstream.bench.load.goal import parse_promise
from millstream.bench.load.meter import Promise
from millstream.bench.load.options import add_arguments
from millstream.bench.load.spec import LoadSpec
from millstream.bench.load.spec_from_options import spec_from
from millstream.configuration.errors import UsageError
from millstream.configuration.options import with_sending

CommandLine = Callable[..., Done]
GOAL = "p99 latency <= 2 s and errors <= 1%"


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    models = [word for word in words[:1] if "/" in word]
    return with_sending(parser.parse_args(["sim/steady", *models, "--plan", *words[len(models) :]]))


def spec(*words: str) -> LoadSpec:
    return spec_from(options(*words))


def notes(*words: str) -> tuple[str, ...]:
    return spec_from(options(*words)).notes


def test_a_model_alone_is_asked_once_a_second_for_a_minute_at_random() -> None:
    asked = spec()
    arrivals = asked.plan.arrivals
    assert isinstance(arrivals, OpenLoop) and arrivals.process == "poisson"
    assert [stretch.rate for stretch in arrivals.stretches] == [1.0]
    assert (asked.plan.ends_s, asked.plan.limits.calls, asked.plan.limits.drain_s) == (60.0, None, 60.0)
    (call,) = islice(asked.calls("sim/steady", 0), 1)
    assert (len(str(call.input)), call.max_tokens, call.stream, call.temperature) == (800, 64, True, None)


def test_an_engine_for_it_measures_and_keeps_to_no_quota_that_a_file_declares(tmp_path: Path) -> None:
    file = tmp_path / "lanes.toml"
    file.write_text('[lanes."sim/steady"]\nrpm = 60\nitpm = 500\nconcurrency = 3\ntimeout = 5\n')
    asked = spec("--config", str(file))
    (lane,) = asked.settings.lanes
    assert (asked.settings.measures, asked.settings.mode) == (True, "live")
    assert (lane.rpm, lane.tpm, lane.itpm, lane.concurrency, lane.timeout_s) == (None, None, None, 2_000, 5.0)
    assert any("rpm 60, itpm 500" in note and "is not kept" in note for note in notes("--config", str(file)))
    (lane,) = spec("--config", str(file), "--rpm", "90", "--concurrency", "7").settings.lanes
    assert (lane.rpm, lane.itpm, lane.concurrency) == (90.0, None, 7)
    assert not any("rpm 60" in note for note in notes("--config", str(file), "--rpm", "90"))


def test_the_cap_on_cost_is_the_tests_own(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('[prices."sim/steady"]\ninput = 1\noutput = 2\n')
    asked = spec("--config", str(file), "--max-cost", "0.5")
    assert (asked.plan.limits.max_cost, asked.settings.max_cost) == (0.5, None)


@pytest.mark.parametrize(
    ("words", "stretches"),
    [
        (("--rate", "2.5"), (Stretch(float("inf"), 2.5),)),
        (("--ramp", "1:50"), (Stretch(60.0, 1.0, 50.0),)),
        (("--ramp", "50:0", "--duration", "2m"), (Stretch(120.0, 50.0, 0.0),)),
        (("--steps", "5, 10,20"), (Stretch(30.0, 5.0), Stretch(30.0, 10.0), Stretch(30.0, 20.0))),
        (("--steps", "5,1", "--step-time", "3"), (Stretch(3.0, 5.0), Stretch(3.0, 1.0))),
    ],
)
def test_rates_are_what_was_said(words: tuple[str, ...], stretches: tuple[Stretch, ...]) -> None:
    arrivals = spec(*words).plan.arrivals
    assert isinstance(arrivals, OpenLoop) and arrivals.stretches == stretches


@pytest.mark.parametrize(
    ("words", "ends_s", "calls"),
    [
        ((), 60.0, None),
        (("--calls", "10"), None, 10),
        (("--calls", "10", "--duration", "5"), 5.0, 10),
        (("--max-cost", "0"), 60.0, None),
        (("--in-flight", "4"), 60.0, None),
        (("--in-flight", "4", "--calls", "9"), None, 9),
        (("--ramp", "1:9", "--calls", "9"), 60.0, 9),
        (("--steps", "1,9", "--calls", "9"), 60.0, 9),
    ],
)
def test_a_test_ends_after_a_minute_where_nothing_else_ends_it(
    words: tuple[str, ...], ends_s: float | None, calls: int | None, tmp_path: Path
) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('[prices."sim/steady"]\ninput = 1\noutput = 2\n')
    plan = spec("--config", str(file), *words).plan
    assert (plan.ends_s, plan.limits.calls) == (ends_s, calls)


def test_bursts_are_asked_for_by_their_burstiness_alone() -> None:
    for words in (("--burstiness", "4"), ("--burstiness", "4", "--arrivals", "gamma")):
        arrivals = spec("--rate", "9", *words).plan.arrivals
        assert isinstance(arrivals, OpenLoop)
        assert (arrivals.process, arrivals.burstiness) == ("gamma", 4.0)
    arrivals = spec("--rate", "9", "--arrivals", "constant").plan.arrivals
    assert isinstance(arrivals, OpenLoop) and arrivals.process == "constant"


def test_a_closed_loop_has_room_for_all_that_it_keeps_in_flight() -> None:
    asked = spec("--in-flight", "5000")
    assert asked.plan.arrivals == ClosedLoop(5_000)
    assert asked.plan.limits.in_flight == asked.settings.lanes[0].concurrency == 5_000


def test_a_goal_is_searched_between_two_rates() -> None:
    asked = spec("--goal", GOAL, "--from", "5", "--to", "50", "--precision", "2%", "--warm-up", "3", "--seed", "7")
    assert asked.search is not None
    goal = asked.search.goal
    assert (goal.of, goal.percent, goal.errors_most, goal.text) == ("latency", 99, 0.01, GOAL)
    assert (asked.search.low, asked.search.high, asked.search.precision) == (5.0, 50.0, 0.02)
    assert (asked.plan.warm_up_s, asked.plan.seed, asked.plan.ends_s) == (3.0, 7, None)


def test_a_promise_is_read_in_any_order_and_unit() -> None:
    assert parse_promise("first token <= 1 s, latency<=10s and token <= 50 ms") == Promise(1.0, 10.0, 0.05)
    assert parse_promise(" token  <  0.05 s ") == Promise(token_s=0.05)
    assert parse_promise("TTFT <= 1 s, tpot <= 50 ms") == Promise(first_token_s=1.0, token_s=0.05)


@pytest.mark.parametrize("text", ["fast", "latency <= 1", "latency >= 1 s", "latency <= 1 s,", "p9 token <= 1 s"])
def test_a_promise_that_is_not_understood_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match='--promise: expected times as "first token <= 1 s'):
        spec("--promise", text)


def test_the_same_seed_draws_the_same_lengths_and_never_the_same_first_letters() -> None:
    one, other = (list(islice(spec("--prompt-tokens", "20-90").calls("sim/steady", 0), 200)) for _ in range(2))
    assert [len(str(call.input)) for call in one] == [len(str(call.input)) for call in other]
    assert not {str(call.input)[:25] for call in one} & {str(call.input)[:25] for call in other}
    assert not {call.trial for call in one} & {call.trial for call in other}
    third = list(islice(spec("--prompt-tokens", "20-90", "--seed", "1").calls("sim/steady", 0), 200))
    assert [len(str(call.input)) for call in one] != [len(str(call.input)) for call in third]


def test_every_model_and_every_step_of_a_search_has_prompts_of_its_own() -> None:
    asked = spec("sim/open", "--prompt-tokens", "20-90")
    lengths = [
        [len(str(call.input)) for call in islice(asked.calls(model, step), 50)]
        for model in asked.models
        for step in (0, 1)
    ]
    assert asked.models == ("sim/steady", "sim/open") and len({tuple(each) for each in lengths}) == 4


def test_what_was_asked_stands_in_the_order_by_the_names_of_the_options() -> None:
    said = spec("--ramp", "1:9", "--temperature", "0", "--whole", "--warm-up", "0", "--promise", "latency <= 1 s").said
    assert said["models"] == ["sim/steady"] and said["ramp"] == (1.0, 9.0) and said["temperature"] == 0.0
    assert (said["duration"], said["arrivals"], said["max-tokens"], said["streamed"]) == (60.0, "poisson", 64, False)
    assert "plan" not in said and "rate" not in said and "out" not in said
    assert spec().said["rate"] == 1.0
    assert spec("--goal", GOAL).said["from"] == 1.0


def test_a_pause_may_be_none_at_all_in_any_unit() -> None:
    for nothing in ("0", "0s", "0.0 s", "0m"):
        plan = spec("--drain", nothing, "--warm-up", nothing).plan
        assert (plan.limits.drain_s, plan.warm_up_s) == (0.0, 0.0)
    assert spec("--drain", "1m", "--warm-up", "0.5s").plan.limits.drain_s == 60.0


def test_a_model_named_twice_is_asked_once() -> None:
    assert spec("sim/steady").models == ("sim/steady",)


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "two arrivals": (("--rate", "5", "--ramp", "1:5"), "got --rate and --ramp: leave one out"),
    "two kinds of prompts": (("--dataset", BUILT_IN[0], "--prompt-tokens", "9"), "got --prompt-tokens and --dataset"),
    "a goal with a duration": (("--goal", GOAL, "--duration", "5"), "--duration: expected none beside --goal, got one"),
    "a goal with a count": (("--goal", GOAL, "--calls", "5"), "--calls: expected none beside --goal, got one"),
    "a goal with a cool-down": (("--goal", GOAL, "--cool-down", "5"), "got a search for a goal: leave it out"),
    "a goal from high to low": (("--goal", GOAL, "--from", "5", "--to", "1"), "--from: expected no more than --to"),
    "a goal that isn't understood": (("--goal", "fast"), "--goal: goal 'fast' is not understood: write it as"),
    "a goal at an odd percentile": (("--goal", "p10 latency <= 1 s"), "must be >= 50 and <= 99.99"),
    "a goal of whole answers' tokens": (("--goal", "p99 gap <= 1 s", "--whole"), "expected latency with --whole"),
    "a precision without its unit": (("--goal", GOAL, "--precision", "5"), "--precision: expected a percentage"),
    "a bound without a goal": (("--from", "5"), "--from: expected --goal beside it, got none"),
    "a bound beside a rate": (("--to", "5", "--rate", "1"), "--to: expected --goal beside it, got --rate"),
    "a cool-down without an end": (("--cool-down", "5", "--calls", "9"), "--cool-down: expected a test whose end is"),
    "a warm-up longer than its calls take": (
        ("--warm-up", "9", "--calls", "5"),
        "less than the 5 s that the test takes",
    ),
    "ends as long as the test": (("--warm-up", "50", "--cool-down", "10"), "expected less than the test's 60 s"),
    "a duration of steps": (("--steps", "1,2", "--duration", "9"), "--duration: expected none beside --steps"),
    "a step's time without steps": (("--step-time", "9"), "--step-time: expected --steps beside it, got none"),
    "a speed without a trace": (("--speed", "9"), "--speed: expected --replay beside it, got none"),
    "a process of a closed loop": (("--in-flight", "2", "--arrivals", "poisson"), "--arrivals: expected none beside"),
    "bursts of a closed loop": (("--in-flight", "2", "--burstiness", "2"), "--burstiness: expected none beside"),
    "a cap on a closed loop": (("--in-flight", "2", "--most-in-flight", "1"), "--most-in-flight: expected none beside"),
    "bursts without their size": (("--arrivals", "gamma"), "--arrivals gamma: expected --burstiness B beside it"),
    "bursts of another process": (("--arrivals", "constant", "--burstiness", "2"), "--burstiness: expected --arrivals"),
    "one step": (("--steps", "5"), "--steps: expected R,R,…, at least 2"),
    "a step of nothing": (("--steps", "5,0"), "--steps: expected R,R,…, at least 2"),
    "a level ramp": (("--ramp", "5:5"), "--ramp: expected FROM:TO, two different numbers"),
    "half a ramp": (("--ramp", "5"), "--ramp: expected FROM:TO, two different numbers"),
    "no rate": (("--rate", "0"), "--rate: expected a number of calls a second, 0.001 to 1,000,000"),
    "a rate that is no number": (("--rate", "nan"), "--rate: expected a number of calls a second"),
    "a falling range": (("--prompt-tokens", "300-20"), "--prompt-tokens: expected N, LOW-HIGH, lognormal:MEDIAN,P99"),
    "a prompt too short to be another": (("--prompt-tokens", "7"), "--prompt-tokens: expected N, LOW-HIGH"),
    "a distribution of another name": (("--prompt-tokens", "normal:5,9"), "--prompt-tokens: expected N, LOW-HIGH"),
    "a number with two points": (("--prompt-tokens", "lognormal:9.9.9,20"), "--prompt-tokens: expected N, LOW-HIGH"),
    "tokens of no trace": (("--prompt-tokens", "trace"), "--prompt-tokens trace: expected --replay FILE beside it"),
    "answers of no trace": (("--max-tokens", "trace"), "--max-tokens trace: expected --replay FILE beside it"),
    "no answer": (("--max-tokens", "0"), "--max-tokens: expected a whole number of tokens, 1 to 10,000,000"),
    "prompts to the letter of our own": (("--exact-prompts",), "--exact-prompts: expected --prompts or --dataset"),
    "a promise of whole answers' tokens": (("--promise", "token <= 1 s", "--whole"), "expected latency alone with"),
    "a promise not understood": (("--promise", "soon"), '--promise: expected times as "first token <= 1 s'),
    "a promise made twice": (("--promise", "token<=1s,token<=2s"), "--promise: expected each time once, got token"),
    "a promise of nothing": (("--promise", "token <= 0 s"), "--promise: expected times above 0, got token <= 0 s"),
    "another mode": (("--mode", "record"), "--mode: expected live, or nothing, got record: a load test sends every"),
    "a limit without a price": (("--max-cost", "1"), "model sim/steady has no price, so --max-cost can't be kept"),
    "a search engine": (("search/brave",), "search/brave: expected a model, got a search engine"),
    "an unknown provider": (("nope/x",), "no provider 'nope' (on a server of your own: vllm/nope/x"),
    "a model without its provider": (("steady",), "expected a model as provider/model"),
    "a data set that is none": (("--dataset", "nada"), "or a file or folder that exists, got nada"),
    "a folder without data": (("--dataset", "."), "--dataset: .: expected a data set of "),
    "a prompt larger than a minute": (("--tpm", "100"), "--tpm: expected room for a call of about 264 tokens, got 100"),
    "no time": (("--duration", "0"), "--duration: expected a time above 0"),
    "a time before the start": (("--warm-up=-1",), "--warm-up: expected a time, 0 or more"),
    "half a call in flight": (("--in-flight", "1.5"), "--in-flight: expected a whole number of calls in flight"),
    "half a seed": (("--seed", "0.5"), "--seed: expected a whole number"),
    "an unknown option": (("--rat", "5"), "load: unknown option --rat (nearest: --rate)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_contradicts_itself_is_refused_in_one_line(cli: CommandLine, case: str) -> None:
    words, said = REFUSED[case]
    models = [word for word in words[:1] if not word.startswith("-")]
    done = cli("load", "sim/steady", *models, "--plan", *words[len(models) :])
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1), done
    assert said in done.err


def test_a_parameter_that_a_model_never_takes_is_refused_before_anything_is_sent(cli: CommandLine) -> None:
    done = cli("load", "anthropic/claude-opus-4-5", "--temperature", "1", "--plan")
    assert done.code == 2 and "takes no temperature" in done.err and len(done.err.splitlines()) == 1


def test_without_a_folder_or_a_key_nothing_is_sent(cli: CommandLine, tmp_path: Path) -> None:
    done = cli("load", "sim/steady")
    assert (done.code, done.err) == (2, "millstream: --out: expected the test's folder, got none\n")
    done = cli("load", "openai/gpt-4o-mini", "--out", "test")
    assert done.code == 2 and "needs a key: set OPENAI_API_KEY" in done.err
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "load.json").write_text("{}")
    done = cli("load", "sim/steady", "--out", "used")
    assert done.code == 2 and "used holds a load test already" in done.err
    assert (tmp_path / "used" / "load.json").read_text() == "{}" and not (tmp_path / "test").exists()


def test_a_trace_and_a_process_contradict_each_other(tmp_path: Path) -> None:
    (tmp_path / "trace").write_text("0\n1\n")
    for words in (("--arrivals", "poisson"), ("--burstiness", "3")):
        with pytest.raises(UsageError, match="the trace says when calls arrive"):
            spec("--replay", str(tmp_path / "trace"), *words)
    assert spec("--replay", str(tmp_path / "trace"), "--speed", "4").plan.arrivals == Replay((0.0, 1.0), 4.0)
