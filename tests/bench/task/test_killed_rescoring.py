"""A rescoring that was killed between records and manifest leaves nothing that is taken for the run's scores."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from command_line import CommandLine, Provider
from places import small_disk

TASK = """
import millstream as ms

rows = [{"id": f"r{n}", "n": n} for n in range(8)]
score = {"right": ms.regex("prompt [0-7]"), "is_long": lambda reply, row: 1.0}
mine = ms.Task(data=rows, prompt="Number {n}?", score=score)
"""
PAGE = os.sysconf("SC_PAGE_SIZE")
HALF = ("records-1.jsonl", "scores-1.json", "manifest-1.json", "records.jsonl")


def made_run(cli: CommandLine, provider: Provider, tmp_path: Path) -> Path:
    """Makes a run with the task of mine.py; other.py has another scorer."""
    (tmp_path / "mine.py").write_text(TASK)
    (tmp_path / "other.py").write_text(TASK.replace("1.0", "0.25"))
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--no-report")
    assert cli("run", "mine.py", "--model", "sim/open", *where, "--out", "run").code == 0
    return tmp_path / "run"


def test_what_a_killed_rescoring_left_is_a_mistake_and_is_put_back_by_the_next(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    run, whole, half = made_run(cli, provider, tmp_path), tmp_path / "whole", tmp_path / "half"
    shutil.copytree(run, whole)
    assert cli("rescore", "whole", "--task", "other.py", "--no-report").code == 0
    shutil.copytree(run, half)
    for name in HALF:
        shutil.copyfile(whole / name, half / name)
    for verb in ("score", "resume"):
        done = cli(verb, "half")
        assert done.code == 5 and "a rescoring goes on or was killed" in done.err, (verb, done)
    done = cli("verify", "half")
    assert done.code == 5 and "manifest-1.json: a rescoring was killed" in done.out

    shutil.copytree(half, tmp_path / "again")
    done = cli("rescore", "half", "--task", "mine.py", "--no-report")
    assert done.code == 0 and "nothing was changed" in done.err
    for name in ("records.jsonl", "scores.json", "manifest.json"):
        assert (half / name).read_bytes() == (run / name).read_bytes()
    assert cli("verify", "half").code == 0

    done = cli("rescore", "again", "--task", "other.py", "--no-report")
    assert done.code == 0 and "8 of 8 answers have other scores" in done.err
    assert (tmp_path / "again/records-1.jsonl").read_bytes() == (run / "records.jsonl").read_bytes()
    assert cli("verify", "again").code == cli("verify", "whole").code == 0


def test_scores_that_a_killed_rescoring_kept_are_not_written_over(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    run = made_run(cli, provider, tmp_path)
    # The run went on after the kill: its manifest is another.
    (run / "manifest-1.json").write_text("{}")
    (run / "records-1.jsonl").write_text("kept\n")
    assert cli("rescore", "run", "--task", "other.py", "--no-report").code == 0
    assert (run / "records-1.jsonl").read_text() == "kept\n"
    assert (run / "records-2.jsonl").exists() and cli("verify", "run").code == 0


@pytest.mark.process
def test_a_disk_that_fills_up_while_records_are_written_leaves_the_scores_of_before(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    made = made_run(cli, provider, tmp_path)
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        run = Path(shutil.copytree(made, disk / "run"))
        before = (run / "scores.json").read_bytes()
        kept = (run / name for name in ("records.jsonl", "scores.json", "manifest.json"))
        pages = sum(-(-each.stat().st_size // PAGE) for each in kept)
        # Room for the files of before, and for no other page.
        (disk / "filler").write_bytes(bytes(PAGE * (os.statvfs(disk).f_bavail - pages)))
        done = cli("rescore", str(run), "--task", "other.py", "--no-report")
        assert done.code == 5 and done.err.count("\n") == 1 and "make room" in done.err, done
        assert (run / "scores.json").read_bytes() == before and not (run / "manifest-1.json").exists()
        assert cli("score", str(run)).code == cli("verify", str(run)).code == 0
