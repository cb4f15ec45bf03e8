"""A run over a Ray cluster on this machine ends as one without it, also if workers die."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import Done, Provider, finish, start
from ray_runs import GRID, PROMPTS, TALKS, records_of, scores_of
from shared_server import SharedServer
from simulated_outside import Outside

pytest.importorskip("ray")
pytestmark = [pytest.mark.process, pytest.mark.long, pytest.mark.needs_benchmark("millstone"), pytest.mark.timeout(600)]

WORKERS = ("--ray", "local", "--workers", "2")


def grid(home: Path, name: str, provider: Provider, *more: str) -> Any:
    return start(home, *GRID, "--base-url", provider.base_url, "--cache", f"cache-{name}", "--out", name, *more)


def workers_under(pid: int) -> list[int]:
    """The processes that carry calls for a command: Ray's own processes lie between."""
    parents, titles = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(") ")[2].split()[1])
                titles[int(entry.name)] = (entry / "cmdline").read_bytes()
            except OSError:
                continue  # it has just ended

    def is_under(process: int) -> bool:
        return process == pid or (process in parents and is_under(parents[process]))

    return [each for each, title in titles.items() if title.startswith(b"ray::FleetWorker") and is_under(each)]


def test_a_run_over_workers_is_the_run_without_them(running_provider: Provider, tmp_path: Path) -> None:
    running_provider.reset()
    plain: Done = finish(grid(tmp_path, "plain", running_provider), 200)
    sent = running_provider.received()
    running_provider.reset()
    done = finish(grid(tmp_path, "ray", running_provider, *WORKERS), 400)
    assert (plain.code, done.code) == (0, 0), done.err
    assert "the Ray cluster local: 2 workers carry the calls (machines: 1)" in done.err
    assert records_of(tmp_path / "ray") == records_of(tmp_path / "plain")
    assert scores_of(tmp_path / "ray") == scores_of(tmp_path / "plain")
    assert running_provider.received() == sent


def test_workers_that_die_cost_what_they_had_in_flight_at_most(running_provider: Provider, tmp_path: Path) -> None:
    running_provider.reset()
    running = grid(tmp_path, "run", running_provider, *WORKERS, "--rpm", "3000", "--json")
    killed = 0
    lines = tmp_path / "run/records.jsonl"
    while running.poll() is None and killed < 3:
        written = lines.read_bytes().count(b"\n") if lines.exists() else 0
        if written > 150 * (killed + 1) and (workers := workers_under(running.pid)):
            os.kill(workers[0], signal.SIGKILL)
            killed += 1
        time.sleep(0.05)
    done = finish(running, 400)
    assert done.code == 0 and killed == 3, done.err
    assert json.loads(done.out)["exit_code"] == 0  # and nothing else is on stdout
    records = records_of(tmp_path / "run")
    assert len(records) == PROMPTS
    again = sum(running_provider.received().values()) - PROMPTS
    assert 0 <= again <= min(3 * 64, sum(record["maybe_billed"] for record in records.values()))


@pytest.mark.needs_benchmark("chameleon")
def test_conversations_over_workers_are_those_without_them(running_outside: Outside, tmp_path: Path) -> None:
    for name, more in (("plain", ()), ("ray", WORKERS)):
        command = (*TALKS, *running_outside.flags, "--cache", f"cache-{name}", "--out", name, *more)
        done = finish(start(tmp_path, *command, **running_outside.variables), 400)
        assert done.code == 0, done.err
    assert records_of(tmp_path / "ray") == records_of(tmp_path / "plain")
    assert scores_of(tmp_path / "ray") == scores_of(tmp_path / "plain")


def test_a_run_whose_driver_was_killed_is_finished_by_the_same_command(
    running_provider: Provider, tmp_path: Path
) -> None:
    running_provider.reset()
    lines = tmp_path / "run/records.jsonl"
    first = grid(tmp_path, "run", running_provider, *WORKERS, "--rpm", "3000", "--concurrency", "16")
    while first.poll() is None and not (lines.exists() and lines.read_bytes().count(b"\n") > 200):
        time.sleep(0.05)
    assert first.poll() is None
    first.kill()
    finish(first)
    second = finish(grid(tmp_path, "run", running_provider, *WORKERS, "--concurrency", "16"), 400)
    assert second.code == 0, second.err
    assert len(records_of(tmp_path / "run")) == PROMPTS
    assert sum(running_provider.received().values()) - PROMPTS <= 16


def test_workers_share_answers_and_quotas_on_a_server(running_provider: Provider, tmp_path: Path) -> None:
    running_provider.reset()
    with SharedServer(tmp_path / "server") as server:
        command = (*GRID, "--base-url", running_provider.base_url, "--cache", server.address, "--out", "run", *WORKERS)
        done = finish(start(tmp_path, *command), 400)
        answers = len(server.keys("millstream:1:*"))
    assert done.code == 0, done.err
    assert len(records_of(tmp_path / "run")) == PROMPTS == sum(running_provider.received().values())
    assert answers >= PROMPTS
    # What both workers remark is told once.
    assert done.err.count("writes nothing to its disk") == 1, done.err


def test_an_address_without_a_cluster_is_named_at_once(running_provider: Provider, tmp_path: Path) -> None:
    done = finish(grid(tmp_path, "run", running_provider, "--ray", "127.0.0.1:1"), 30)
    assert (done.code, done.out) == (5, "")
    assert "millstream: the Ray cluster 127.0.0.1:1 can't be used ([Errno 111] Connection refused)" in done.err
