"""Load tests through the real command against the simulated provider: files, endings, signals, faults of our own."""

from __future__ import annotations

import json
import signal
import time
import urllib.request
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from command_line import Done, Provider, finish, lines_of, run_command, start

PRICES = '[prices."sim/open"]\ninput = 100.0\noutput = 400.0\n'


def command(provider: Provider, *more: str, out: str = "out") -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", out)
    return ("load", "sim/open", *where, "--no-report", "--prompt-tokens", "20", "--max-tokens", "8", *more)


def done(home: Path, provider: Provider, *more: str, out: str = "out") -> Done:
    return run_command(home, *command(provider, *more, out=out))


def load_of(folder: Path) -> Any:
    return json.loads((folder / "load.json").read_text())


def arrivals(provider: Provider) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{provider.address}/sim/log", timeout=10) as answer:
        return [json.loads(line) for line in answer]


def test_every_call_is_a_line_and_the_figures_are_those_of_the_lines(provider: Provider, tmp_path: Path) -> None:
    ended = done(tmp_path, provider, "--rate", "60", "--duration", "3s", "--warm-up", "1s", "--json")
    assert ended.code == 0, ended.err
    load, lines = load_of(tmp_path / "out"), lines_of(tmp_path / "out/calls.jsonl")
    assert json.loads(ended.out) == load
    (own,) = load["models"].values()
    measured = [line for line in lines if line["measured"]]
    assert len(lines) == own["begun"] == provider.calls() and len(measured) == own["calls"] == own["answered"] > 60
    # Times count from the test's start, so on a busy machine the first second ends a little after 1.
    assert max(line["due"] for line in lines if not line["measured"]) < min(line["due"] for line in measured) < 1.5
    for line in lines:
        assert line["due"] <= line["begun"] <= line["sent"] <= line["first"] <= line["last"] <= line["ended"]
        assert line["status"] == "ok" and line["attempts"] == 1 and line["output_tokens"] > 0
    latency = sorted(line["ended"] - line["due"] for line in measured)
    median = next(each for each in own["latency"]["percentiles"] if each["percent"] == 50.0)
    assert median["low_s"] <= latency[len(latency) // 2] <= median["high_s"]
    assert own["output_tokens"] == sum(line["output_tokens"] for line in measured)
    assert (load["ending"], load["warm_up_s"], load["seconds"]) == ("duration", 1.0, 2.0)
    assert sum(part["calls"] for part in own["slices"]) == own["calls"]


def test_a_folder_that_holds_a_test_is_refused_and_nothing_is_sent(provider: Provider, tmp_path: Path) -> None:
    assert done(tmp_path, provider, "--calls", "5", "--rate", "50").code == 0
    before = (tmp_path / "out/load.json").read_bytes()
    again = done(tmp_path, provider, "--calls", "5", "--rate", "50")
    assert again.code == 2 and "holds a load test already" in again.err and again.out == ""
    assert provider.calls() == 5 and (tmp_path / "out/load.json").read_bytes() == before


def test_nothing_is_stored_so_the_same_test_is_sent_once_more(provider: Provider, tmp_path: Path) -> None:
    for number in range(2):
        assert done(tmp_path, provider, "--calls", "5", "--rate", "50", "--seed", "7", out=f"out{number}").code == 0
    assert provider.calls() == 10
    assert all(line["attempts"] == 1 for number in range(2) for line in lines_of(tmp_path / f"out{number}/calls.jsonl"))


def test_a_closed_loop_keeps_its_calls_in_flight_as_the_server_sees_it(provider: Provider, tmp_path: Path) -> None:
    provider.set_faults("slow_body=0.2")
    ended = done(tmp_path, provider, "--in-flight", "6", "--calls", "60", "--whole")
    assert ended.code == 0, ended.err
    rows = arrivals(provider)
    changes = sorted([(row["at"], 1) for row in rows] + [(row["ended"], -1) for row in rows])
    in_flight, at = 0, rows[0]["at"]
    held: dict[int, float] = defaultdict(float)
    for when, change in changes:
        held[in_flight] += when - at
        in_flight, at = in_flight + change, when
    assert len(rows) == 60 and max(held) == 6
    # But for the first call, the last ones, and the way from an answer to the next call.
    assert held[6] + held[5] > 0.8 * sum(held.values()), held


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_begins_nothing_more_waits_for_what_is_in_flight_and_keeps_the_figures(
    provider: Provider, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    provider.set_faults("slow_body=0.4")
    process = start(tmp_path, *command(provider, "--rate", "40", "--duration", "60s"))
    provider.await_calls(30)
    process.send_signal(number)
    ended = finish(process)
    assert ended.code == code and "Traceback" not in ended.err, ended.err
    load, lines = load_of(tmp_path / "out"), lines_of(tmp_path / "out/calls.jsonl")
    assert load["ending"] == "interrupted" and number.name in load["ending_detail"]
    assert len(lines) == load["models"]["sim/open"]["begun"] == provider.calls()
    assert {line["status"] for line in lines} == {"ok"}
    assert f"interrupted by {number.name}" in ended.out and "latency, ms" in ended.out


def test_a_second_signal_does_not_wait(provider: Provider, tmp_path: Path) -> None:
    provider.set_faults("silence,at=9-1000")
    process = start(tmp_path, *command(provider, "--rate", "40", "--duration", "60s"))
    provider.await_calls(20)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None, "the first signal waits for what is in flight"
    process.send_signal(signal.SIGINT)
    ended = finish(process, within_s=15.0)
    lines = lines_of(tmp_path / "out/calls.jsonl")
    assert ended.code == 130 and Counter(line["status"] for line in lines).keys() == {"ok", "unfinished"}
    assert load_of(tmp_path / "out")["models"]["sim/open"]["errors"] == {
        "unfinished": sum(line["status"] == "unfinished" for line in lines)
    }


def test_the_limit_on_cost_ends_the_test_and_is_no_failure(provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    ended = done(tmp_path, provider, "--rate", "60", "--max-cost", "0.10", "--config", "prices.toml")
    load = load_of(tmp_path / "out")
    assert (ended.code, load["ending"]) == (0, "cost") and 0 < load["spent"] <= 0.10
    assert load["spent"] == pytest.approx(load["models"]["sim/open"]["spent"])
    rows = arrivals(provider)
    assert sum(100 * row["prompt_tokens"] + 400 * row["completion_tokens"] for row in rows) / 1e6 <= 0.10


def test_a_limit_on_cost_without_a_price_is_refused(provider: Provider, tmp_path: Path) -> None:
    ended = done(tmp_path, provider, "--rate", "60", "--max-cost", "0.10")
    assert ended.code == 2 and "has no price" in ended.err and provider.calls() == 0
    assert ended.err.count("\n") == 1 and not (tmp_path / "out/load.json").exists()


def test_a_server_that_fails_is_measured_and_that_is_no_failure_of_the_test(provider: Provider, tmp_path: Path) -> None:
    provider.set_faults("server_error,rate=0.5")
    ended = done(tmp_path, provider, "--rate", "60", "--calls", "100")
    own = load_of(tmp_path / "out")["models"]["sim/open"]
    assert ended.code == 0 and own["errors"].keys() == {"server_error"} and own["attempts"] == 100 == provider.calls()
    assert own["error_share"]["low"] < 0.5 < own["error_share"]["high"]
    assert "server_error" in ended.out


def test_a_server_that_is_down_is_measured_as_one(tmp_path: Path) -> None:
    ended = done(tmp_path, Provider(9), "--rate", "50", "--calls", "20")
    own = load_of(tmp_path / "out")["models"]["sim/open"]
    assert own["errors"] == {"connect": 20}
    sentence = "sim/open: nothing was measured: none of 20 calls was answered (connect 20)"
    assert ended.code == 3 and load_of(tmp_path / "out")["unmeasured"] == [sentence] and sentence in ended.out
    reported = run_command(tmp_path, "report", "out")
    assert reported.code == 3 and sentence in reported.out


def test_an_unwritable_folder_is_refused_before_anything_is_sent(provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    ended = done(tmp_path, provider, "--rate", "50", "--calls", "20")
    assert ended.code == 5 and "can't be written" in ended.err and provider.calls() == 0
    assert "Traceback" not in ended.err and not ended.out


def test_of_two_tests_in_one_folder_one_is_run(provider: Provider, tmp_path: Path) -> None:
    provider.set_faults("slow_body=0.1")
    both = [start(tmp_path, *command(provider, "--rate", "20", "--calls", "30")) for _ in range(2)]
    first, second = sorted((finish(process) for process in both), key=lambda ended: ended.code)
    assert first.code == 0 and second.code in (2, 5) and provider.calls() == 30, (first, second)
