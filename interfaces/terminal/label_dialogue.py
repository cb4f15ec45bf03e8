"""The dialogue in which a person labels answers at a terminal, one at a time and by whole lines.

Owns the screen's contents, the keys and the order. Sets no terminal mode, so that no end of the process leaves one.
Shows no reading of ours; knows neither how answers are drawn nor where labels are kept.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

from ...bench.evaluation.door.kept_answer import Verdict
from ...bench.evaluation.door.label import Label, history_text, question_to
from ...report.text import wrapped
from .output import note

if TYPE_CHECKING:
    from ...bench.evaluation.reading.labelling.label_lines import RaterLabels

_SKIP, _UNDO, _MORE, _QUIT = "S", "U", "M", "Q"
_MARGIN = "| "
_LINES_LEAST = 4
# Below the text are a line with what is left, an empty line and the prompt.
_LINES_BELOW = 3
_COLUMNS_LEAST = 10
# An interrupt is seen after this time at the latest.
_SIGNALS_SEEN_S = 0.2


class Screen:
    """The terminal on stdin and stderr. Stdout is left to results."""

    def size(self) -> tuple[int, int]:
        """Returns the terminal's present width in columns and height in lines."""
        from rich.console import Console

        size = Console(stderr=True).size
        return size.width, size.height

    def say(self, text: str) -> None:
        note(text)

    def ask(self, prompt: str) -> str | None:
        """Returns the line that the person types; None at the end of the input."""
        try:
            sys.stderr.write(prompt)
            sys.stderr.flush()
            # A signal just before the read begins does not end it, so it begins once there is a line.
            while not select.select([sys.stdin], (), (), _SIGNALS_SEEN_S)[0]:
                pass
            line = sys.stdin.buffer.readline()
        except OSError:  # the terminal has gone
            return None
        if not line:
            note("")
            return None
        return line.decode(sys.stdin.encoding or "utf-8", "replace").strip()


def hold(answers: Sequence[Label], labels: RaterLabels, terminal: Screen, kept_in: str) -> None:
    """Asks for the missing labels until all are given or the person leaves. Each is saved before the next question;
    `kept_in` is where, for the message."""
    dialogue = _Dialogue(answers, labels, terminal)
    if not dialogue.waiting:
        return
    dialogue.explain(f"Every label is saved at once in {kept_in}; the same command goes on where you stop.")
    while dialogue.waiting or dialogue.may_undo_the_last():
        if not dialogue.take_one():
            break
    rest = "; the same command asks for the rest" if labels.labelled < len(labels) else ""
    terminal.say(f"\n{labels.labelled:,} of {len(labels):,} are labelled{rest}")


