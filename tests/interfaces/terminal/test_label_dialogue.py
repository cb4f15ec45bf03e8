"""The dialogue: its keys, its order, its pages; with a terminal that is a list of lines."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from terminals import terminal

from millstream.bench.evaluation.door.kept_answer import Verdict
from millstream.bench.evaluation.door.label import Exchange, Label, LabelCertainty, LabelChoice
from millstream.interfaces.terminal.label_dialogue import Screen, hold
from millstream.report.text import wrapped

CHOICES = (LabelChoice("A"), LabelChoice("B"), LabelChoice("O", "other"))
ASK = "Which position does the answer take? A or B; O: another, none or both"


def one(text: str, question: str = "Tea? A or B.") -> Label:
    return Label(text=text, choices=CHOICES, question=question, about={"issue": "tea"}, ask=ASK)


class Kept:
    """Labels in memory; `history` is every one that was set."""

    def __init__(self, labels: list[str | None]) -> None:
        self.labels = labels
        self.history: list[tuple[int, str | None]] = []
        self.given: list[Verdict | None] = []

    @property
    def labelled(self) -> int:
        return sum(label is not None for label in self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def label(self, at: int) -> Verdict | None:
        name = self.labels[at]
        return None if name is None else Verdict(name)

    def set_label(self, at: int, given: Verdict | None) -> None:
        self.given.append(given)
        name = None if given is None else given.label
        self.labels[at] = name
        self.history.append((at, name))


class Script:
    """Types these lines, then is gone. What is said between two of them is one entry of `heard`."""

    def __init__(self, lines: str, columns: int = 80, height: int = 24) -> None:
        self.lines = lines.split(" ") if lines else []
        self.heard: list[str] = [""]
        self.prompts: list[str] = []
        self._size = columns, height

    def size(self) -> tuple[int, int]:
        return self._size

    def say(self, text: str) -> None:
        self.heard[-1] += text + "\n"

    def ask(self, prompt: str) -> str | None:
        self.prompts.append(prompt)
        self.heard.append("")
        return self.lines.pop(0) if self.lines else None


def shown(count: int) -> list[Label]:
    return [one(f"text {number}") for number in range(1, count + 1)]


def typed(lines: str, labels: list[str | None] | int = 3) -> tuple[Kept, Script]:
    kept = Kept([None] * labels if isinstance(labels, int) else labels)
    script = Script(lines)
    hold(shown(len(kept)), cast(Any, kept), cast(Any, script), "run/review.csv")
    return kept, script


def order(script: Script) -> list[int]:
    """The answers shown, by number."""
    return [n for entry in script.heard for n in range(1, 10) if f"| text {n}\n" in entry]


def test_each_answer_is_asked_for_and_its_label_kept() -> None:
    kept, script = typed("A b O")
    assert kept.labels == ["A", "B", "other"]
    assert order(script) == [1, 2, 3]
    assert "1 of 3 (0 labelled); issue: tea\nTea? A or B.\n\n| text 1\n" in script.heard[0]
    assert "2 of 3 (1 labelled)" in script.heard[1]
    assert "3 of 3 are labelled\n" in script.heard[-1]


def test_nothing_is_said_of_what_we_read_and_the_keys_are_told_at_the_start() -> None:
    _, script = typed("?")
    for entry in script.heard[:2]:
        for told in ("A or B", "O: another", "S: skip", "U: undo", "M: more", "Q: quit", "Enter"):
            assert told in " ".join(entry.split())
    assert "saved at once in run/review.csv" in " ".join(script.heard[0].split())
    assert script.prompts[0] == "A, B, O, S, U, Q or ? > "


def test_a_skipped_answer_stays_without_a_label_and_is_asked_for_next_time() -> None:
    kept, script = typed("S A A U")
    assert order(script) == [1, 2, 3, 3]
    kept, script = typed("S A A", 3)
    assert kept.labels == [None, "A", "A"]
    assert "2 of 3 are labelled; the same command asks for the rest\n" in script.heard[-1]
    again, script = typed("B", kept.labels)
    assert (order(script), again.labels) == ([1], ["B", "A", "A"])


def test_undo_takes_the_last_label_back_and_asks_again() -> None:
    kept, script = typed("A A U U B O O")
    assert order(script) == [1, 2, 3, 2, 1, 2, 3]
    assert kept.labels == ["B", "other", "other"]
    assert kept.history[:4] == [(0, "A"), (1, "A"), (1, None), (0, None)]


def test_undo_goes_back_over_a_skipped_answer() -> None:
    kept, script = typed("S U A Q")
    assert order(script) == [1, 2, 1, 2]
    assert kept.labels == ["A", None, None]


def test_the_last_label_can_be_undone_too() -> None:
    kept, script = typed("A B U O", 2)
    assert kept.labels == ["A", "other"]
    assert "That was the last" in script.prompts[2]
    assert order(script) == [1, 2, 2]
    kept, script = typed("A x Q", 1)
    assert kept.labels == ["A"] and len(script.prompts) == 3


def test_with_nothing_before_there_is_nothing_to_undo() -> None:
    kept, script = typed("U A Q")
    assert "nothing to undo" in script.heard[1]
    assert kept.labels == ["A", None, None] and kept.history == [(0, "A")]


def test_labels_of_an_earlier_start_can_be_undone_the_latest_first() -> None:
    kept, script = typed("U U O", ["A", "B", None])
    assert order(script) == [3, 2, 1, 2]
    assert kept.labels == ["other", None, None]


@pytest.mark.parametrize("end", ["A Q", "A q", "A"])
def test_quitting_keeps_what_was_labelled_and_the_next_start_goes_on(end: str) -> None:
    kept, script = typed(end)
    assert kept.labels == ["A", None, None]
    assert "1 of 3 are labelled; the same command asks for the rest\n" in script.heard[-1]
    again, script = typed("B", kept.labels)
    assert order(script)[0] == 2 and again.labels == ["A", "B", None]


def test_it_goes_on_after_the_last_label_and_comes_back_to_the_gaps() -> None:
    _, script = typed("A A A A", [None, "A", None, "B", None])
    assert order(script) == [5, 1, 3]


def test_where_all_are_labelled_nothing_is_asked() -> None:
    kept, script = typed("A", ["A", "B"])
    assert (script.prompts, script.heard, kept.history) == ([], [""], [])


@pytest.mark.parametrize("line", ["", "C", "AB", "yes", "1", "\x1b[A", "A,B", "M", "\uff21"])
def test_any_other_line_is_asked_again_and_labels_nothing(line: str) -> None:
    kept, script = typed(f"{line} B Q")
    assert "expected A, B, O, S, U, Q or ?, got " in script.heard[1]
    assert kept.history == [(0, "B")]


def test_a_long_answer_is_shown_a_screen_at_a_time_and_begins_again_at_its_end() -> None:
    kept = Kept([None])
    script = Script("M m M A", 40, 12)
    hold([one("\n".join(f"line {n}" for n in range(1, 21)), "Tea?")], cast(Any, kept), cast(Any, script), "l.csv")
    # 12 lines less three for what is left, an empty line and the prompt; three are the heading's.
    first = script.heard[0].partition("1 of 1")[2]
    assert first.endswith("| line 6\n(14 more lines: M)\n")
    assert script.heard[1].startswith("| line 7\n") and script.heard[1].endswith("| line 15\n(5 more lines: M)\n")
    assert script.heard[2].endswith("| line 20\n(the end; M: from the beginning)\n")
    assert script.heard[3].startswith("1 of 1 (0 labelled); issue: tea\n")
    assert script.prompts[0] == "A, B, O, S, U, M, Q or ? > "
    assert kept.labels == ["A"]


STEPS = (LabelCertainty("1", "clear", 1.0), LabelCertainty("2", "likely", 0.67))


def turn(*history: Exchange) -> Label:
    return Label(text="so", choices=CHOICES, question="Why?", history=history, certainties=STEPS)


def test_certainty_is_typed_with_the_letter_or_left_out() -> None:
    kept, script = Kept([None] * 3), Script("a2 B C1 O1")
    hold([turn()] * 3, cast(Any, kept), cast(Any, script), "l.jsonl")
    assert kept.given == [Verdict("A", confidence=0.67), Verdict("B"), Verdict("other", confidence=1.0)]
    assert "typed after the letter as A1, or left out: 1 clear (1), 2 likely (0.67)" in " ".join(
        script.heard[0].split()
    )
    assert "got 'C1'" in script.heard[3]


def test_the_conversation_stands_above_the_question_where_it_fits_and_else_after_the_answer() -> None:
    script = Script("Q")
    hold([turn(Exchange("First?", "yes"))], cast(Any, Kept([None])), cast(Any, script), "l.jsonl")
    assert "1 earlier turn:\n| Question: First?\n| \n| Answer: yes\n\nWhy?\n\n| so\n" in script.heard[0]
    script = Script("M Q", 80, 12)
    hold(
        [turn(Exchange("First?", "yes"), Exchange("Second?", "\n".join("xyz")))],
        cast(Any, Kept([None])),
        cast(Any, script),
        "l.jsonl",
    )
    first = script.heard[0].partition("1 of 1")[2]
    assert "(2 earlier turns after the answer: M)\nWhy?\n\n| so\n\n2 earlier turns:\n| Question: First?" in first
    assert "Second?" not in first and "| Answer: x\n| y\n| z\n" in script.heard[1]


def test_a_text_without_its_question_is_shown_alone() -> None:
    script = Script("Q")
    hold([one("position <<A>>", "")], cast(Any, Kept([None])), cast(Any, script), "l.csv")
    assert "1 of 1 (0 labelled); issue: tea\n\n| position <<A>>\n" in script.heard[0]


def test_a_text_cannot_pass_for_what_we_say() -> None:
    script = Script("Q")
    hold([one("x\n\n2 of 9 (1 labelled): tea\rA, B >", "")], cast(Any, Kept([None])), cast(Any, script), "l.csv")
    assert "| x\n| \n| 2 of 9 (1 labelled): tea\n| A, B >\n" in script.heard[0]


@given(st.text(), st.integers(1, 60))
def test_no_line_is_wider_than_the_screen_or_holds_what_a_terminal_obeys(text: str, columns: int) -> None:
    for line in wrapped(text, columns):
        assert line.isprintable()
        assert cell_len(line) <= max(columns, 10)


@given(st.text(alphabet="ab 漢字\n", max_size=200), st.integers(10, 60))
def test_wrapping_loses_no_word(text: str, columns: int) -> None:
    assert "".join("".join(wrapped(text, columns)).split()) == "".join(text.split())


def test_an_interrupt_that_does_not_end_a_read_ends_the_wait_for_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = terminal(80)

    def interrupt() -> None:
        # Another thread receives the signal, so a read in the main thread would go on, as it does after a signal that
        # arrives just before it begins.
        time.sleep(0.1)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        time.sleep(5)
        os.write(ours, b"A\n")

    with open(theirs, encoding="utf-8") as keyboard:
        monkeypatch.setattr("sys.stdin", keyboard)
        threading.Thread(target=interrupt, daemon=True).start()
        began = time.monotonic()
        # A shell starts what it sends to the background with the interrupt ignored.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                Screen().ask("> ")
        finally:
            signal.signal(signal.SIGINT, before)
        assert time.monotonic() - began < 4.0
