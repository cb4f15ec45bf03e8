"""A model that thinks before it answers: what it is allowed, what its silence costs, and what a limit on cost needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Provider, lines_of

from millstream.engine.runs.run_folder import manifest_hash, specification_hash

pytestmark = pytest.mark.needs_benchmark("millstone")

GRID = ("millstone", "--limit", "1", "--templates", "1", "--trials", "5", "--concurrency", "2", "--cache", "cache")
PROMPTS = 55


def of(provider: Provider, model: str, *more: str) -> tuple[str, ...]:
    return (*GRID, "--model", model, "--base-url", provider.base_url, "--no-progress", "--no-report", *more)


def manifest_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return found


def test_a_model_whose_first_answers_are_all_cut_and_empty_stops_and_a_resumed_run_sends_no_more(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    done = cli("run", *of(provider, "sim/thinking", "--max-tokens", "100", "--out", "run"))
    sent = provider.calls()
    assert done.code == 4 and 20 <= sent <= 21
    records = lines_of(tmp_path / "run/records.jsonl")
    assert {(line["status"], line["truncated"], line["text"]) for line in records} == {("ok", True, "")}
    assert f"{PROMPTS - sent} prompts are pending: sim/thinking: its first {sent} answers were all cut off" in done.out
    assert "raise --max-tokens N" in done.out and "another --max-tokens and another --out" in done.out
    again = cli("resume", "run", "--no-progress", "--no-report", "--json")
    assert (again.code, provider.calls()) == (4, sent)
    [stop] = json.loads(again.out)["runs"][0]["stops"]
    assert (stop["lane"], stop["reason"]) == ("sim/thinking", "truncated")
    # The same prompts under another name are stopped by what the cache holds.
    other = cli("run", *of(provider, "sim/thinking", "--max-tokens", "100", "--out", "other"))
    assert (other.code, provider.calls()) == (4, sent)


def test_a_run_whose_earlier_answers_were_useful_goes_on(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    # With 250 tokens it answers baselines, which come first in a folder that holds answers already.
    done = cli("run", *of(provider, "sim/thinking", "--max-tokens", "250", "--out", "run"))
    assert done.code != 4 and provider.calls() == PROMPTS
    records = lines_of(tmp_path / "run/records.jsonl")
    assert {line["truncated"] for line in records if line["config"] == "baseline"} == {False}
    assert {line["text"] for line in records if line["config"] != "baseline"} == {""}


def test_a_model_known_to_think_is_sent_no_max_tokens_and_answers(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "lab.toml").write_text(
        f'[providers.lab]\nbase_url = "{provider.base_url}"\n[models."lab/thinking"]\nthinks = true\n'
    )
    more = ("--config", "lab.toml", "--no-progress", "--no-report")
    assert cli("run", *GRID, "--model", "lab/thinking", *more, "--out", "run").code == 0
    assert manifest_of(tmp_path / "run")["specification"]["max_tokens"] == {"lab/thinking": None}
    assert not any(line["truncated"] for line in lines_of(tmp_path / "run/records.jsonl"))


@pytest.mark.parametrize("way", ["resume", "run"])
def test_what_a_run_began_with_is_kept_whatever_the_table_says_later(
    cli: CommandLine, provider: Provider, tmp_path: Path, way: str
) -> None:
    """As a run of an earlier table of models."""
    command = of(provider, "openai/gpt-5-mini", "--out", "run", "--mode", "strict")
    assert cli("run", *command).code == 3
    path = tmp_path / "run/manifest.json"
    manifest = manifest_of(tmp_path / "run")
    assert manifest["specification"]["max_tokens"] == {"openai/gpt-5-mini": None}
    manifest["specification"]["max_tokens"] = {"openai/gpt-5-mini": 100}
    manifest["specification_hash"] = specification_hash(manifest["specification"])
    manifest["manifest_hash"] = manifest_hash(manifest)
    path.write_text(json.dumps(manifest))
    done = cli(*(("run", *command) if way == "run" else ("resume", "run", "--no-progress", "--no-report")))
    assert done.code == 3, done.err
    assert manifest_of(tmp_path / "run")["specification"]["max_tokens"] == {"openai/gpt-5-mini": 100}


CONFIG = """
[providers.lab]
base_url = "{url}"
[prices."lab/steady"]
input = 1.0
output = 10.0
"""


def test_a_limit_on_cost_needs_to_know_how_long_an_answer_can_be(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    config = tmp_path / "lab.toml"
    config.write_text(CONFIG.format(url=provider.base_url))
    more = ("--config", "lab.toml", "--max-cost", "1", "--no-progress", "--no-report")
    for verb in (("run", "--out", "run"), ("plan",), ("plan", "--pilot", "5")):
        done = cli(verb[0], *GRID, "--model", "lab/steady", *more[:-1] if verb[0] == "plan" else more, *verb[1:])
        assert done.code == 2 and len(done.err.splitlines()) == 1, done.err
        assert 'max_output under [models."lab/steady"]' in done.err and "--max-tokens" in done.err
    assert provider.calls() == 0 and not (tmp_path / "run").exists()
    assert cli("run", *GRID, "--model", "lab/steady", *more, "--max-tokens", "50", "--out", "set").code == 0
    config.write_text(CONFIG.format(url=provider.base_url) + '[models."lab/steady"]\nmax_output = 4096\n')
    assert cli("run", *GRID, "--model", "lab/steady", *more, "--out", "known").code == 0


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("thinks = 1", "thinks: expected true or false, got 1"),
        ("max_output = 0", "max_output: expected a whole number of tokens"),
        ("max_ouput = 5", "max_ouput"),
        ("", "expected one of thinks, max_output"),
    ],
)
def test_a_row_of_a_model_is_checked(cli: CommandLine, tmp_path: Path, row: str, told: str) -> None:
    (tmp_path / "bad.toml").write_text(f'[models."mylab/x"]\n{row}\n')
    done = cli("plan", "millstone", "--model", "sim/open", "--config", "bad.toml")
    assert done.code == 2 and told in done.err


def test_a_plan_reckons_with_usual_thoughts_and_says_what_the_longest_cost(cli: CommandLine, tmp_path: Path) -> None:
    more = ("--limit", "1", "--trials", "1", "--templates", "1", "--json")
    [found] = json.loads(cli("plan", "millstone", "--model", "gemini/gemini-2.5-pro", *more).out)["runs"]
    [model] = found["lanes"]
    assert (model["max_tokens"], model["thinks"], model["output_tokens"]) == (None, True, [11 * 300, 11 * 3_000])
    assert model["output_at_worst"] == 11 * 65_536 and model["cost_at_worst"] > 10 * model["cost"][1]
    assert found["cost_at_worst"] == model["cost_at_worst"]
    said = cli("plan", "millstone", "--model", "gemini/gemini-2.5-pro", *more[:-1]).out
    assert "is sent no max_tokens: 300 to 3,000 tokens an answer are assumed" in said and "most is 65,536;" in said
    assert f", at worst ${model['cost_at_worst']:,.2f}, if nothing has to be sent twice" in said
    (tmp_path / "own.toml").write_text('[models."xai/grok-5"]\nthinks = true\n[prices."xai/grok-5"]\ninput=1\noutput=1')
    told = cli("plan", "millstone", "--model", "xai/grok-5", "--config", "own.toml", *more[:-1]).out
    assert "3,300 to 33,000" in told and 'not known (max_output under [models."xai/grok-5"] in --config FILE)' in told
    assert "at worst" not in told


def test_tokens_of_a_prompt_are_those_of_the_models_family(cli: CommandLine) -> None:
    models = ("--model", "openai/gpt-4o-mini", "anthropic/claude-opus-5-5")
    done = cli("plan", "millstone", *models, "--limit", "1", "--trials", "1", "--json")
    [found] = json.loads(done.out)["runs"]
    by_lane = {lane["lane"]: lane["input_tokens"][0] for lane in found["lanes"]}
    assert by_lane["anthropic/claude-opus-5-5"] == pytest.approx(by_lane["openai/gpt-4o-mini"] * 4 / 3.1, abs=1)
    assert "a token is 4 characters of a prompt (3.1 for anthropic/claude-opus-5-5);" in found["assumed"]


def test_a_load_test_cuts_answers_on_purpose_and_is_not_stopped(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    sending = ("--base-url", provider.base_url, "--calls", "60", "--in-flight", "4", "--max-tokens", "16", "--json")
    found = json.loads(cli("load", "sim/thinking", *sending, "--out", "test").out)
    assert (found["ending"], provider.calls()) == ("calls", 60)


def rows(path: Path, model: str, count: int, **more: Any) -> None:
    body = {"model": model, **more}
    asked = [
        {"custom_id": f"{n}", "method": "POST", "url": "/v1/chat/completions", "body": body | {"messages": [turn]}}
        for n, turn in enumerate({"role": "user", "content": f"Question {n}?"} for n in range(count))
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in asked))


def test_a_batch_of_cut_and_empty_answers_stops_too(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    rows(tmp_path / "in.jsonl", "sim/thinking", 60, max_tokens=100)
    sending = ("--base-url", provider.base_url, "--concurrency", "2", "--cache", "cache", "--no-progress")
    done = cli("batch", "in.jsonl", "out.jsonl", *sending)
    assert done.code == 4 and 20 <= provider.calls() <= 21
    assert "requests are pending: sim/thinking: its first" in done.out


def test_a_row_of_a_batch_whose_cost_has_no_bound_is_a_row_that_says_so(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "lab.toml").write_text(CONFIG.format(url=provider.base_url))
    rows(tmp_path / "in.jsonl", "lab/steady", 2)
    more = ("--config", "lab.toml", "--max-cost", "1", "--cache", "cache", "--no-progress")
    done = cli("batch", "in.jsonl", "out.jsonl", *more)
    assert (done.code, provider.calls()) == (3, 0)
    told = [(line["response"]["status_code"], json.dumps(line)) for line in lines_of(tmp_path / "out.jsonl")]
    assert len(told) == 2
    assert all(status == 400 and "how long an answer can be is not known" in said for status, said in told)


def test_a_plan_and_a_run_say_once_what_is_assumed_of_an_unknown_model(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "lab.toml").write_text(f'[providers.lab]\nbase_url = "{provider.base_url}"\nidentity = "lab"\n')
    sweep = "".join(
        f'[[run.millstone]]\nmodel = "lab/open"\nlimit = 1\ntemplates = 1\ntrials = {trials}\n' for trials in (1, 2)
    )
    (tmp_path / "sweep.toml").write_text((tmp_path / "lab.toml").read_text() + '[run]\nout = "runs"\n' + sweep)
    for verb in (("plan", "--no-cache-check"), ("run", "--no-report", "--no-progress")):
        done = cli(verb[0], "sweep.toml", *verb[1:], "--cache", "cache")
        assert done.code == 0
        assert done.err.count("lab/open is not in the table of models") == 1
        assert '[models."lab/open"]' in done.err and "(no max_tokens are sent)" in done.err
    (tmp_path / "lab.toml").write_text((tmp_path / "lab.toml").read_text() + '[models."lab/open"]\nthinks = false\n')
    done = cli("plan", *GRID, "--model", "lab/open", "--config", "lab.toml")
    assert done.code == 0 and "table of models" not in done.err


def test_the_max_tokens_of_a_task_are_said_of_an_unknown_model(cli: CommandLine, tmp_path: Path) -> None:
    sums = 'ms.Task(data=[{"q": "1"}], prompt="{q}", score=ms.regex("2"), max_tokens=50)'
    (tmp_path / "sums.py").write_text(f"import millstream as ms\n\nsums = {sums}\n")
    assert "(max_tokens 50 are sent)" in cli("plan", "sums.py", "--model", "vllm/x").err
