"""Inspect with its own provider for OpenAI and lm-eval's own `local-chat-completions`: led to the gateway by an
address, they end as without it, ask for as many samples, and under another run's name send nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import environment
from served import TOKEN, Served

pytestmark = pytest.mark.long

SCRIPT = Path(__file__).parents[1] / "support" / "gateway_runs.py"
SAMPLES, EPOCHS = 6, 5


@pytest.fixture(scope="module")
def told(gateway: Served, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("harnesses")
    command = [sys.executable, str(SCRIPT), str(folder), gateway.provider.address, gateway.origin]
    variables = environment(folder, OPENAI_API_KEY=TOKEN)
    done = subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def ended(run: Any) -> Any:
    """But for the way that its calls went."""
    return {name: value for name, value in run.items() if name != "sent"}


def test_an_evaluation_of_inspects_ends_with_the_samples_and_scores_that_it_has_without_us(told: Any) -> None:
    runs = told["inspect"]
    own = runs["own"]
    assert own["status"] == "success" and len(own["samples"]) == SAMPLES * EPOCHS
    assert {sample["stop"] for sample in own["samples"]} == {"stop"}
    for name in ("first", "again", "same run", "responses"):
        assert ended(runs[name]) == ended(own), name


def test_epochs_are_samples_of_their_own(told: Any) -> None:
    # Two of the six ask the same.
    sent = told["inspect"]["first"]["sent"]
    assert sent == told["inspect"]["own"]["sent"] == [EPOCHS] * (SAMPLES - 2) + [2 * EPOCHS]


def test_an_evaluation_under_another_runs_name_sends_nothing_and_in_the_same_run_asks_for_new_samples(
    told: Any,
) -> None:
    assert told["inspect"]["again"]["sent"] == []
    assert told["inspect"]["same run"]["sent"] == told["inspect"]["own"]["sent"]


@pytest.mark.parametrize("task", ["letters", "repeated"])
def test_a_task_of_lm_evals_ends_with_the_samples_and_scores_that_it_has_without_us(told: Any, task: str) -> None:
    runs = told[task]
    assert runs["own"]["scores"] and len(runs["own"]["samples"]) == SAMPLES
    assert ended(runs["first"]) == ended(runs["again"]) == ended(runs["own"])


@pytest.mark.parametrize(("task", "each"), [("letters", 1), ("repeated", 5)])
def test_a_task_is_sent_as_without_us_and_under_another_runs_name_not_at_all(told: Any, task: str, each: int) -> None:
    runs = told[task]
    assert runs["first"]["sent"] == runs["own"]["sent"] == [each] * (SAMPLES - 2) + [2 * each]
    assert runs["again"]["sent"] == []
