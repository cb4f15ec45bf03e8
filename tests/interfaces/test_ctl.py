"""A run that goes on in another process is steered: by its owner alone, and never beyond what it promised."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from command_line import Done, Provider, finish, ids_of, run_command, start

from millstream.engine.runs.live import LIVE, LiveFolder, NotSteered, state_of, steer

pytestmark = pytest.mark.needs_benchmark("millstone")

PROMPTS = 2 * 11 * 12
DOLLARS = 20.0
PRICES = f'[prices."sim/open"]\ninput = {DOLLARS}\noutput = {DOLLARS}\n'
SLOW = "slow_body=0.15"


def command(provider: Provider, *more: str) -> tuple[str, ...]:
    size = ("--limit", "1", "--templates", "2", "--trials", "12", "--max-tokens", "16")
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "run", "--no-report", "--no-progress")
    return ("run", "millstone", "--model", "sim/open", *size, *where, "--concurrency", "2", "--json", *more)


def ctl(home: Path, *words: str) -> Done:
    return run_command(home, "ctl", "run", *words)


def until(is_reached: Callable[[], bool], within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not is_reached():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)


@pytest.fixture
def home(provider: Provider, tmp_path: Path) -> Path:
    provider.set_faults(SLOW)
    (tmp_path / "prices.toml").write_text(PRICES)
    return tmp_path


def begun(home: Path, provider: Provider, *more: str, is_paused: bool = False) -> subprocess.Popen[str]:
    """A run that has sent its first calls; paused if what it does meanwhile must not matter."""
    process = start(home, *command(provider, *more))
    provider.await_calls(3)
    until(lambda: state_of(home / "run") is not None)
    if is_paused:
        steer(home / "run", {"action": "pause"})
        until(lambda: (state_of(home / "run") or {})["in_flight"] == 0)
    return process


def manifest(home: Path) -> Any:
    return json.loads((home / "run" / "manifest.json").read_text())


def test_a_paused_run_sends_nothing_until_it_is_resumed_and_then_ends_whole(provider: Provider, home: Path) -> None:
    process = begun(home, provider)
    paused = ctl(home, "pause", "--json")
    assert paused.code == 0, paused.err
    state = json.loads(paused.out)
    # As it is after the change, not as it was seen last.
    assert (state["state"], state["left_s"], state["waits"]) == ("paused", None, [])
    assert "| paused" in state["line"] and "left" not in state["line"]
    until(lambda: (state_of(home / "run") or {})["in_flight"] == 0)
    before = provider.calls()
    time.sleep(0.8)
    assert provider.calls() == before < PROMPTS and process.poll() is None
    assert "| paused" in (state_of(home / "run") or {})["line"]
    provider.set_faults()
    assert json.loads(ctl(home, "resume", "--json").out)["state"] == "running"
    assert "paused" not in (state_of(home / "run") or {"line": ""})["line"]
    assert finish(process).code == 0
    assert provider.calls() == len(set(ids_of(home / "run"))) == PROMPTS
    assert [each["action"] for each in manifest(home)["steered"]] == ["pause", "resume"]
    assert not (home / "run" / LIVE).exists()


def test_calls_in_flight_follow_the_new_number_up_and_down(provider: Provider, home: Path) -> None:
    process = begun(home, provider)
    assert manifest(home)["in_flight_max"] == 2
    provider.set_faults("slow_body=0.5")
    widened = json.loads(ctl(home, "set", "--concurrency", "9", "--json").out)
    assert widened["concurrency"] == 9 == widened["lanes"][0]["concurrency"]
    # A kill may find so many in flight from now on.
    assert manifest(home)["in_flight_max"] == 9
    until(lambda: (state_of(home / "run") or {})["in_flight"] > 6)
    done = ctl(home, "set", "--concurrency", "1")
    assert "1 in flight" in done.out
    until(lambda: (state_of(home / "run") or {"in_flight": 9})["in_flight"] <= 1)
    provider.set_faults()
    assert finish(process).code == 0
    assert provider.calls() == len(set(ids_of(home / "run"))) == PROMPTS


def test_a_stopped_run_finishes_its_calls_and_can_be_resumed(provider: Provider, home: Path) -> None:
    process = begun(home, provider)
    assert json.loads(ctl(home, "stop", "--json").out)["state"] in ("ending", "ended")
    done = finish(process)
    (run,) = json.loads(done.out)["runs"]
    assert done.code == 4 and 0 < run["answered"] < PROMPTS
    assert "ended by `millstream ctl" in run["stops"][0]["detail"]
    # Drained: whatever was sent is on disk.
    assert provider.calls() == run["answered"] == len(ids_of(home / "run"))
    provider.set_faults()
    assert run_command(home, "resume", "run", "--no-report", "--no-progress").code == 0
    assert provider.calls() == len(set(ids_of(home / "run"))) == PROMPTS


def test_a_lower_limit_counts_what_is_reserved_and_holds(provider: Provider, home: Path) -> None:
    process = begun(home, provider, "--max-cost", "5", "--config", "prices.toml")
    refused = ctl(home, "set", "--max-cost", "0.0001")
    assert refused.code == 2 and refused.err.count("\n") == 1
    reserved = re.search(r"\$([\d.]+) reserved for calls in flight", refused.err)
    assert reserved is not None and float(reserved[1]) > 0
    assert ctl(home, "pause").code == 0
    until(lambda: (state_of(home / "run") or {})["in_flight"] == 0)
    found = re.search(r"the lowest --max-cost is \$([\d.]+)", ctl(home, "set", "--max-cost", "0.0001").err)
    assert found is not None
    limit = round(float(found[1]) + 0.03, 4)
    assert json.loads(ctl(home, "set", "--max-cost", str(limit), "--json").out)["max_cost"] == limit
    provider.set_faults()
    assert ctl(home, "resume").code == 0
    done = finish(process)
    (run,) = json.loads(done.out)["runs"]
    assert done.code == 4 and run["stops"][0]["reason"] == "budget", done.err
    billed = float(provider.summary()["tokens_admitted"]) * DOLLARS / 1e6
    assert 0 < billed <= run["money"]["at_most"] <= run["money"]["max_cost"] == limit
    # The limit that was set last is that of `resume`, and a higher one lets it go on.
    assert run_command(home, "resume", "run", "--no-report", "--no-progress").code == 4
    assert run_command(home, "resume", "run", "--max-cost", "5", "--no-report", "--no-progress").code == 0


def test_a_higher_limit_lets_a_run_spend_more(provider: Provider, home: Path) -> None:
    process = begun(home, provider, "--max-cost", "0.5", "--config", "prices.toml", is_paused=True)
    assert ctl(home, "set", "--max-cost", "5").code == 0
    provider.set_faults()
    assert ctl(home, "resume").code == 0
    assert finish(process).code == 0
    assert float(provider.summary()["tokens_admitted"]) * DOLLARS / 1e6 > 0.5


def test_a_run_that_began_without_a_limit_gets_none(provider: Provider, home: Path) -> None:
    process = begun(home, provider)
    refused = ctl(home, "set", "--max-cost", "5")
    assert refused.code == 2 and "began without --max-cost" in refused.err
    for words in (("set",), ("pause", "--concurrency", "3")):
        refused = ctl(home, *words)
        assert refused.code == 2 and "set needs --concurrency or --max-cost" in refused.err
    assert ctl(home, "stop").code == 0
    assert finish(process).code == 4 and "max_cost" not in manifest(home).get("steered", [{}])[0]


def test_what_is_not_running_is_one_line_and_code_2(provider: Provider, home: Path) -> None:
    provider.set_faults()
    assert run_command(home, *command(provider)).code == 0
    refused = ctl(home, "pause")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "not sending anything" in refused.err
    assert run_command(home, "ctl", "nowhere", "pause").code == 2
    assert run_command(home, "ctl", "run", "set").code == 2
    assert run_command(home, "ctl", "run", "pause", "--concurrency", "3").code == 2


def test_what_a_killed_run_was_asked_is_not_done_by_the_next(provider: Provider, home: Path) -> None:
    process = begun(home, provider)
    process.send_signal(signal.SIGSTOP)
    asked = ThreadPoolExecutor().submit(steer, home / "run", {"action": "stop"})
    until(lambda: any(name.endswith(".request") for name in os.listdir(home / "run" / LIVE)))
    os.kill(process.pid, signal.SIGKILL)
    finish(process)
    provider.set_faults()
    done = run_command(home, *command(provider))
    assert done.code == 0, done.err
    with pytest.raises(NotSteered, match="not sending anything"):
        asked.result(40)
    assert "steered" not in manifest(home)


def test_several_who_ask_at_once_are_all_answered(provider: Provider, home: Path) -> None:
    process = begun(home, provider, is_paused=True)
    with ThreadPoolExecutor(8) as pool:
        wanted = [{"action": "set", "concurrency": number} for number in range(1, 9)]
        states = list(pool.map(lambda each: steer(home / "run", each), wanted))
    assert len(states) == 8
    noted = [each["concurrency"] for each in manifest(home)["steered"] if each["action"] == "set"]
    assert sorted(noted) == list(range(1, 9)) and (state_of(home / "run") or {})["concurrency"] == noted[-1]
    provider.set_faults()
    assert ctl(home, "resume").code == 0
    assert finish(process).code == 0


def test_requests_that_are_none_are_refused(provider: Provider, home: Path) -> None:
    process = begun(home, provider)
    odd: tuple[Any, ...] = (None, [], {"action": "explode"}, {"action": "set", "concurrency": 0}, {"action": 1})
    for each in odd:
        with pytest.raises(NotSteered):
            steer(home / "run", each)
    assert "steered" not in manifest(home)
    provider.set_faults()
    assert finish(process).code == 0


def test_a_link_in_the_place_of_the_live_folder_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("kept")
    (tmp_path / LIVE).symlink_to(elsewhere)
    folder = LiveFolder(tmp_path)
    folder.tell({"state": "running"})
    folder.close()
    assert [path.name for path in elsewhere.iterdir()] == ["kept"]


def test_what_stands_in_the_place_of_requests_holds_none_up_and_is_gone_at_the_end(tmp_path: Path) -> None:
    folder = LiveFolder(tmp_path)
    live = tmp_path / LIVE
    (live / "0.request").mkdir()
    (live / "0.request/inside").write_text("")
    (live / "1.request").symlink_to(tmp_path / "nowhere")
    os.mkfifo(live / "2.request")
    (live / os.fsdecode(b"\xff.request")).write_text('{"action": "stop"}')
    (live / "3.request").write_text('{"action": "pause"}')
    assert list(folder.requests()) == [("1", None), ("2", None), ("3", {"action": "pause"})]
    assert list(folder.requests()) == []
    folder.close()
    assert not live.exists()


def test_a_request_to_a_killed_run_is_not_carried_out_by_the_next_beside_a_folder(tmp_path: Path) -> None:
    LiveFolder(tmp_path)
    for name in ("0.request", "2.request"):
        (tmp_path / LIVE / name).mkdir()
    (tmp_path / LIVE / "1.request").write_text('{"action": "stop"}')
    assert list(LiveFolder(tmp_path).requests()) == []