class _Dialogue:
    """The order of the questions. `waiting` are the numbers of answers to be labelled, `passed` those shown, latest
    last."""

    def __init__(self, answers: Sequence[Label], labels: RaterLabels, terminal: Screen) -> None:
        self._answers = answers
        self._labels = labels
        self._terminal = terminal
        done = [at for at in range(len(labels)) if labels.label(at) is not None]
        begin = done[-1] + 1 if done else 0
        # On from the last label; what was skipped before it comes at the end.
        order = (*range(begin, len(labels)), *range(begin))
        self.waiting = [at for at in order if labels.label(at) is None]
        self.passed = done

    def explain(self, more: str = "") -> None:
        columns, _ = self._terminal.size()
        text = (
            f"{question_to(self._answers[self.waiting[0]])}; S: skip it; U: undo the last; M: more of a long answer; "
            f"Q: quit. End each with Enter. {more}"
        )
        self._terminal.say("\n".join(wrapped(text.strip(), columns)))

    def take_one(self) -> bool:
        """Shows the next answer and carries out the person's command. Returns False if that was to quit or the input
        ended."""
        height = self._terminal.size()[1]
        lines = self._page_lines(height)
        command = self._ask(_pages(lines, _room(height)), are_several=len(lines) > _room(height))
        if command == _QUIT:
            return False
        if command == _UNDO:
            self._undo()
            return True
        at = self.waiting.pop(0)
        if isinstance(command, Verdict):
            self._labels.set_label(at, command)
        self.passed.append(at)
        return True

    def may_undo_the_last(self) -> bool:
        """Offers to undo the last label, after the last answer. Returns True if it was undone."""
        while True:
            word = self._terminal.ask("That was the last: U undo, Enter end > ")
            if not word or word.upper() == _QUIT:
                return False
            if word.upper() == _UNDO:
                self._undo()
                return True

    def _undo(self) -> None:
        if not self.passed:
            self._terminal.say("nothing to undo")
            return
        at = self.passed.pop()
        if self._labels.label(at) is not None:
            self._labels.set_label(at, None)
        self.waiting.insert(0, at)

    def _page_lines(self, height: int) -> list[str]:
        """Returns the lines to show. The conversation before the question stands above it if all fits on a screen of
        this height, else at the end."""
        at = self.waiting[0]
        columns, _ = self._terminal.size()
        one = self._answers[at]
        head = f"{at + 1:,} of {len(self._labels):,} ({self._labels.labelled:,} labelled)"
        lines = wrapped("; ".join((head, *(f"{name}: {text}" for name, text in one.about.items()))), columns)
        exchange = wrapped(one.question, columns) if one.question else []
        exchange += ["", *_margined(one.text, columns)]
        if not one.history:
            return [*lines, *exchange]
        turns = "1 earlier turn" if len(one.history) == 1 else f"{len(one.history)} earlier turns"
        earlier = [
            f"{turns}:",
            *_margined(history_text(one.history), columns),
        ]
        whole = [*lines, *earlier, "", *exchange]
        if len(whole) <= _room(height):
            return whole
        return [
            *lines,
            f"({turns} after the answer: M)",
            *exchange,
            "",
            *earlier,
        ]

    def _ask(self, pages: Iterator[str], *, are_several: bool) -> Verdict | str:
        """Returns the person's label, or one of S, U and Q."""
        self._terminal.say("\n" + next(pages))
        answer = self._answers[self.waiting[0]]
        choices = {choice.letter: Verdict(choice.name) for choice in answer.choices}
        steps = {
            choice.letter + step.digit: Verdict(choice.name, confidence=step.value)
            for choice in answer.choices
            for step in answer.certainties
        }
        keys = ", ".join((*choices, _SKIP, _UNDO, *([_MORE] if are_several else []), _QUIT))
        while True:
            word = self._terminal.ask(f"{keys} or ? > ")
            if word is None:
                return _QUIT
            key = word.upper()
            if key in choices:
                return choices[key]
            if key in steps:
                return steps[key]
            if key in (_SKIP, _UNDO, _QUIT):
                return key
            if word == "?":
                self.explain()
            elif key == _MORE and are_several:
                self._terminal.say(next(pages))
            else:
                excerpt = "nothing" if not word else repr(word if len(word) <= 20 else f"{word[:19]}…")
                self._terminal.say(f"expected {keys} or ?, got {excerpt}")


def _pages(lines: Sequence[str], room: int) -> Iterator[str]:
    """Yields the lines in parts of at most `room`, each with how many lines follow it; after the last part the first
    comes again."""
    for begin in cycle(range(0, len(lines), room)):
        left = len(lines) - begin - room
        below = [f"({left:,} more lines: M)" if left > 0 else "(the end; M: from the beginning)"]
        yield "\n".join([*lines[begin : begin + room], *(below if len(lines) > room else ())])


def _room(height: int) -> int:
    """Returns how many lines of text a screen of this height has room for."""
    return max(_LINES_LEAST, height - _LINES_BELOW)


def _margined(text: str, columns: int) -> list[str]:
    """Returns a model's words as lines with a margin, which tells them from ours, whatever they imitate."""
    return [_MARGIN + line for line in wrapped(text, columns - len(_MARGIN))]
