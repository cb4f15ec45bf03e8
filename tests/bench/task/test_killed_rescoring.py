"""A rescoring that was killed between records and manifest leaves nothing that is taken for the run's scores."""

from __future__ import annotations

import shutil
from pathlib import Path

from command_line import CommandLine, Provider

TASK = """
import millstream as ms

rows = [{"id": f"r{n}", "n": n} for n in range(8)]
score = {"right": ms.regex("prompt [0-7]"), "is_long": lambda reply, row: 1.0}
mine = ms.Task(data=rows, prompt="Number {n}?", score=score)
"""
HALF = ("records-1.jsonl", "scores-1.json", "manifest-1.json", "records.jsonl")


def test_what_a_killed_rescoring_left_is_a_mistake_and_is_put_back_by_the_next(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(TASK)
    (tmp_path / "other.py").write_text(TASK.replace("1.0", "0.25"))
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--no-report")
    assert cli("run", "mine.py", "--model", "sim/open", *where, "--out", "run").code == 0
    run, whole, half = (tmp_path / name for name in ("run", "whole", "half"))
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
    (tmp_path / "mine.py").write_text(TASK)
    (tmp_path / "other.py").write_text(TASK.replace("1.0", "0.25"))
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--no-report")
    assert cli("run", "mine.py", "--model", "sim/open", *where, "--out", "run").code == 0
    run = tmp_path / "run"
    # The run went on after the kill: its manifest is another.
    (run / "manifest-1.json").write_text("{}")
    (run / "records-1.jsonl").write_text("kept\n")
    assert cli("rescore", "run", "--task", "other.py", "--no-report").code == 0
    assert (run / "records-1.jsonl").read_text() == "kept\n"
    assert (run / "records-2.jsonl").exists() and cli("verify", "run").code == 0
