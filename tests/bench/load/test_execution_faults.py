"""Load tests that end badly: killed at any instant, a full disk, a dead key, an empty account."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from command_line import Provider, finish, lines_of, run_command, simulated_provider, start
from places import small_disk
from torture import times

from millstream.engine.runs.journal import is_intact

PRICES = '[prices."sim/open"]\ninput = 100.0\noutput = 400.0\n'
KILLS = times(3, 250)
CAP = 0.8
# A line is written a tenth of a second after its call has ended, on a machine that has time for it.
WRITTEN_WITHIN_S = 0.25


def command(provider: Provider, *more: str, out: str = "out") -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", out)
    return ("load", "sim/open", *where, "--no-report", "--prompt-tokens", "20", "--max-tokens", "8", *more)


def arrivals(provider: Provider) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{provider.address}/sim/log", timeout=10) as answer:
        return [json.loads(line) for line in answer]


def cost_of(rows: list[dict[str, Any]]) -> float:
    """What the server could bill for every call that came to it."""
    return float(sum(100 * row["prompt_tokens"] + 400 * row["completion_tokens"] for row in rows)) / 1e6


@pytest.mark.timeout(60 + 6 * KILLS)
def test_killed_at_any_instant_a_test_has_cost_no_more_than_its_cap_and_lost_at_most_a_quarter_second(
    provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    chance, killed, missing = random.Random(KILLS), 0, 0
    for number in range(KILLS):
        provider.reset()
        provider.set_faults("slow_body=0.1")
        capped = ("--max-cost", str(CAP), "--config", "prices.toml", "--rate", "80", "--drain", "1s")
        process = start(tmp_path, *command(provider, *capped, out=f"out{number}"))
        try:
            provider.await_calls(chance.randrange(1, 12))
            process.wait(chance.uniform(0.0, 1.0))
        except subprocess.TimeoutExpired:
            killed += 1
        finally:
            os.kill(process.pid, signal.SIGKILL)
            finish(process)
        rows = arrivals(provider)
        assert rows and cost_of(rows) <= CAP
        path = tmp_path / f"out{number}/calls.jsonl"
        whole = path.read_bytes().split(b"\n")[:-1]
        assert all(is_intact(line, must_be_sealed=True) for line in whole)
        # The server's clock says when the last answer went out: what ended well before it is on disk.
        last = max((row["ended"] or 0.0) for row in rows)
        ended = sum(0 < (row["ended"] or 0.0) < last - WRITTEN_WITHIN_S and row["outcome"] == "whole" for row in rows)
        missing += len(whole) < ended
    assert killed >= KILLS // 2, "the tests ended before they could be killed"
    # A machine that many share may be late by more, but not as a rule.
    assert missing <= max(1, KILLS // 5)


def test_a_full_disk_ends_the_test_and_its_figures_are_shown(provider: Provider, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1_200_000) as disk:
        more = ("--rate", "300", "--duration", "60s", "--no-progress")
        ended = run_command(tmp_path, *command(provider, *more, out=str(disk / "out")))
        assert ended.code == 5, ended.err
        assert "can't be written (the disk is full)" in ended.err and "Traceback" not in ended.err
        assert "latency, ms" in ended.out and "sim/open" in ended.out
        lines = lines_of(disk / "out/calls.jsonl")
        load = json.loads((disk / "out/load.json").read_text())
    # The reserve took in what was in flight, and the figures.
    assert load["ending"] == "fault" and len(lines) == load["models"]["sim/open"]["begun"] == provider.calls()


def test_a_dead_key_ends_the_test_at_once_with_its_own_exit_code(tmp_path: Path) -> None:
    with simulated_provider(tmp_path) as provider:
        provider.set_faults("unauthorized")
        ended = run_command(tmp_path, *command(provider, "--rate", "50", "--duration", "60s"))
        assert ended.code == 4 and "Traceback" not in ended.err
        load = json.loads((tmp_path / "out/load.json").read_text())
        assert load["ending"] == "stopped" and "refuses" in load["ending_detail"] and "refuses" in ended.out
        assert provider.calls() <= 20


def test_an_empty_account_ends_the_test_and_what_was_measured_stands(provider: Provider, tmp_path: Path) -> None:
    provider.set_faults("insufficient_quota,at=31-1000")
    ended = run_command(tmp_path, *command(provider, "--rate", "50", "--duration", "60s"))
    load = json.loads((tmp_path / "out/load.json").read_text())
    assert ended.code == 4 and load["ending"] == "stopped"
    assert load["models"]["sim/open"]["answered"] >= 25 and "latency, ms" in ended.out


def test_a_cache_folder_that_can_not_be_used_is_refused_before_anything_is_sent(
    provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file")
    ended = run_command(tmp_path, *command(provider, "--rate", "50", "--calls", "5"))
    assert ended.code == 5 and provider.calls() == 0 and "Traceback" not in ended.err
    # Nothing was measured, so nothing stands in the way of the same command.
    (tmp_path / "cache").unlink()
    again = run_command(tmp_path, *command(provider, "--rate", "50", "--calls", "5"))
    assert again.code == 0 and provider.calls() == 5, again.err


def test_a_lane_whose_files_can_not_be_used_ends_the_test_with_its_figures_written(
    provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/lanes").write_text("a file")
    ended = run_command(tmp_path, *command(provider, "--rate", "50", "--calls", "5"))
    assert ended.code == 5 and provider.calls() == 0 and "Traceback" not in ended.err
    assert "lanes can't be written" in ended.err and "lanes can't be written" in ended.out
    load = json.loads((tmp_path / "out/load.json").read_text())
    own = load["models"]["sim/open"]
    assert load["ending"] == "fault" and (own["calls"], own["errors"]) == (0, {})
    assert own["begun"] == len(lines_of(tmp_path / "out/calls.jsonl"))


def test_what_a_server_says_is_inert_in_the_terminal(provider: Provider, tmp_path: Path) -> None:
    """The name of the model comes back in what the server says of it, whatever stands in it."""
    ended = run_command(tmp_path, "load", "sim/\x1b[31mred\x07", *command(provider, "--rate", "60")[2:])
    assert "\x1b" not in ended.out + ended.err and "\x07" not in ended.out + ended.err
