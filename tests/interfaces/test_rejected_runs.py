"""A run whose calls are rejected or led elsewhere: it ends soon, says why, and goes on when that is mended."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from command_line import CommandLine, Done, Provider, lines_of
from raw_server import RawServer, Visit, http

pytestmark = pytest.mark.needs_benchmark("millstone")

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
    advice = (
        "check the model's name and the options; to change them, start again with another --out (answers stay in the"
    )
    assert done.out.count(advice) == 1
    assert "if the provider accepts the same calls later: millstream retry " in done.out
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


def test_the_summary_says_of_each_kind_of_failure_what_most_of_them_say(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    provider.set_faults("rejected=422,at=3-7", "rejected=400,at=8-9", "redirect=302,at=50-1000")
    done = cli(*grid(provider, "--out", "run"))
    lines = done.out.splitlines()
    failed = next(line for line in lines if line.startswith("failed: "))
    redirects = int(failed.partition("redirect ")[2].partition(",")[0])
    assert "rejected 7" in failed
    (rejected,) = [line for line in lines if line.startswith("  rejected, 5 of 7: 422: ")]
    assert len(rejected) < 280
    assert [line for line in lines if line.startswith("  redirect, ") and "302: the address redirects to" in line]
    told = json.loads(cli(*grid(provider, "--out", "run", "--json")).out)["runs"][0]["failures"]
    assert told["rejected"]["count"] == 7 and told["rejected"]["commonest"]["count"] == 5
    assert told["rejected"]["commonest"]["detail"].startswith("422: ")
    assert redirects >= 1 and told["redirect"]["count"] >= 1


def test_what_a_provider_says_is_inert_in_the_summary_and_cut_to_a_line(cli: CommandLine, tmp_path: Path) -> None:
    said = "\x1b]0;owned\x07\x1b[2J no such\r\nmodel \u202e\x9b31m " + "word " * 100

    async def scenario() -> Done:
        async def refuse(visit: Visit) -> None:
            while await visit.request() is not None:
                await visit.send(http(json.dumps({"error": {"message": said}}).encode(), status="404 Not Found"))

        async with RawServer(refuse) as server:
            arguments = (*GRID, "--model", "sim/open", "--base-url", server.base_url, "--concurrency", "2")
            return await asyncio.to_thread(cli, *arguments, "--out", "run")

    done = asyncio.run(scenario())
    assert done.code == 4
    (line,) = [line for line in done.out.splitlines() if line.startswith("  rejected, all ")]
    assert " no such model " in line and line.endswith("…") and len(line) < 280
    assert all(line.isprintable() for line in done.out.splitlines())


def test_a_server_that_always_redirects_ends_with_4_whatever_is_in_flight_and_resume_finishes(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    provider.set_faults("redirect=307")
    done = cli(*GRID, "--model", "sim/open", "--base-url", provider.base_url, "--concurrency", "200", "--out", "run")
    assert done.code == 4
    redirected = int(done.out.partition("redirect ")[2].split()[0])
    assert 0 < redirected <= PROMPTS
    assert "start again with another --out (answers stay in the cache); once the address, or the base_url" in done.out
    assert "is right: millstream resume " in done.out
    assert len(lines_of(tmp_path / "run/failures.jsonl")) == redirected
    # Asked again while it still redirects: the same.
    assert cli("resume", "run", "--no-progress").code == 4
    provider.set_faults()
    again = cli("resume", "run", "--no-progress")
    assert again.code == 0, again
    assert len({line["id"] for line in lines_of(tmp_path / "run/records.jsonl")}) == PROMPTS
    assert cli("verify", "run").code == 0
