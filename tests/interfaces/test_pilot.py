"""`plan --pilot N`: real calls of the run, paid once, and an interval that the run then keeps to."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any, cast

import pytest
from command_line import Done, Provider, finish, ids_of, lines_of, start

from millstream.bench.evaluation.door.prepared_run import ItemsOfPilot, PreparedRun
from millstream.bench.evaluation.door.work import BenchmarkRun
from millstream.bench.evaluation.planning.pilot import Pilot, begin, send_single_calls
from millstream.engine.call import Call, Outcome, Reply
from millstream.engine.fault import LocalFault, Stop, Stopped, StopReason
from millstream.engine.runs.pairs import Pair
from millstream.engine.sink import Sink
from millstream.wiring import Settings

pytestmark = pytest.mark.needs_benchmark("millstone")

CommandLine = Callable[..., Done]
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
    low, high = pilot["cost_with_pilot"]["ci95"]
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


def test_a_pilot_taken_twice_sends_nothing_the_second_time_and_says_the_same(
    cli: CommandLine, provider: Provider
) -> None:
    first = estimated(cli("plan", *millstone(provider), "--pilot", "30", "--json"))
    done = cli("plan", *millstone(provider), "--pilot", "30", "--json")
    second = estimated(done)
    assert provider.calls() == 30
    assert "pilot: 0 calls to send; 30 more are answered by the cache" in done.err
    assert (second["sent"], second["from_cache"], second["spent"], second["latency_ms"]) == (0, 30, 0, None)
    for figure in ("input_tokens", "output_tokens", "cost"):
        assert second[figure] == first[figure]


def test_a_larger_pilot_sends_what_the_smaller_did_not(cli: CommandLine, provider: Provider) -> None:
    cli("plan", *millstone(provider), "--pilot", "30", "--json")
    pilot = estimated(cli("plan", *millstone(provider), "--pilot", "50", "--json"))
    assert (pilot["sent"], pilot["from_cache"], pilot["whole"], provider.calls()) == (20, 30, 50, 50)


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


def test_without_a_look_into_the_cache_only_the_pilots_own_answers_are_known_to_be_there(
    cli: CommandLine, provider: Provider
) -> None:
    looked = estimated(cli("plan", *millstone(provider), "--pilot", "30", "--json"))
    plan = cli("plan", *millstone(provider), "--pilot", "30", "--no-cache-check", "--json")
    blind = estimated(plan)
    assert cached_in(plan) is None
    assert blind["left"] == looked["left"] == PROMPTS - 30
    assert blind["input_tokens"] == looked["input_tokens"]


def test_a_pilot_as_large_as_the_grid_leaves_nothing_to_come(cli: CommandLine, provider: Provider) -> None:
    pilot = estimated(cli("plan", *millstone(provider), "--pilot", "10_000", "--json"))
    assert (pilot["sent"], pilot["left"], pilot["cost"]["ci95"]) == (PROMPTS, 0, [0, 0])
    assert cli("run", *millstone(provider), "--out", "run").code == 0
    assert provider.calls() == PROMPTS


def test_no_folder_is_written_and_nothing_but_the_cache(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    done = cli("plan", *millstone(provider, "--out", "run"), "--pilot", "5")
    assert done.code == 0, done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "prices.toml"]


def test_progress_goes_to_stderr_unless_it_is_not_wanted(cli: CommandLine, provider: Provider) -> None:
    shown = cli("plan", *(word for word in millstone(provider) if word != "--no-progress"), "--pilot", "5")
    assert "5 of 5 (100%)" in shown.err and "5 of 5" not in shown.out
    assert "of 6 (" not in cli("plan", *millstone(provider), "--pilot", "6").err


def test_max_cost_holds_and_the_rest_is_asked_when_it_is_raised(cli: CommandLine, provider: Provider) -> None:
    asked = millstone(provider, "--max-tokens", "50", "--concurrency", "2")
    # Far more than it sends, and little for what is left: the declared quota counts although the lane has stopped.
    done = cli("plan", *asked, "--pilot", "40", "--max-cost", "0.02", "--tpm", "100000", "--json")
    pilot = estimated(done)
    tokens = sum(pilot["lanes"][0][name]["estimate"] for name in ("input_tokens", "output_tokens"))
    assert pilot["minutes"]["bound_by"] == "tokens" and pilot["minutes"]["estimate"] >= tokens / 100_000
    assert (done.code, json.loads(done.out)["exit_code"]) == (4, 4)
    assert "at most $0.0200, by --max-cost" in done.err
    assert 0 < pilot["spent"] <= 0.02
    assert (pilot["stop"]["reason"], pilot["sent"] + pilot["pending"]) == ("budget", 40)
    # What came before the stop is spread over the grid all the same.
    assert pilot["cost"]["ci95"] is not None
    told = cli("plan", *asked, "--pilot", "40", "--max-cost", "1")
    assert (told.code, provider.calls()) == (0, 40)


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


def test_a_plan_without_a_pilot_sends_nothing_and_says_so(cli: CommandLine, provider: Provider) -> None:
    done = cli("plan", *millstone(provider), "--json")
    assert json.loads(done.out)["runs"][0]["pilot"] is None
    assert (done.code, json.loads(done.out)["exit_code"], provider.calls()) == (0, 0, 0)
    assert "pilot of" not in cli("plan", *millstone(provider)).out


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
    assert re.search(r"  not_cached     12, the first: call \w+ to sim/open is not in the cache", done.out)
    cli("plan", *millstone(provider), "--pilot", "8")
    half = cli("plan", *millstone(provider), "--pilot", "12", "--mode", "strict", "--json")
    pilot = estimated(half)
    assert (half.code, pilot["from_cache"], pilot["failures"]["not_cached"]["count"]) == (3, 8, 4)
    assert pilot["input_tokens"]["ci95"] is not None


def test_where_all_calls_fail_the_reasons_are_told_with_3(cli: CommandLine, provider: Provider) -> None:
    provider.set_faults("rejected=400")
    done = cli("plan", *millstone(provider), "--pilot", "10")
    assert done.code == 3
    assert "  no estimate    no prompt ran to its end" in done.out
    assert "  failed         10 of 10 prompts (69.2% to 100.0%)" in done.out
    assert re.search(r"  rejected       10, the first: 400", done.out)
    assert "exit code 3: calls of the pilot failed" in done.out


def test_some_failures_end_with_3_too_and_leave_an_estimate(cli: CommandLine, provider: Provider) -> None:
    provider.set_faults("rejected=400,at=1-4")
    done = cli("plan", *millstone(provider), "--pilot", "20", "--json")
    pilot = estimated(done)
    assert (done.code, pilot["failed"]["count"], pilot["whole"]) == (3, 4, 16)
    assert pilot["left"] == PROMPTS - 16
    assert pilot["cost"]["ci95"] is not None


def test_refusals_and_answers_cut_short_are_counted(cli: CommandLine, provider: Provider) -> None:
    provider.set_faults("content_filter=200,at=1-3", "length,at=4-5")
    done = cli("plan", *millstone(provider), "--pilot", "20", "--json")
    pilot = estimated(done)
    assert (done.code, pilot["refused"]["count"], pilot["truncated"]["count"]) == (0, 3, 2)


def test_a_dead_key_stops_one_model_with_4_and_leaves_the_other(cli: CommandLine, provider: Provider) -> None:
    provider.set_faults("unauthorized,model=steady")
    done = cli("plan", *millstone(provider, "--model", "sim/steady"), "--pilot", "10", "--json")
    assert done.code == 4
    pilots = {each["models"][0]: each for each in json.loads(done.out)["runs"][0]["pilot"]["estimates"]}
    assert pilots["sim/open"]["whole"] == 10 and pilots["sim/open"]["stop"] is None
    dead = pilots["sim/steady"]
    assert (dead["whole"], dead["pending"], dead["stop"]["reason"]) == (0, 10, "dead_key")
    told = cli("plan", *millstone(provider, model="sim/steady"), "--pilot", "10").out
    assert "pending        10 of them: sim/steady refuses the key" in told and "no prompt was answered" in told
    assert "exit code 4: the pilot stopped before its end; the same command goes on with it" in told


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


def test_a_second_signal_drops_what_is_in_flight_and_counts_it(provider: Provider, tmp_path: Path) -> None:
    provider.set_faults("slow_body=60,at=6-1000")
    pilot = start(tmp_path, "plan", *millstone(provider, "--concurrency", "3"), "--pilot", "40")
    provider.await_calls(8)
    pilot.send_signal(signal.SIGINT)
    assert pilot.stderr is not None
    while "SIGINT: waiting" not in pilot.stderr.readline():
        assert pilot.poll() is None
    pilot.send_signal(signal.SIGINT)
    done = finish(pilot)
    assert done.code == 130 and "Traceback" not in done.err
    assert "pending        35 of them" in done.out
    assert "3 attempts without an answer in the pilot may have been billed all the same" in done.out
    assert "exit code 130: interrupted by SIGINT" in done.out


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


class Scripted:
    """Answers until it is told not to: one model stops after two calls, or the disk is full."""

    def __init__(self, *, is_disk_full: bool = False) -> None:
        self.is_disk_full = is_disk_full
        self.halted: list[StopReason] = []

    async def run(self, calls: Iterable[Call], sink: Sink | None = None) -> AsyncIterator[Outcome]:
        for number, call in enumerate(calls):
            await asyncio.sleep(0)
            if call.model == "a/bad" and number == 2:
                if self.is_disk_full:
                    raise LocalFault("disk full")
                raise Stopped([Stop(call.model, "dead_key", "refuses the key")])
            yield Outcome(call, Reply("A"), attempts=1)

    def halt(self, reason: StopReason, detail: str) -> None:
        self.halted.append(reason)


def two_models() -> Pilot:
    pairs = [Pair("a/good", None), Pair("a/bad", None)]
    calls = {pair: [Call(pair.model, f"prompt {number}") for number in range(5)] for pair in pairs}
    nothing: dict[str, Any] = {"specification": {}, "options": {}, "dataset": {}}
    run = PreparedRun(out=Path("-"), work=cast(BenchmarkRun, None), settings=Settings(environment={}), **nothing)
    return begin(ItemsOfPilot(run=run, items=5, of=5, calls=calls))


def test_a_model_that_stops_keeps_what_it_had_and_never_holds_up_another() -> None:
    pilot = two_models()
    stops = asyncio.run(send_single_calls(Scripted(), pilot))
    assert [stop.reason for stop in stops] == ["dead_key"]
    assert [len(stratum.items) for stratum in pilot.strata] == [5, 2]


def test_a_full_disk_halts_every_model_and_is_told_as_itself() -> None:
    scripted = Scripted(is_disk_full=True)
    with pytest.raises(LocalFault, match="disk full"):
        asyncio.run(send_single_calls(scripted, two_models()))
    assert scripted.halted == ["local_fault"]
