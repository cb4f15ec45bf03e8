"""Tasks of lm-eval's, without us and through us, against the simulated provider that counts every prompt."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Provider, environment, simulated_provider
from lm_eval_runs import DOCS, offline, write_tasks
from served_gateway import served_gateway

pytestmark = pytest.mark.long

SCRIPT = Path(__file__).parents[3] / "tests" / "support" / "lm_eval_runs.py"
RUNS = (
    *("letters", "repeated", "over_gateway", "choices", "perplexity"),
    *("failing", "spending", "weighed_by_chat", "conversation_for_completions"),
)
MODULE = "millstream.interfaces.plugins.lm_eval"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lm-eval")


@pytest.fixture(scope="module")
def sim(folder: Path) -> Iterator[Provider]:
    with simulated_provider(folder) as running:
        yield running


@pytest.fixture(scope="module")
def told(folder: Path, sim: Provider) -> Any:
    """All tasks, run once: importing lm-eval takes seconds."""
    command = [sys.executable, "-P", str(SCRIPT), str(folder), sim.address, *RUNS]
    with served_gateway(folder, sim) as gateway:
        variables = environment(folder, GATEWAY=gateway)
        done = subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("task", ["letters", "repeated", "choices", "perplexity"])
def test_a_task_through_us_ends_with_the_samples_and_scores_that_it_has_without_us(told: Any, task: str) -> None:
    own, ours = told[task]["own"], told[task]["ours"]
    assert len(own["samples"]) == DOCS
    assert own["scores"] and all(score != 0 or name.startswith("acc_norm") for name, score in own["scores"].items())
    assert (ours["scores"], ours["samples"]) == (own["scores"], own["samples"])


@pytest.mark.parametrize("task", ["letters", "repeated", "choices", "perplexity"])
def test_the_same_task_again_sends_nothing_and_ends_alike(told: Any, task: str) -> None:
    ours, again = told[task]["ours"], told[task]["again"]
    assert (again["scores"], again["samples"], again["sent"]) == (ours["scores"], ours["samples"], [])


def test_lm_evals_own_model_has_the_same_through_the_gateway(told: Any) -> None:
    own, first, again = told["repeated"]["own"], told["over_gateway"]["monday"], told["over_gateway"]["tuesday"]
    assert (first["scores"], first["samples"], first["sent"]) == (own["scores"], own["samples"], own["sent"])
    assert (again["scores"], again["samples"], again["sent"]) == (own["scores"], own["samples"], [])


def test_every_request_is_sent_once_and_a_repeat_is_another_sample(told: Any) -> None:
    # Two of the six documents ask the same.
    assert told["letters"]["ours"]["sent"] == told["letters"]["own"]["sent"] == [1, 1, 1, 1, 2]
    assert told["repeated"]["ours"]["sent"] == told["repeated"]["own"]["sent"] == [5, 5, 5, 5, 10]


def test_a_weight_is_no_sample_and_is_asked_for_once(told: Any) -> None:
    assert told["perplexity"]["ours"]["sent"] == [1] * (DOCS - 1)
    assert told["choices"]["ours"]["sent"] == [1] * 3 * (DOCS - 1)


def test_likely_and_unlikely_choices_are_told_apart(told: Any) -> None:
    greedy = {said[0][1] for _, answers, _ in told["choices"]["ours"]["samples"] for said in answers}
    assert greedy == {True, False}


def test_a_bare_prompt_is_the_same_question_as_a_conversation_of_one_turn(told: Any) -> None:
    assert told["letters"]["bare"]["sent"] == []
    assert told["letters"]["bare"]["samples"] == told["letters"]["ours"]["samples"]


def test_failures_leave_no_result_and_are_all_that_is_sent_again(told: Any) -> None:
    run = told["failing"]
    assert run["line"] == (
        "3 of 6 requests to openai/steady failed, the first with rejected: 400: This request can't be served (400); "
        "run the same command again: what was answered is kept, and not sent again"
    )
    assert sum(run["sent"]) == 3
    assert len(run["samples"]) == DOCS


def test_a_budget_is_one_for_all_that_a_model_is_asked(told: Any) -> None:
    first, second = told["spending"]
    assert first == "6 answers"
    assert "max-cost" in second


def test_what_a_provider_has_not_is_told_in_one_line(told: Any) -> None:
    assert told["weighed_by_chat"].startswith(
        "openai/open tells no log-likelihoods of texts: expected a provider of kind openai-completions (vLLM, "
    )
    assert told["conversation_for_completions"] == (
        "openai-completions/open takes bare texts, no conversations: leave out --apply_chat_template"
    )


def _command(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", MODULE, *arguments]
    variables = environment(home, **offline(home))
    return subprocess.run(command, env=variables, cwd=home, capture_output=True, text=True, timeout=110)


def test_lm_evals_own_command_line_is_taken_unchanged(tmp_path: Path, sim: Provider) -> None:
    write_tasks(tmp_path)
    sim.reset()
    model = f"model=openai/open,base_url={sim.base_url},cache=kept,rpm=60000"
    done = _command(
        tmp_path,
        *("--model", "millstream", "--model_args", model, "--tasks", "letters", "--include_path", str(tmp_path)),
        *("--apply_chat_template", "--log_samples", "--output_path", "out", "--limit", "3"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "exact_match" in done.stdout
    assert sorted(sim.received().values()) == [1, 1, 1]
    [samples] = (tmp_path / "out").rglob("samples_letters_*.jsonl")
    assert len(samples.read_text().splitlines()) == 3


def test_what_a_person_can_mend_is_one_line_and_an_exit_code(tmp_path: Path, sim: Provider) -> None:
    write_tasks(tmp_path)
    done = _command(
        tmp_path,
        *("--model", "millstream", "--model_args", f"model=openai/open,base_url={sim.base_url},rpn=5"),
        *("--tasks", "letters", "--include_path", str(tmp_path)),
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(
        "millstream-lm-eval: millstream takes no argument rpn (nearest: rpm)"
    )
    assert "Traceback" not in done.stderr
