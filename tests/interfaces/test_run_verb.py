"""`millstream run`: the grid over real HTTP, its files, its exit codes, and what it never does twice."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from command_line import SMALL, SMALL_PROMPTS, CommandLine, Provider, ids_of, lines_of, scores_of

pytestmark = pytest.mark.needs_benchmark("millstone")

GRID = ("run", "millstone", *SMALL, "--no-progress")


def grid(provider: Provider, *more: str, model: str = "sim/open") -> tuple[str, ...]:
    return (*GRID, "--model", model, "--base-url", provider.base_url, "--cache", "cache", "--no-report", *more)


def test_one_command_writes_records_scores_and_manifest_and_prints_a_table(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    done = cli(*grid(provider, "--out", "run"))
    assert done.code == 0, done.err
    ids = ids_of(tmp_path / "run")
    assert len(ids) == len(set(ids)) == SMALL_PROMPTS == provider.calls()
    om = scores_of(tmp_path / "run")["millstone"]["models"]["sim/open"]["om"]
    assert re.search(rf"^sim/open +{om:.3f} ", done.out, re.MULTILINE)
    assert str(tmp_path / "run") in done.out
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["specification"]["endpoints"] == {"sim/open": "sim"}
    assert manifest["counts"][0]["ok"] == SMALL_PROMPTS
    assert manifest["started"] <= manifest["ended"]
    assert not (tmp_path / "run/.reserve").exists()


def test_why_a_lane_stopped_is_told_with_what_to_do(cli: CommandLine, provider: Provider) -> None:
    provider.set_faults("unauthorized,at=8-1000")
    dead = cli(*grid(provider, "--out", "dead", "--mode", "live"))
    assert dead.code == 4
    assert (
        "sim/open refuses the key (401: Incorrect API key provided.): correct it; then run: millstream resume"
        in dead.out
    )
    provider.set_faults("rate_limited_ms=600")
    throttled = cli(*grid(provider, "--out", "throttled", "--mode", "live", "--patience", "1s"))
    assert throttled.code == 4
    # Nobody answers at this port, and that is the news.
    away = cli(*GRID, "--model", "sim/open", "--base-url", "http://127.0.0.1:9", "--out", "away", "--patience", "2s")
    assert away.code == 4
    assert re.search(r"gave no valid answer for 2 s .*; the latest: connect: .*127\.0\.0\.1", away.out)
    assert re.search(r"asks for a pause of 0\.01 min after \S+ min without a valid answer, more than", throttled.out)


PRICED = '[prices."sim/open"]\ninput = 1\noutput = 1\n'


def test_max_cost_is_one_limit_for_a_whole_sweep(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    table = 'model = "sim/open"\nlimit = 1\ntemplates = 1\ntrials = 2\nmax-tokens = 20\n'
    (tmp_path / "sweep.toml").write_text(
        f'[run]\nout = "out"\ncache = "cache"\nmode = "live"\nmax-cost = 0.02\n'
        f'[[run.millstone]]\nname = "one"\n{table}[[run.millstone]]\nname = "two"\n{table}'
        f'[providers.sim]\nbase_url = "{provider.base_url}"\n{PRICED}'
    )
    assert cli("run", "sweep.toml", "--max-cost", "1", "--no-progress", "--no-report").code == 0
    cost = sum(line["cost"] for line in lines_of(tmp_path / "out/one/records.jsonl"))
    limit = str(1.5 * cost)
    done = cli("run", "sweep.toml", "--out", "less", "--max-cost", limit, "--no-progress", "--no-report")
    assert done.code == 4
    costs = [sum(line["cost"] for line in lines_of(tmp_path / f"less/{name}/records.jsonl")) for name in ("one", "two")]
    assert costs[0] == pytest.approx(cost) and costs[1] > 0
    assert sum(costs) <= float(limit)
    # Both folders count from the start.
    sent = provider.calls()
    assert cli("run", "sweep.toml", "--out", "less", "--max-cost", limit, "--no-progress", "--no-report").code == 4
    # A folder that is resumed alone still shares its limit with the others.
    assert cli("resume", "less/two", "--no-progress", "--no-report").code == 4
    assert provider.calls() == sent


def test_a_key_is_in_no_file_and_no_output(
    cli: CommandLine, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = "sk-canary-5d41402abc4b2a76"
    monkeypatch.setenv("LAB_KEY", canary)
    (tmp_path / "lab.toml").write_text(
        f'[providers.lab]\nbase_url = "{provider.base_url}"\nkey = "env:LAB_KEY"\n'
        '[lanes."lab/open"]\nkeys = ["env:LAB_KEY"]\n'
    )
    provider.set_faults("unauthorized,at=3-1000")
    more = ("--model", "lab/open", "--config", "lab.toml", "--cache", "cache", "--out", "run", "--concurrency", "1")
    done = cli("run", "millstone", *SMALL, *more)
    assert done.code == 4
    assert canary not in done.out + done.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 4
    assert [path for path in files if canary.encode() in path.read_bytes()] == []


def test_a_run_file_sweeps_several_runs_each_into_its_folder(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    small = "limit = 1\ntemplates = 1\ntrials = 2\n"
    (tmp_path / "sweep.toml").write_text(
        f'[run]\nout = "out"\ncache = "cache"\n'
        f'[[run.millstone]]\nname = "one"\nmodel = "sim/open"\n{small}'
        f'[[run.millstone]]\nname = "two"\nmodel = ["sim/open", "sim/steady"]\nprotocol = "released"\n{small}'
        f'[providers.sim]\nbase_url = "{provider.base_url}"\nidentity = "sim"\n'
        f'[lanes."sim/open"]\nrpm = 100_000\nconcurrency = 4\n'
    )
    done = cli("run", "sweep.toml", "--no-progress", "--no-report")
    assert done.code == 0, done.err
    assert len(ids_of(tmp_path / "out/one")) == SMALL_PROMPTS
    assert len(ids_of(tmp_path / "out/two")) == 2 * SMALL_PROMPTS
    assert re.findall(r"^(one|two): (\S+)", done.out, re.MULTILINE) == [
        ("one", "sim/open"),
        ("two", "sim/open"),
        ("two", "sim/steady"),
    ]
    refused = cli("resume", "out")
    assert refused.code == 2 and "one, two" in refused.err


def test_a_resumed_run_has_lanes_providers_and_prices_from_its_run_file(
    cli: CommandLine, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KEY", "sk-lab")
    (tmp_path / "lab.toml").write_text(
        '[run]\nout = "run"\ncache = "cache"\n'
        '[run.millstone]\nmodel = "lab/open"\nlimit = 1\ntemplates = 1\ntrials = 2\n'
        f'[providers.lab]\nbase_url = "{provider.base_url}"\n'
        '[lanes."lab/open"]\nconcurrency = 2\nkeys = ["env:LAB_KEY"]\n'
        '[prices."lab/open"]\ninput = 1\noutput = 1\n'
    )
    provider.set_faults("unauthorized,at=8-1000")
    assert cli("run", "lab.toml", "--no-progress", "--no-report").code == 4
    provider.reset()
    provider.set_faults("slow_body=0.1")
    monkeypatch.delenv("LAB_KEY")
    refused = cli("resume", "run", "--no-progress", "--no-report")
    assert refused.code == 2 and "set LAB_KEY" in refused.err and provider.calls() == 0
    monkeypatch.setenv("LAB_KEY", "sk-lab")
    done = cli("resume", "run", "--no-progress", "--no-report")
    assert done.code == 0, done.err
    assert provider.summary()["peak_in_flight"] == 2
    assert all(line["cost"] > 0 for line in lines_of(tmp_path / "run/records.jsonl"))


def test_a_yaml_file_asks_the_same_as_a_toml_file(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(
        f"run:\n  out: yaml\n  base-url: {provider.base_url}\n  cache: cache\n"
        "  millstone: {model: sim/open, limit: 1, templates: 1, trials: 2}\n"
    )
    assert cli("run", "run.yaml", "--no-progress", "--no-report").code == 0
    assert cli(*grid(provider, "--out", "flags")).code == 0
    specifications = [
        json.loads((tmp_path / out / "manifest.json").read_text())["specification"] for out in ("yaml", "flags")
    ]
    assert specifications[0] == specifications[1]


def test_the_command_that_a_summary_prints_can_be_pasted(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    """In a folder with a blank and an umlaut, as a shell reads it."""
    provider.set_faults("rejected=400,at=1-5")
    done = cli(*grid(provider, "--out", "rüns/my z"))
    assert done.code == 3, done.err
    printed = re.search(r"millstream retry .*", done.out)
    assert printed is not None
    words = shlex.split(printed[0])
    assert words[2:] == [str(tmp_path / "rüns" / "my z")]
    provider.set_faults()
    assert cli(words[1], *words[2:], "--no-report").code == 0
