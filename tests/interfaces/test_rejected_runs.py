"""A run whose model rejects everything: it ends soon, says why, and goes on when that is mended."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Provider, lines_of

from .conftest import CommandLine

# 5 x 11 prompts, of which two are in flight at once.
PROMPTS = 55
GRID = ("run", "millstone", "--limit", "1", "--templates", "1", "--trials", "5", "--no-progress", "--cache", "cache")


def grid(provider: Provider, *more: str) -> tuple[str, ...]:
    return (*GRID, "--model", "sim/open", "--base-url", provider.base_url, "--concurrency", "2", *more)


def test_a_model_that_rejects_everything_stops_after_twenty_and_retry_finishes(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    provider.set_faults("rejected=404")
    done = cli(*grid(provider, "--out", "run"))
    sent = provider.calls()
    assert done.code == 4 and 20 <= sent <= 21
    assert [line["status"] for line in lines_of(tmp_path / "run/failures.jsonl")] == ["rejected"] * sent
    assert (
        f"{PROMPTS - sent} prompts are pending: sim/open rejected {sent} calls alike and answered none (404: "
        in done.out
    )
    assert "check the model's name" in done.out
    # Not mended yet: it costs twenty calls again, and no more.
    assert cli("retry", "run", "--no-progress").code == 4
    assert provider.calls() <= 2 * 21
    provider.set_faults()
    assert cli("retry", "run", "--no-progress").code == 0
    assert len(lines_of(tmp_path / "run/records.jsonl")) == PROMPTS
    assert lines_of(tmp_path / "run/failures.jsonl") == []


def test_a_run_that_has_answers_asks_every_rejected_prompt_again(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    provider.set_faults("rejected=400,at=2-1000")
    assert cli(*grid(provider, "--out", "run")).code == 3
    assert (provider.calls(), len(lines_of(tmp_path / "run/failures.jsonl"))) == (PROMPTS, PROMPTS - 1)
    provider.set_faults("rejected=400")
    assert cli("retry", "run", "--no-progress").code == 3
    assert provider.calls() == 2 * PROMPTS - 1


def test_json_tells_the_stop(cli: CommandLine, provider: Provider) -> None:
    provider.set_faults("rejected=422")
    done = cli(*grid(provider, "--out", "run", "--json"))
    (run,) = json.loads(done.out)["runs"]
    assert done.code == run["exit_code"] == 4
    assert [(stop["lane"], stop["reason"]) for stop in run["stops"]] == [("sim/open", "rejected")]
