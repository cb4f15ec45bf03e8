"""`review` at a real terminal, in a process of its own: what is seen there, and what outlasts its end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from answered_run import answered_run
from command_line import COMMAND, environment
from terminals import terminal
from typist import at_a_terminal

from millstream.bench.evaluation.reading.labelling.label_lines import labels_that_count, read_label_lines
from millstream.bench.millstone.grid import GridItem

LONG = "漢字 and a word that is quite long, " * 40


def text_of(item: GridItem) -> str:
    if item.trial == 0 and item.config == "baseline":
        return f"\x1b[2J\x1b]0;title\x07<script>\rposition <<A>>\n\n{LONG}"
    return f"position <<{'AB'[item.template % 2]}>>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return answered_run(tmp_path / "run", text_of)


def labels_in(folder: Path, rater: str = "ann") -> list[str | None]:
    """One rater's labels that count, in the order in which they were given."""
    lines = labels_that_count(read_label_lines(folder / "labels.jsonl"))
    return [line.label for line in lines if line.rater == rater]


def test_a_person_labels_at_the_terminal_and_is_told_the_agreement(folder: Path, tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "--sample", "6") as person:
        first = person.await_prompt()
        assert "1 of 6 (0 labelled); " in first and "\r\n| position <<" in first
        assert "You must" in first or "Choose" in first or "Output" in first, "the question says what A and B mean"
        for text in ("A", "b", "o", "U", "S"):
            person.type(text)
        out = person.leave()
        assert person.process.returncode == 0
        assert person.is_as_it_was()
    assert labels_in(folder) == ["A", "B"]
    assert out.startswith("run/labels.jsonl: 2 of 6 answers are labelled by ann\n") and "few labels" in out
    assert not (folder / "review.csv").exists()
    assert "stance" not in person.seen and "letter" not in person.seen


def test_every_label_outlasts_a_kill_and_the_next_start_goes_on(folder: Path, tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "--sample", "8") as person:
        person.await_prompt()
        for number, label in enumerate(("A", "B", "O"), 1):
            person.type(label)
            assert labels_in(folder) == ["A", "B", "other"][:number]
        person.process.send_signal(signal.SIGKILL)
        person.process.wait(timeout=30)
        assert person.is_as_it_was()
    with at_a_terminal(tmp_path) as person:
        assert "4 of 8 (3 labelled); " in person.await_prompt()
        assert "3 of 8 (2 labelled); " in person.type("U")
        person.leave()
    assert labels_in(folder) == ["A", "B"]


@pytest.mark.parametrize(("end", "code"), [(b"\x04", 0), (b"q\n", 0)])
def test_the_end_of_input_is_a_way_to_leave(folder: Path, tmp_path: Path, end: bytes, code: int) -> None:
    with at_a_terminal(tmp_path, "--sample", "3") as person:
        person.await_prompt()
        person.type("A")
        assert "1 of 3 answers are labelled" in person.leave(end)
        assert person.process.returncode == code
    assert labels_in(folder) == ["A"]


def test_an_interrupt_keeps_every_label_and_ends_with_130(folder: Path, tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "--sample", "3") as person:
        person.await_prompt()
        person.type("A")
        person.process.send_signal(signal.SIGINT)
        assert person.process.wait(timeout=30) == 130
        assert person.is_as_it_was()
    assert labels_in(folder) == ["A"]


def test_what_a_model_says_cannot_work_the_terminal(folder: Path, tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "--sample", "66") as person:
        person.await_prompt()
        for _ in range(65):
            person.type("S")
        person.leave()
    assert "<script>" in person.seen
    assert not re.search(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]", person.seen)
    assert "\N{REPLACEMENT CHARACTER}[2J" in person.seen


def test_with_nobody_to_read_the_questions_nothing_is_asked(folder: Path, tmp_path: Path) -> None:
    ours, theirs = terminal(80)
    try:
        done = subprocess.run(
            [*COMMAND, "review", "run", "--sample", "3"],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.stdout.startswith(
        "run/labels.jsonl: no answer is labelled yet: run this at a terminal, or write a sheet"
    )
    assert done.stderr == ""
