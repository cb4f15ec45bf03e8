"""Conversations that are stopped, killed or fail in a turn: what was answered is never asked again."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Done, finish, ids_of, lines_of, run_command, scores_of, start
from simulated_outside import Outside

CommandLine = Callable[..., Done]
CONVERSATIONS, TURNS, PAGES = 3, 5, 6
SIZE = ("--conversations", str(CONVERSATIONS), "--turns", str(TURNS), "--pages", str(PAGES))
# A turn has a query, an answer and a judgement; the next one's query and pages are asked ahead.
IN_FLIGHT = CONVERSATIONS * (3 + PAGES + 1)


def command(outside: Outside, *more: str, cache: str = "cache", out: str = "run") -> tuple[str, ...]:
    words = ("run", "chameleon", "--model", "sim/open", "--judge", "sim/judge", "--temperature", "0", *SIZE)
    return (*words, *outside.flags, "--cache", cache, "--out", out, "--no-report", "--no-progress", *more)


def run(home: Path, outside: Outside, *more: str, cache: str = "cache", out: str = "run") -> Done:
    return run_command(home, *command(outside, *more, cache=cache, out=out), **outside.variables)


def await_lines(path: Path, count: int) -> None:
    deadline = time.monotonic() + 30
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert time.monotonic() < deadline, f"not {count} lines in 30 s"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def undisturbed(running_outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, int]:
    """A run's folder, and how many calls and requests it took."""
    running_outside.reset()
    home = tmp_path_factory.mktemp("undisturbed")
    assert run(home, running_outside).code == 0
    return home / "run", *running_outside.arrivals()


@pytest.mark.long
def test_a_signal_drains_and_the_same_command_asks_nothing_again(
    outside: Outside, undisturbed: tuple[Path, int, int], tmp_path: Path
) -> None:
    whole, calls, requests = undisturbed
    outside.provider.set_faults("slow_body=0.05")
    process = start(tmp_path, *command(outside, "--json"), **outside.variables)
    await_lines(tmp_path / "run/records.jsonl", 4)
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert done.code == 130, done.err
    (told,) = json.loads(done.out)["runs"]
    written = ids_of(tmp_path / "run")
    assert told["answered"] == len(written) == len(set(written)) < CONVERSATIONS * TURNS
    assert told["pending"] == CONVERSATIONS * TURNS - len(written)
    outside.provider.set_faults()
    done = run_command(tmp_path, "resume", "run", "--no-report", "--no-progress", **outside.variables)
    assert done.code == 0, done.err
    # Drained: every answer of the first part was kept, and is taken from the cache in the middle of its turn.
    assert outside.arrivals() == (calls, requests)
    assert scores_of(tmp_path / "run") == scores_of(whole)


@pytest.mark.long
def test_a_killed_run_goes_on_in_the_middle_of_its_conversations(
    outside: Outside, undisturbed: tuple[Path, int, int], tmp_path: Path
) -> None:
    whole, calls, _ = undisturbed
    outside.provider.set_faults("slow_body=0.03")
    kills = (1, 4, 8)
    for lines in kills:
        process = start(tmp_path, *command(outside), **outside.variables)
        await_lines(tmp_path / "run/records.jsonl", lines)
        os.kill(process.pid, signal.SIGKILL)
        assert finish(process).code == -signal.SIGKILL
    done = run(tmp_path, outside)
    assert done.code == 0, done.err
    assert "killed before" in done.out
    ids = ids_of(tmp_path / "run")
    assert len(ids) == len(set(ids)) == CONVERSATIONS * TURNS
    assert scores_of(tmp_path / "run") == scores_of(whole)
    again = sum(count - 1 for count in outside.provider.received().values())
    repeated = sum(count - 1 for path, count in outside.fetches().items() if not path.endswith(("/search", ".txt")))
    # Only what was on its way at a kill can have been asked twice; robots.txt is asked by each process.
    assert again <= 3 * len(kills) * CONVERSATIONS
    assert repeated <= len(kills) * IN_FLIGHT
    assert outside.arrivals()[0] - calls == again
    assert outside.searches() <= CONVERSATIONS * TURNS + len(kills) * 2 * CONVERSATIONS
    assert run_command(tmp_path, "verify", "run").code == 0


def test_a_failed_turn_holds_the_later_ones_back_until_it_is_tried_again(outside: Outside, tmp_path: Path) -> None:
    # The judge is asked last in a turn: its rejection leaves the answer, which is not paid for again.
    outside.provider.set_faults("rejected=400,at=7")
    done = run(tmp_path, outside)
    assert done.code == 3, done.err
    (failure,) = lines_of(tmp_path / "run/failures.jsonl")
    held = TURNS - failure["turn"]
    assert failure["status"] == "rejected" and failure["step"] in ("query", "answer", "judge")
    assert len(ids_of(tmp_path / "run")) == CONVERSATIONS * TURNS - 1 - held
    assert f"turns failed at: {failure['step']} 1" in done.out
    assert f"{held} later turns of their conversations are held back" in done.out
    assert f"millstream retry {tmp_path / 'run'}" in done.out and "pending" not in done.out.splitlines()[-1]
    proof = run_command(tmp_path, "verify", "run")
    assert (proof.code, f"{held} held back by failures" in proof.out) == (0, True)
    # The same command leaves it alone.
    before = outside.arrivals()
    assert run(tmp_path, outside).code == 3
    assert outside.arrivals() == before
    outside.provider.set_faults()
    retried = start(tmp_path, "retry", "run", "--no-report", "--no-progress", **outside.variables)
    done = finish(retried, within_s=60)
    assert done.code == 0, done.err
    assert "millstream: 1 failed turn is asked again" in done.err
    assert (tmp_path / "run/failures-1.jsonl").exists()
    assert len(ids_of(tmp_path / "run")) == CONVERSATIONS * TURNS


