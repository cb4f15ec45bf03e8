"""Folders as a power cut may leave them: a journal cut or zeroed after what was synced, with its cache or without it.

The states are made by rule from a finished run, not replayed from recorded writes. Every one is gone on with by the
same command.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random

import pytest
from command_line import SMALL, SMALL_PROMPTS, Provider, ids_of, run_command
from torture import SEED, record, times

from millstream.engine.runs.run_folder import manifest_hash

pytestmark = [pytest.mark.needs_benchmark("millstone"), pytest.mark.timeout(3600)]

STATES = times(24, 1_000)


def cut(folder: Path, random: Random) -> int:
    """Leaves the folder as a cut before the run's end does, and returns how many answers its journal still has."""
    path = folder / "records.jsonl"
    data = path.read_bytes()
    at = random.randrange(len(data) + 1)
    # A file system may have written down a file's new length before the data: these bytes read as zeros.
    zeros = random.choice((0, 1, 512, 4096))
    path.write_bytes(data[:at] + bytes(min(zeros, len(data) - at)))
    manifest = json.loads((folder / "manifest.json").read_bytes()) | {"ended": None}
    (folder / "manifest.json").write_text(json.dumps(manifest | {"manifest_hash": manifest_hash(manifest)}))
    (folder / "scores.json").unlink()
    return data[:at].count(b"\n")


def test_after_a_power_cut_the_same_command_finishes_and_pays_for_no_kept_answer_again(
    provider: Provider, tmp_path: Path
) -> None:
    where = ("--model", "sim/open", "--base-url", provider.base_url, "--cache", "cache", "--no-progress")
    asked = ("run", "millstone", *SMALL, *where, "--no-report", "--out", "run")
    whole, home = tmp_path / "whole", tmp_path / "home"
    whole.mkdir()
    assert run_command(whole, *asked).code == 0
    sent_again = 0
    for number in range(STATES):
        seed = f"{SEED}/{number}"
        random = Random(seed)
        shutil.copytree(whole, home)
        kept = cut(home / "run", random)
        is_cache_lost = random.random() < 0.3
        if is_cache_lost:
            shutil.rmtree(home / "cache")
        before = provider.calls()
        done = run_command(home, *asked)
        assert done.code == 0, f"seed {seed}: {done.err}"
        assert len(set(ids_of(home / "run"))) == len(ids_of(home / "run")) == SMALL_PROMPTS, f"seed {seed}"
        # What the cache holds is free; without it, a line in the journal is.
        sent = provider.calls() - before
        assert sent == (SMALL_PROMPTS - kept if is_cache_lost else 0), f"seed {seed}: {sent} sent, {kept} lines kept"
        sent_again += sent
        proof = run_command(home, "verify", "run")
        assert proof.code == 0, f"seed {seed}: {proof.out}"
        shutil.rmtree(home)
    record(
        "1",
        STATES,
        STATES,
        f"journals cut or zeroed, {sent_again} lost answers asked again",
        f"{SEED}/0 to {SEED}/{STATES - 1}",
    )
