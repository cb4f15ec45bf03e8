"""Evaluations of Inspect's, without us and through us, against the simulated provider that counts every prompt."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Provider, environment, simulated_provider
from served_gateway import served_gateway

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "tests" / "support" / "inspect_runs.py"
RUNS = (
    *(
        "plain",
        "over_gateway",
        "tools",
        "choices",
        "retried",
        "graded",
        "cached_by_inspect",
        "unknown_model",
        "filtered",
        "cancelled",
    ),
    *("stopped", "unopened", "connections", "refused"),
)
SAMPLES, EPOCHS = 6, 5
TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset
from inspect_ai.scorer import match
from inspect_ai.solver import generate

@task
def letters():
    return Task(dataset=json_dataset("letters.jsonl"), solver=generate(), scorer=match(location="any"), epochs=5)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("inspect")


@pytest.fixture(scope="module")
def sim(folder: Path) -> Iterator[Provider]:
    with simulated_provider(folder) as running:
        yield running


@pytest.fixture(scope="module")
def told(folder: Path, sim: Provider) -> Any:
    """All evaluations, run once: importing Inspect takes seconds."""
    command = [sys.executable, "-P", str(SCRIPT), str(folder), sim.address, *RUNS]
    with served_gateway(folder, sim) as gateway:
        variables = environment(folder, GATEWAY=gateway)
        done = subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def shown(run: Any) -> Any:
    """What an evaluation ends with, but for how we made its calls."""
    return run["status"], run["results"], [{**sample, "made": None} for sample in run["samples"]]


def keys_of(run: Any) -> list[str]:
    return [call["key"] for sample in run["samples"] for call in sample["made"]]


def test_an_evaluation_through_us_ends_with_the_samples_and_scores_that_it_has_without_us(told: Any) -> None:
    own, ours = told["plain"]["own"], told["plain"]["ours"]
    assert len(own["samples"]) == SAMPLES * EPOCHS
    assert len({sample["scores"]["match"] for sample in own["samples"]}) == 2
    assert shown(ours) == shown(own)


def test_every_sample_of_every_epoch_is_sent_once(told: Any) -> None:
    # Two of the six samples ask the same.
    assert told["plain"]["ours"]["sent"] == told["plain"]["own"]["sent"] == [EPOCHS] * (SAMPLES - 2) + [2 * EPOCHS]


def test_five_epochs_are_five_samples_and_so_are_two_that_ask_the_same(told: Any) -> None:
    assert len(set(keys_of(told["plain"]["ours"]))) == SAMPLES * EPOCHS
    first = [sample["made"][0]["trial"] for sample in told["plain"]["ours"]["samples"] if sample["at"][0] == 2]
    assert first == [0, 1, 2, 3, 4]


def test_the_same_evaluation_again_sends_nothing_and_ends_alike(told: Any) -> None:
    assert told["plain"]["again"]["sent"] == []
    assert shown(told["plain"]["again"]) == shown(told["plain"]["ours"])
    assert all(call["cached"] for sample in told["plain"]["again"]["samples"] for call in sample["made"])


def test_inspects_own_provider_has_the_same_through_the_gateway(told: Any) -> None:
    first, again = told["over_gateway"]["monday"], told["over_gateway"]["tuesday"]
    assert shown(first) == shown(told["plain"]["own"])
    assert (first["sent"], again["sent"]) == (told["plain"]["own"]["sent"], [])
    assert shown(again) == shown(first)


def test_a_solver_that_uses_a_tool_goes_the_same_way_through_us(told: Any) -> None:
    own, ours, again = (told["tools"][name] for name in ("own", "ours", "again"))
    assert [sample["tools"] for sample in own["samples"]] != [[]] * len(own["samples"])
    assert shown(ours) == shown(own)
    assert (ours["sent"], again["sent"]) == (own["sent"], [])
    assert shown(again) == shown(ours)


def test_several_choices_are_several_samples(told: Any) -> None:
    first, again = told["choices"]["first"], told["choices"]["again"]
    assert (first["sent"], again["sent"]) == ([3], [])
    assert len(set(keys_of(first))) == len(first["samples"][0]["said"]) == 3


def test_a_sample_that_is_begun_anew_sends_nothing_that_was_answered(told: Any) -> None:
    assert told["retried"]["status"] == "success"
    assert told["retried"]["sent"] == [1, 1]


def test_a_grader_that_asks_the_same_of_every_sample_is_asked_as_often(told: Any) -> None:
    assert told["graded"]["first"]["sent"] == [2, 2, 2, 6]
    assert told["graded"]["again"]["sent"] == []


def test_inspects_own_cache_still_stands_before_ours(told: Any) -> None:
    assert (told["cached_by_inspect"]["first"]["sent"], told["cached_by_inspect"]["again"]["sent"]) == ([1], [])


def test_a_failure_ends_the_evaluation_with_one_line_and_is_not_tried_again(told: Any) -> None:
    run = told["unknown_model"]
    assert (run["status"], run["sent"]) == ("error", [1])
    assert run["error"].startswith("openai/nobody: rejected: 404: The model `nobody` does not exist")


def test_a_dead_key_is_told_by_every_sample_and_tried_by_few(told: Any) -> None:
    run = told["stopped"]
    assert len(run["samples"]) == 50
    assert sum(run["sent"]) <= 4
    assert run["errors"] != [] and all("401" in line and "\n" not in line for line in run["errors"])


def test_a_cache_that_can_not_be_opened_is_told_in_one_line(told: Any) -> None:
    run = told["unopened"]
    assert (run["status"], run["sent"]) == ("error", [])
    assert "no-folder" in run["error"] and "\n" not in run["error"]


def test_a_content_filter_is_an_answer(told: Any) -> None:
    run = told["filtered"]
    assert (run["status"], run["samples"][0]["stop"], run["sent"]) == ("success", "content_filter", [1])


def test_calls_that_nobody_waits_for_are_hung_up_and_leave_their_slots_and_numbers(told: Any) -> None:
    run = told["cancelled"]
    assert set(run["outcomes"]) == {"hung_up"}
    assert run["after"].startswith("This is a simulated answer")
    assert run["made"]["millstream"][0]["trial"] == 0


def test_inspect_may_have_as_many_calls_out_as_the_lane(told: Any) -> None:
    assert told["connections"] == 77


def test_wrong_arguments_are_told_in_one_line_each(told: Any) -> None:
    assert told["refused"]["argument"].startswith(
        "PrerequisiteError: millstream/openai/steady: millstream takes no argument rpn (nearest: rpm); it takes "
    )
    assert "takes no api_key: put the key into its provider's variable" in told["refused"]["key"]
    assert "canary" not in told["refused"]["key"]
    assert "nowhere.toml" in told["refused"]["file"]
    assert not any("\n" in line for line in told["refused"].values())


def test_inspects_command_line_finds_us_by_our_entry_point(tmp_path: Path, sim: Provider) -> None:
    """As an installed package tells of itself."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    metadata = tmp_path / "site" / "millstream-0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: millstream\nVersion: 0\n")
    listed = "\n".join(f"{name} = {where}" for name, where in groups["inspect_ai"].items())
    (metadata / "entry_points.txt").write_text(f"[inspect_ai]\n{listed}\n")
    (tmp_path / "letters.py").write_text(TASK)
    rows = [json.dumps({"input": f"letter {number}", "target": "simulated"}) for number in range(3)]
    (tmp_path / "letters.jsonl").write_text("\n".join(rows))
    sim.reset()
    command = [sys.executable, "-P", "-m", "inspect_ai", "eval", "letters.py", "--model", "millstream/openai/steady"]
    command += ["--model-base-url", sim.base_url, "-M", "cache=kept", "-M", "rpm=60000", "--log-format", "json"]
    command += ["--display", "none"]
    variables = environment(tmp_path, OPENAI_API_KEY="sk-sim")
    variables["PYTHONPATH"] += f":{metadata.parent}"
    done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    [log] = (tmp_path / "logs").glob("*.json")
    assert json.loads(log.read_text())["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 1.0
    assert sorted(sim.received().values()) == [EPOCHS] * 3
    assert (tmp_path / "kept").is_dir()
