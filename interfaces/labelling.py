"""The dialogue in which a person labels answers at a terminal, one at a time and by whole lines.

Owns what is shown, the keys and the order. Puts the terminal into no mode of its own, so that no end of the process
leaves it in one. Shows no reading of ours; knows neither how answers are drawn nor where labels are kept.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ..bench.millstone.review import Label
from .output import inert, note

_Asked = Literal["A", "B", "other", "skip", "undo", "quit"]
_KEYS: dict[str, _Asked] = {"A": "A", "B": "B", "O": "other", "S": "skip", "U": "undo", "Q": "quit"}
_MARGIN = "| "
_LINES_LEAST = 4
# Below the text stand how much is left, an empty line and the prompt.
_LINES_BELOW = 3
_COLUMNS_LEAST = 10


@dataclass(frozen=True)
class Shown:
    """What is shown of one answer. `question` is empty where the data set can't be reached."""

    issue: str
    question: str
    text: str


class Labels(Protocol):
    """Where labels are kept, by the place of their answer. What `set_label` was given is safe when it returns."""

    @property
    def labelled(self) -> int: ...

    def __len__(self) -> int: ...

    def label(self, at: int) -> Label | None: ...

    def set_label(self, at: int, label: Label | None) -> None: ...


class Terminal(Protocol):
    """Lines out and lines in. `ask` gives None once there is nobody to ask."""

    def size(self) -> tuple[int, int]: ...

    def say(self, text: str) -> None: ...

    def ask(self, prompt: str) -> str | None: ...


class Screen:
    """The terminal behind stdin and stderr: stdout is left to results."""

    def size(self) -> tuple[int, int]:
        """Columns and lines, as they are now."""
        from rich.console import Console

        found = Console(stderr=True).size
        return found.width, found.height

    def say(self, text: str) -> None:
        note(text)

    def ask(self, prompt: str) -> str | None:
        try:
            sys.stderr.write(prompt)
            sys.stderr.flush()
            line = sys.stdin.buffer.readline()
        except OSError:  # the terminal has gone
            return None
        if not line:
            note("")
            return None
        return line.decode(sys.stdin.encoding or "utf-8", "replace").strip()


def hold(shown: Sequence[Shown], labels: Labels, terminal: Terminal, kept_in: str) -> None:
    """Ask for the labels that are missing until all are given or the person leaves. Each is kept before the next is
    asked for."""
    dialogue = _Dialogue(shown, labels, terminal)
    if not dialogue.waiting:
        return
    dialogue.explain(f"Every label is saved at once in {kept_in}; the same command goes on where you stop.")
    while dialogue.waiting or dialogue.may_undo_the_last():
        if not dialogue.take_one():
            break
    rest = "; the same command asks for the rest" if labels.labelled < len(labels) else ""
    terminal.say(f"\n{labels.labelled:,} of {len(labels):,} are labelled{rest}")


class _Dialogue:
    """`waiting` are the places still to be asked, `passed` those that were before, the latest last."""

    def __init__(self, shown: Sequence[Shown], labels: Labels, terminal: Terminal) -> None:
        self._shown = shown
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
        told = (
            "Which position does the answer take? A or B; O: another, none or both; S: skip it; U: undo the last; "
            f"M: more of a long answer; Q: quit. End each with Enter. {more}"
        )
        self._terminal.say("\n".join(wrapped(told.strip(), columns)))

    def take_one(self) -> bool:
        """Show the next answer and do what is asked; False is the end."""
        asked = self._ask(_Pages(self._page_lines(), self._terminal.size()[1]))
        if asked == "quit":
            return False
        if asked == "undo":
            self._undo()
            return True
        at = self.waiting.pop(0)
        if asked != "skip":
            self._labels.set_label(at, asked)
        self.passed.append(at)
        return True

    def may_undo_the_last(self) -> bool:
        """After the last answer, which no next one gives a chance to undo. True if it is asked for again."""
        while True:
            said = self._terminal.ask("That was the last: U undo, Enter end > ")
            if not said or said.upper() == "Q":
                return False
            if said.upper() == "U":
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

    def _page_lines(self) -> list[str]:
        at = self.waiting[0]
        columns, _ = self._terminal.size()
        one = self._shown[at]
        head = f"{at + 1:,} of {len(self._labels):,} ({self._labels.labelled:,} labelled): {one.issue}"
        lines = wrapped(head, columns)
        if one.question:
            lines += wrapped(one.question, columns)
        # The margin tells the model's words from ours, whatever they imitate.
        return [*lines, "", *(_MARGIN + line for line in wrapped(one.text, columns - len(_MARGIN)))]

    def _ask(self, pages: _Pages) -> _Asked:
        self._terminal.say("\n" + pages.turn())
        keys = "A, B, O, S, U, M, Q" if pages.are_several else "A, B, O, S, U, Q"
        while True:
            said = self._terminal.ask(f"{keys} or ? > ")
            if said is None:
                return "quit"
            if said.upper() in _KEYS:
                return _KEYS[said.upper()]
            if said == "?":
                self.explain()
            elif said.upper() == "M" and pages.are_several:
                self._terminal.say(pages.turn())
            else:
                came = "nothing" if not said else repr(said if len(said) <= 20 else f"{said[:19]}…")
                self._terminal.say(f"expected {keys} or ?, got {came}")


class _Pages:
    """Lines in parts that fit on a screen; after the last part comes the first again."""

    def __init__(self, lines: Sequence[str], height: int) -> None:
        self._lines = lines
        self._room = max(_LINES_LEAST, height - _LINES_BELOW)
        self._at = 0

    @property
    def are_several(self) -> bool:
        return len(self._lines) > self._room

    def turn(self) -> str:
        """The next part, and how much comes after it."""
        if self._at >= len(self._lines):
            self._at = 0
        part = self._lines[self._at : self._at + self._room]
        self._at += self._room
        left = len(self._lines) - self._at
        if not self.are_several:
            return "\n".join(part)
        return "\n".join([*part, f"({left:,} more lines: M)" if left > 0 else "(the end; M: from the beginning)"])


def wrapped(text: str, columns: int) -> list[str]:
    """The text as lines that a terminal obeys nothing of and that are no wider than so many columns."""
    from rich.console import Console
    from rich.text import Text

    width = max(columns, _COLUMNS_LEAST)
    console = Console(width=width)
    lines: list[str] = []
    for line in text.splitlines():
        whole = Text(inert(line.expandtabs(4)))
        lines += [part.plain.rstrip() for part in whole.wrap(console, width, overflow="fold")] or [""]
    return lines