def test_a_search_engine_that_refuses_leaves_turns_pending_and_says_what_to_do(
    outside: Outside, tmp_path: Path
) -> None:
    outside.set_search_faults("forbidden")
    done = run(tmp_path, outside, "--conversations", "1", "--turns", "3")
    assert done.code == 4, done.err
    assert "3 turns are pending: search/searxng" in done.out
    assert "its settings.yml must have `json`" in done.out
    assert ids_of(tmp_path / "run") == []
    outside.set_search_faults()
    resumed = start(tmp_path, "resume", "run", "--no-report", "--no-progress", **outside.variables)
    assert finish(resumed, within_s=60).code == 0


@pytest.mark.long  # a failed search is tried for some 10 s
def test_a_retry_sends_a_failed_search_again_which_resume_takes_from_the_cache(
    outside: Outside, tmp_path: Path
) -> None:
    outside.set_search_faults("unresponsive")
    done = run(tmp_path, outside, "--conversations", "1", "--turns", "1")
    assert done.code == 3, done.err
    (failure,) = lines_of(tmp_path / "run/failures.jsonl")
    assert (failure["status"], failure["step"]) == ("search_failed", "search")
    searches = outside.searches()
    outside.set_search_faults()
    resumed = start(tmp_path, "resume", "run", "--no-report", "--no-progress", **outside.variables)
    assert (finish(resumed, within_s=60).code, outside.searches()) == (3, searches)
    retried = start(tmp_path, "retry", "run", "--no-report", "--no-progress", **outside.variables)
    finish(retried, within_s=60)
    assert outside.searches() == searches + 1
    assert len(ids_of(tmp_path / "run")) == 1 and lines_of(tmp_path / "run/failures.jsonl") == []


def test_pages_that_give_nothing_fail_no_turn(outside: Outside, tmp_path: Path) -> None:
    # Without --allow-host every page of the simulated web lies at an address that is not public.
    words = [word for word in command(outside) if word != "--allow-host" and not word.startswith("*.sim.test")]
    done = run_command(tmp_path, *words, **outside.variables)
    assert done.code == 3 and "no page gave a text" in done.out, done
    # Where pages lie is no part of what was asked: it may be said anew.
    resumed = run_command(tmp_path, "resume", "run", *outside.flags[4:6], "--no-report", **outside.variables)
    assert resumed.code == 3 and "nothing was sent" in resumed.out
    kept = json.loads((tmp_path / "run/manifest.json").read_text())["options"]["sending"]["allow_host"]
    assert kept == [outside.flags[5]]
    pages = {page["status"] for line in lines_of(tmp_path / "run/records.jsonl") for page in line["retrieved"]}
    assert pages <= {"blocked", "unreachable", "disallowed"}
    assert "pages: 0 of 90 retrieved had a text" in done.out


def test_a_reached_limit_stops_and_every_dollar_is_told_where_it_went(outside: Outside, tmp_path: Path) -> None:
    prices = "".join(f'[prices."sim/{model}"]\ninput = 1.0\noutput = 2.0\n' for model in ("open", "judge"))
    (tmp_path / "priced.toml").write_text(outside.lanes.read_text() + prices)
    variables = {"BRAVE_API_KEY": "any", "BRAVE_SEARCH_BASE_URL": f"{outside.web}/res/v1"}
    words = ("--search", "brave", "--config", "priced.toml", "--max-tokens", "1000", "--json")
    done = run_command(tmp_path, *command(outside, *words, "--max-cost", "0.1"), **variables)
    assert done.code == 4, done.err
    (told,) = json.loads(done.out)["runs"]
    assert told["pending"] and "--max-cost" in told["stops"][0]["detail"]
    spent = told["details"]["cost"]
    assert sum(spent.values()) <= 0.1
    more = ("resume", "run", "--max-cost", "9", "--no-report", "--no-progress", "--json")
    done = run_command(tmp_path, *more, **variables)
    assert done.code == 0, done.err
    (told,) = json.loads(done.out)["runs"]
    cost = told["details"]["cost"]
    # Five dollars a thousand searches, each paid once; what the stop left without a line is told by itself.
    assert cost["search"] + cost["unrecorded"] >= 0.005 * outside.searches() - 1e-9
    lines = lines_of(tmp_path / "run/records.jsonl")
    assert cost["judge"] == pytest.approx(sum(line["cost_judge"] for line in lines))
    assert cost["models"] + cost["judge"] + cost["search"] == pytest.approx(sum(line["cost"] for line in lines))
    assert told["details"]["unpriced"] == []
