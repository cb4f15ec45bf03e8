"""On two nodes of a Ray cluster, a grid, conversations, a task and a load test end as without Ray."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import finish, start
from ray_nodes import RayNodes
from ray_runs import GRID, PROMPTS, TALKS, records_of, scores_of
from simulated_outside import Outside

pytest.importorskip("ray")
pytestmark = [pytest.mark.process, pytest.mark.long, pytest.mark.timeout(900)]

TASK = """
import millstream as ms

def score(answer, row):
    return float(row["capital"] in answer.text)

capitals = ms.Task(
    data=[{"country": "Chile", "capital": "Santiago"}, {"country": "Peru", "capital": "Lima"}] * 20,
    prompt="What is the capital of {country}? Answer in one word.",
    score=score,
    trials=3,
)
"""


@pytest.fixture(scope="module")
def nodes(running_outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayNodes]:
    with RayNodes(tmp_path_factory.mktemp("nodes"), **running_outside.variables) as running:
        yield running


def ended(home: Path, nodes: RayNodes, outside: Outside, command: tuple[str, ...]) -> tuple[Any, ...]:
    """Both runs' folders, and how often each prompt came in each."""
    counts, variables = [], outside.variables
    for name in ("plain", "ray"):
        outside.reset()
        more = (*nodes.flags, "--workers", "3") if name == "ray" else ()
        where = ("--cache", f"cache-{name}", "--out", name, "--no-progress")
        done = finish(start(home, *command, *where, *more, **variables, **nodes.variables), 600)
        assert done.code == 0, done.err
        counts.append(outside.provider.received())
    assert "3 workers carry the calls" in done.err
    assert (home / "cache-ray").is_dir() and not (nodes.home / "cache-ray").exists()
    return home / "plain", home / "ray", *counts


@pytest.mark.needs_benchmark("millstone")
def test_a_grid_on_two_nodes_is_the_grid_without_them(nodes: RayNodes, outside: Outside, tmp_path: Path) -> None:
    command = (*GRID, "--base-url", outside.provider.base_url)
    plain, carried, sent, again = ended(tmp_path, nodes, outside, command)
    assert records_of(carried) == records_of(plain)
    assert scores_of(carried) == scores_of(plain)
    assert again == sent and sum(sent.values()) == PROMPTS


@pytest.mark.needs_benchmark("chameleon")
def test_conversations_on_two_nodes_are_those_without_them(nodes: RayNodes, outside: Outside, tmp_path: Path) -> None:
    plain, carried, sent, again = ended(tmp_path, nodes, outside, (*TALKS, *outside.flags))
    assert records_of(carried) == records_of(plain)
    assert scores_of(carried) == scores_of(plain)
    assert again == sent


def test_a_task_on_two_nodes_is_the_task_without_them(nodes: RayNodes, outside: Outside, tmp_path: Path) -> None:
    (tmp_path / "capitals.py").write_text(TASK)
    command = ("run", "capitals.py", "--model", "sim/scholar", "sim/pupil", "--base-url", outside.provider.base_url)
    plain, carried, sent, again = ended(tmp_path, nodes, outside, (*command, "--no-report"))
    assert records_of(carried) == records_of(plain)
    assert scores_of(carried) == scores_of(plain)
    assert again == sent and sum(sent.values()) > 0


def test_a_worker_that_dies_while_it_starts_is_started_again(nodes: RayNodes, outside: Outside, tmp_path: Path) -> None:
    (tmp_path / "capitals.py").write_text(TASK)
    command = ("run", "capitals.py", "--model", "sim/pupil", "--base-url", outside.provider.base_url, "--no-report")
    fleet = (*nodes.flags, "--workers", "1", "--cache", "cache", "--out", "run")
    running = start(tmp_path, *command, *fleet, **nodes.variables)
    while not (workers := nodes.workers()) and running.poll() is None:
        time.sleep(0.01)
    os.kill(workers[0], signal.SIGKILL)
    done = finish(running, 400)
    assert done.code == 0 and len(records_of(tmp_path / "run")) == 120, done.err
    assert "did not start" not in done.err


def test_a_load_test_from_two_nodes_sends_its_calls_from_both(
    nodes: RayNodes, outside: Outside, tmp_path: Path
) -> None:
    outside.reset()
    what = ("--rate", "10", "--duration", "15s", "--prompt-tokens", "20", "--max-tokens", "8")
    where = ("--base-url", outside.provider.base_url, "--cache", "cache", "--out", "test", "--no-report")
    running = start(tmp_path, "load", "sim/pupil", *what, *where, *nodes.flags, "--workers", "4", **nodes.variables)
    most = [0, 0]
    while running.poll() is None:
        most = [max(before, len(node.workers())) for before, node in zip(most, (nodes.head, nodes.other), strict=True)]
        time.sleep(0.2)
    done = finish(running, 400)
    assert done.code == 0, done.err
    assert min(most) > 0 and sum(most) == 4
    load = json.loads((tmp_path / "test/load.json").read_text())
    (model,) = load["models"].values()
    assert model["begun"] == model["answered"] == sum(outside.provider.received().values()) > 100
    workers = load["client"]["workers"]
    assert len(workers) == 4 and sum(worker["calls"] for worker in workers) == model["begun"]
    assert all(abs(worker["clock_offset_s"]) <= worker["clock_error_s"] for worker in workers)
