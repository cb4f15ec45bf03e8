"""Lanes that no model matches are named by every way of asking: plan, run, a sweep, load, batch, a program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import CommandLine, Provider, environment

import millstream as ms
from millstream.configuration.configuration import configuration_of, settings_for
from millstream.configuration.documents import Document
from millstream.configuration.options import SendingOptions
from millstream.wiring import ConfigurationError
from millstream.wiring.lane_names import unused_lanes

LANES = '[lanes."{}"]\nrpm = 600\n'
TASK = 'import millstream as ms\n\nsums = ms.Task(data=[{"q": "1 + 1"}], prompt="{q}", score=ms.regex("2|answer"))\n'
TYPO = "the lane sim/opne is not used: no model of this name is asked (nearest: sim/open)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    # A lane of a provider that is not asked belongs to another run.
    names = ("sim/opne", "anthropic/claude-sonnet-4", "web/*", "search/brave")
    (tmp_path / "lanes.toml").write_text("".join(map(LANES.format, names)))
    (tmp_path / "sums.py").write_text(TASK)
    return tmp_path


def unused(folder: Path, names: tuple[str, ...], *runs: tuple[str, ...]) -> list[str]:
    """Returns what is said of declared lanes beside runs that ask these models."""
    path = folder / "some.toml"
    path.write_text("".join(map(LANES.format, names)))
    found = configuration_of(Document(path))
    return unused_lanes([settings_for(models, SendingOptions(), found) for models in runs])


def test_plan_run_and_load_name_a_lane_that_no_model_matches(
    cli: CommandLine, provider: Provider, folder: Path
) -> None:
    where = ("--model", "sim/open", "--base-url", provider.base_url, "--config", "lanes.toml", "--cache", "cache")
    assert cli("plan", "sums.py", *where).err == f"millstream: {TYPO}\n"
    done = cli("run", "sums.py", *where, "--out", "run", "--no-report", "--no-progress")
    assert done.code == 0 and done.err == f"millstream: {TYPO}\n"
    load = cli("load", "sim/open", "--rate", "1", "--duration", "1s", "--plan", *where[2:6])
    assert load.code == 0 and load.err == f"millstream: {TYPO}\n"


def test_a_lane_of_an_unknown_provider_is_named_and_one_of_another_provider_is_not(tmp_path: Path) -> None:
    names = ("opnai/gpt-4o", "anthropic/claude-sonnet-4", "openai/gpt-4o")
    (told,) = unused(tmp_path, names, ("openai/gpt-4o",))
    assert told == "the lane opnai/gpt-4o is not used: no model of this name is asked (nearest: openai/gpt-4o)"


def test_a_price_or_facts_of_no_asked_model_are_named_too(tmp_path: Path) -> None:
    path = tmp_path / "some.toml"
    path.write_text(
        '[prices."sim/opne"]\ninput = 1\noutput = 2\n[models."sim/opne"]\nthinks = true\n'
        '[models."sim/open"]\nthinks = true\n[prices."anthropic/claude-sonnet-4"]\ninput = 1\noutput = 2\n'
    )
    settings = settings_for(("sim/open",), SendingOptions(), configuration_of(Document(path)))
    assert unused_lanes([settings]) == [TYPO.replace("lane", "price of"), TYPO.replace("lane", "row of")]


def test_a_lane_that_one_run_of_a_sweep_uses_is_used(tmp_path: Path) -> None:
    names = ("sim/open", "sim/steady", "sim/typo")
    assert [told.split()[2] for told in unused(tmp_path, names, ("sim/open",), ("sim/steady",))] == ["sim/typo"]


def test_a_batch_names_a_model_without_a_lane_beside_those_that_are_declared(
    cli: CommandLine, provider: Provider, folder: Path
) -> None:
    body = {"model": "sim/open", "messages": [{"role": "user", "content": "Hi"}]}
    line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": body}
    (folder / "in.jsonl").write_text(json.dumps(line))
    where = ("--base-url", provider.base_url, "--config", "lanes.toml", "--cache", "cache", "--no-progress")
    done = cli("batch", "in.jsonl", "out.jsonl", *where)
    assert done.code == 0 and "sim/open has no lane of its own (nearest: sim/opne)" in done.err


PROGRAM = """
import asyncio, sys
import millstream as ms

async def main():
    lane = ms.Lane("openai/gpt-4o-mnii", rpm=5)
    async with ms.Engine(lane, base_url="http://127.0.0.1:9/v1", cache=sys.argv[1], mode="strict") as engine:
        for prompt in ("a", "b"):
            await engine.ask(ms.Call("openai/gpt-4o-mini", prompt))

asyncio.run(main())
"""


@pytest.mark.process
def test_a_program_that_configures_no_logging_is_told_on_stderr_once(tmp_path: Path) -> None:
    words = [sys.executable, "-P", "-c", PROGRAM, str(tmp_path / "cache")]
    done = subprocess.run(words, env=environment(tmp_path), capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("openai/gpt-4o-mini has no lane of its own (nearest: openai/gpt-4o-mnii)")


def test_a_pattern_of_models_is_no_lane() -> None:
    with pytest.raises(ConfigurationError, match=r"lane openai/\*: name one model"):
        ms.Engine(ms.Lane("openai/*"), base_url="http://127.0.0.1:9/v1")
