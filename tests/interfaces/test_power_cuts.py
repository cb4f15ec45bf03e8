"""Promise 1 over power cuts: the writes of a real run, replayed to any moment and with what was not synced partly lost.

Whatever state it is, the same command finishes the run.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest
from batches import write_sound
from command_line import SMALL, SMALL_PROMPTS, Provider, finish, ids_of, lines_of, run_command, start
from file_writes import FileWrite, WatchedFolder, put_back
from torture import SEED, record, times

pytestmark = [pytest.mark.needs_benchmark("millstone"), pytest.mark.timeout(3600)]

STATES = times(6, 1_000)
LINES = 20
SENT = ("--cache", "cache", "--no-progress", "--concurrency", "2")
COMMANDS = {
    "run": ("run", "millstone", "--model", "sim/open", *SMALL, *SENT, "--no-report", "--out", "run"),
    "batch": ("batch", "in.jsonl", "out.jsonl", *SENT),
}
# What an answer needs to be kept: a batch's row has a note beside it.
JOURNALS = {"run": ("run/records.jsonl",), "batch": ("out.jsonl", "out.jsonl.millstream/records.jsonl")}
CALLS = {"run": SMALL_PROMPTS, "batch": LINES}


def synced_lines(changes: list[FileWrite], journal: str) -> int:
    """Returns how many answers are surely on disk: those before the journal's last sync."""
    written = synced = 0
    for change in changes:
        if change.file == journal and change.name == "sync":
            synced = written
        elif change.file == journal:
            written += change.data.count(b"\n")
    return synced


def finished(home: Path, kind: str) -> bool:
    """Whether each answer is there once, and `verify` agrees."""
    if kind == "run":
        return len(set(ids_of(home / "run"))) == len(ids_of(home / "run")) == SMALL_PROMPTS
    rows = [line["custom_id"] for line in lines_of(home / "out.jsonl")]
    return len(set(rows)) == len(rows) == LINES


@pytest.mark.parametrize("kind", COMMANDS)
def test_after_a_power_cut_at_any_moment_the_same_command_finishes_and_asks_no_synced_answer_again(
    provider: Provider, tmp_path: Path, kind: str
) -> None:
    home, command = tmp_path / "home", (*COMMANDS[kind], "--base-url", provider.base_url)
    home.mkdir()
    write_sound(home / "in.jsonl", LINES)
    folder = WatchedFolder(home, tmp_path)
    done = finish(start(home, *command, **folder.recording()))
    assert done.code == 0, done.err
    changes, again, lost = folder.changes(), 0, 0
    put_back(changes, tmp_path / "replayed")
    for name in (*JOURNALS[kind], "cache/data.mdb"):
        assert (tmp_path / "replayed" / name).read_bytes() == (home / name).read_bytes(), "not all changes were seen"
    for number in range(STATES):
        seed = f"{SEED}/{number}"
        random = Random(seed)
        before = changes[: random.randint(0, len(changes))]
        shutil.rmtree(home)
        # Three in ten lose nothing: a cut of the process alone, between any two writes.
        put_back(before, home, random if random.random() < 0.7 else None)
        write_sound(home / "in.jsonl", LINES)
        provider.reset()
        done = run_command(home, *command)
        told = f"seed {seed}, after {len(before)} of {len(changes)} changes"
        assert done.code == 0, f"{told}: {done.err}"
        assert finished(home, kind), told
        proof = run_command(home, "verify", "run" if kind == "run" else "out.jsonl")
        assert proof.code == 0, f"{told}: {proof.out}{proof.err}"
        kept, sent = min(synced_lines(before, name) for name in JOURNALS[kind]), provider.calls()
        assert sent <= CALLS[kind] - kept, f"{told}: {sent} sent, though {kept} were synced"
        again += sent
        lost += CALLS[kind] - kept
    worst = f"{kind} after power cuts: {again:,} of {lost:,} answers that were not synced yet were asked again"
    record("1", STATES, STATES, worst, f"{SEED}/0 to {SEED}/{STATES - 1}")
