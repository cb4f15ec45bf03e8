"""Models under test that refuse or ignore a temperature, through every door: each is asked once, none in vain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine, Done
from strict_models import StrictModels

# Chameleon's pages are read in processes of their own.
pytestmark = [pytest.mark.needs_benchmark("millstone", "chameleon", "sycon", "task"), pytest.mark.process]

MODELS = ("anthropic/claude-sonnet-5-5", "openai/gpt-6-sol", "gemini/gemini-3.8-flash")
TAKING, UNKNOWN = "openai/gpt-4.1-mini", "openai/new-model"
TASK = """
import millstream as ms

capitals = ms.Task(data=[{"country": "Peru"}], prompt="What is the capital of {country}?", score=ms.regex("so"){more})
"""
TOML = """
[task]
data = [{ country = "Peru" }]
prompt = "What is the capital of {country}?"
score = "match"
expected = "so"
temperature = [0, 1]
"""
RUN_FILE = """
[run]
out = "file"
[run.millstone]
model = ["MODEL"]
temperature = [0, 1]
limit = 1
templates = 1
trials = 1
"""
SEVERAL = ("--temperature", "0", "1")
CHAMELEON = ("chameleon", "--judge", TAKING, "--conversations", "1", "--turns", "2", "--pages", "2")
SYCON = ("sycon", "--judge", TAKING, "--setting", "debate", "--limit", "1")


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Iterator[StrictModels]:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "k")
    with StrictModels() as served:
        yield served


def run(cli: CommandLine, models: StrictModels, verb: str, *words: str, out: str = "run") -> Done:
    where = ("--base-url", models.address, "--cache", "cache", "--out", out)
    return cli(verb, *words, *where, *(("--no-report", "--no-progress") if verb == "run" else ()))


def test_a_model_without_a_temperature_is_asked_once_through_every_door(
    cli: CommandLine, models: StrictModels, tmp_path: Path
) -> None:
    claude, gpt, gemini = MODELS
    (tmp_path / "mine.py").write_text(TASK.replace("{more}", ""))
    (tmp_path / "mine.toml").write_text(TOML)
    (tmp_path / "file.toml").write_text(RUN_FILE.replace("MODEL", gemini))
    doors: dict[str, tuple[str, tuple[str, ...]]] = {
        "python": (claude, ("mine.py", "--model", claude, *SEVERAL)),
        "toml": (gpt, ("mine.toml", "--model", gpt)),
        "file": (gemini, ("file.toml",)),
        "sycon": (gpt, (*SYCON, "--model", gpt, *SEVERAL)),
        "chameleon": (claude, (*CHAMELEON, "--model", claude)),
        "planned": (gemini, (*CHAMELEON, "--model", gemini, *SEVERAL)),
    }
    for name, (model, words) in doors.items():
        planned = run(cli, models, "plan", *words, out=name)
        assert planned.code == 0, (name, planned.err)
        assert f"{model} takes no temperature: it is asked once, without one\n" in planned.err, (name, planned.err)
        if name == "planned":
            continue
        done = run(cli, models, "run", *words, out=name)
        # MillStone reads no position in these answers.
        assert done.code == (3 if name == "file" else 0), (name, done.out)
        assert f"{model} takes no temperature: it is asked once, without one\n" in done.err
        (ended,) = json.loads((tmp_path / name / "manifest.json").read_text())["counts"]
        assert (ended["model"], ended["temperature"]) == (model, None), name
    asked = [each for model in MODELS for each in models.of(model)]
    assert models.refused() == [] and {each.temperature for each in asked} == {None}


def test_a_temperature_that_an_unknown_model_rejects_is_told_with_the_flag_that_sends_none(
    cli: CommandLine, models: StrictModels, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(TASK.replace("{more}", ""))
    done = run(cli, models, "run", "mine.py", "--model", UNKNOWN, "--temperature", "0")
    assert (
        done.code == 3 and "the model refuses temperature: leave it out, in a run with --temperature none)" in done.out
    )
    assert run(cli, models, "run", "mine.py", "--model", UNKNOWN, "--temperature", "none", out="none").code == 0
