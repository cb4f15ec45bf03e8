"""Batches that are stopped from outside: kills, signals, a second process, a full disk, damage.

Sixteen kills and 2,000 lines here; 50,000 in `make torture`.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from batches import ids_of, line, rows_of, write_mixed, write_sound
from command_line import COMMAND, Provider, environment, finish, run_command, start
from openai.types.chat import ChatCompletion
from torture import times
from watched_memory import run_watched

LINES = times(2000, 50_000)
KILLS = 16
CONCURRENCY = 4
APART = ("--errors", "errors.jsonl")


def command(provider: Provider, *more: str) -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--concurrency", str(CONCURRENCY))
    return ("batch", "in.jsonl", "out.jsonl", *where, *more)


def wanted(count: int) -> list[str]:
    return sorted(f"r{n}" for n in range(1, count + 1))


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "apart", [(), ("--errors", "errors.jsonl", "--in-order", "--mode", "live")], ids=["together", "apart"]
)
def test_random_kills_lose_no_line_double_none_and_ask_again_only_what_was_in_flight(
    provider: Provider, tmp_path: Path, apart: tuple[str, ...]
) -> None:
    codes = write_mixed(tmp_path / "in.jsonl", 1_200)
    provider.set_faults("slow_body=0.03")
    chance, killed = random.Random(KILLS), 0
    for number in range(KILLS // 2):
        process = start(tmp_path, *command(provider, *apart))
        if number % 2:
            provider.await_calls(provider.calls() + 9)  # however slow the machine is, some are killed while they send
        try:
            process.wait(chance.uniform(0.0, 0.4) if number % 2 else chance.uniform(0.2, 1.5))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            killed += 1
        finish(process)
        # Whatever instant it was: whole rows, each once, and at most one that is torn.
        data = (tmp_path / "out.jsonl").read_bytes() if (tmp_path / "out.jsonl").exists() else b""
        named = [json.loads(row)["id"] for row in data.split(b"\n")[:-1]]
        assert len(named) == len(set(named))
    assert killed >= KILLS // 4, "the batches ended before they could be killed"
    provider.set_faults()
    done = run_command(tmp_path, *command(provider, *apart))
    assert done.code == 3, done.err
    rows = rows_of(tmp_path / "out.jsonl") + rows_of(tmp_path / "errors.jsonl")
    assert len(rows) == len({row["id"] for row in rows}) == 1_200
    assert {row["error"]["line"]: row["error"]["code"] for row in rows if row["error"]} == codes
    received = provider.received()
    assert len(received) == 1_200 - len(codes)
    assert received.total() - len(received) <= killed * CONCURRENCY
    told = re.search(r"killed before: at most (\d+) calls", done.out)
    assert told is not None and 0 < int(told[1]) <= killed * CONCURRENCY
    if apart:
        numbers = [row["id"] for row in rows_of(tmp_path / "out.jsonl")]
        assert numbers == sorted(numbers)


@pytest.mark.timeout(1_200)
def test_many_lines_with_broken_ones_among_them_are_all_done_in_little_memory(
    provider: Provider, tmp_path: Path
) -> None:
    codes = write_mixed(tmp_path / "in.jsonl", LINES)
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--in-order", "--json")
    began = time.monotonic()
    done, peak_mb = run_watched(tmp_path, "batch", "in.jsonl", "out.jsonl", *where, within_s=1_000)
    seconds = time.monotonic() - began
    assert done.code == 3, done.err
    told = json.loads(done.out)
    assert (told["answered"], told["failed"], told["pending"]) == (LINES - len(codes), len(codes), 0)
    assert provider.calls() == LINES - len(codes)
    found: Counter[str] = Counter()
    for number, row in enumerate(rows_of(tmp_path / "out.jsonl"), 1):
        assert int(row["id"][-8:], 16) == number
        found[row["error"]["code"] if row["error"] else "ok"] += 1
        if row["error"]:
            assert (row["error"]["line"], row["error"]["code"]) == (number, codes[number])
        elif number % 50 == 1:
            ChatCompletion.model_validate(row["response"]["body"], strict=True)
    assert found == Counter({**Counter(codes.values()), "ok": LINES - len(codes)})
    print(f"{LINES:,} lines in {seconds:.1f} s, {peak_mb} MB at most")
    assert peak_mb < 200


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_drains_and_claims_only_what_the_output_holds(
    provider: Provider, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    write_sound(tmp_path / "in.jsonl", 60)
    provider.set_faults("slow_body=0.2")
    process = start(tmp_path, *command(provider, "--json"))
    provider.await_calls(12)
    process.send_signal(number)
    done = finish(process)
    assert done.code == code, done.err
    told = json.loads(done.out)
    assert told["answered"] == len(ids_of(tmp_path / "out.jsonl")) == provider.calls() > 0
    assert told["answered"] + told["pending"] == 60
    provider.set_faults()
    assert run_command(tmp_path, *command(provider)).code == 0
    assert provider.calls() == 60 and sorted(ids_of(tmp_path / "out.jsonl")) == wanted(60)


def test_a_signal_ends_the_wait_for_a_pipe_that_nothing_comes_through(provider: Provider, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "batch", "-", "-", "--base-url", provider.base_url],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(line("a", "One?"))
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["custom_id"] == "a"
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    process.communicate()


@pytest.mark.parametrize("damage", [(b'"role"', b'"rule"'), (b'"id":"batch_req_', b'"id":"batch_REQ_')])
def test_a_changed_row_stops_the_start_and_is_asked_again_once_it_is_set_aside(
    provider: Provider, tmp_path: Path, damage: tuple[bytes, bytes]
) -> None:
    write_sound(tmp_path / "in.jsonl", 20)
    assert run_command(tmp_path, *command(provider)).code == 0
    out = tmp_path / "out.jsonl"
    rows = out.read_bytes().splitlines(keepends=True)
    rows[4] = rows[4].replace(*damage)
    out.write_bytes(b"".join(rows))
    done = run_command(tmp_path, *command(provider))
    assert done.code == 5 and "out.jsonl line 5 " in done.err and "--set-aside-damaged" in done.err
    assert out.read_bytes() == b"".join(rows)
    assert run_command(tmp_path, *command(provider, "--set-aside-damaged")).code == 0
    assert sorted(ids_of(out)) == wanted(20) and provider.calls() == 20
    assert (tmp_path / "out.jsonl.millstream/damaged.jsonl").read_bytes() == rows[4]
    assert run_command(tmp_path, *command(provider)).code == 0


@pytest.mark.parametrize("journal", ["records.jsonl", "failures-1.jsonl"])
def test_a_changed_note_stops_the_start_until_it_is_set_aside(provider: Provider, tmp_path: Path, journal: str) -> None:
    write_sound(tmp_path / "in.jsonl", 5)
    provider.set_faults("rejected=400,at=2-2")
    assert run_command(tmp_path, *command(provider)).code == 3
    provider.set_faults()
    assert run_command(tmp_path, *command(provider, "--retry")).code == 0
    notes = tmp_path / "out.jsonl.millstream" / journal
    damaged = re.sub(rb'"attempts":1', b'"attempts":2', notes.read_bytes(), count=1)
    assert damaged != notes.read_bytes()
    notes.write_bytes(damaged)
    done = run_command(tmp_path, *command(provider))
    assert done.code == 5 and f"{journal} line 1 is damaged" in done.err and "--set-aside-damaged" in done.err
    assert run_command(tmp_path, *command(provider, "--set-aside-damaged")).code == 0
    assert run_command(tmp_path, *command(provider)).code == 0
    assert sorted(ids_of(tmp_path / "out.jsonl")) == wanted(5) and provider.calls() == 6


def test_two_batches_never_share_a_file_of_errors(provider: Provider, tmp_path: Path) -> None:
    write_sound(tmp_path / "in.jsonl", 60)
    provider.set_faults("slow_body=0.2")
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--concurrency", "2", *APART)
    first = start(tmp_path, "batch", "in.jsonl", "one.jsonl", *where)
    provider.await_calls(2)
    for words in (("two.jsonl", *where), ("errors.jsonl", *where[:-2])):
        other = run_command(tmp_path, "batch", "in.jsonl", *words)
        assert other.code == 5 and "errors.jsonl is being written by another batch" in other.err, other
    provider.set_faults("rejected=400")
    assert finish(first).code == 3
    failed = rows_of(tmp_path / "errors.jsonl")
    assert len(rows_of(tmp_path / "one.jsonl")) + len(failed) == 60 and failed
    # Nor one after the other.
    other = run_command(tmp_path, "batch", "in.jsonl", "two.jsonl", *where)
    assert other.code == 2 and "errors.jsonl is there already" in other.err
    assert rows_of(tmp_path / "errors.jsonl") == failed
