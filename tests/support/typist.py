"""A person who types at a real terminal, in front of a `review` in a process of its own."""

from __future__ import annotations

import codecs
import os
import re
import select
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from command_line import COMMAND, environment
from terminals import terminal

PROMPT = re.compile(r"or \? > $")


class Typist:
    """A person at a terminal of so many columns and lines."""

    def __init__(self, home: Path, arguments: tuple[str, ...], columns: int, lines: int) -> None:
        self._ours, theirs = terminal(columns, lines)
        self._before = termios.tcgetattr(theirs)
        self._theirs = theirs
        self.process = subprocess.Popen(
            [*COMMAND, "review", *arguments],
            cwd=home,
            env=environment(home, TERM="xterm-256color", PYTHONIOENCODING="utf-8"),
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
        )
        self.seen = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def await_prompt(self, prompt: re.Pattern[str] = PROMPT) -> str:
        """What came on the screen until it asks."""
        got = ""
        deadline = time.monotonic() + 30
        while not prompt.search(got):
            assert time.monotonic() < deadline and self.process.poll() is None, got
            if select.select([self._ours], [], [], 0.1)[0]:
                got += self._decoder.decode(os.read(self._ours, 65_536))
        self.seen += got
        return got

    def type(self, line: str) -> str:
        """Type a line and read on to the next prompt."""
        os.write(self._ours, line.encode() + b"\n")
        return self.await_prompt()

    def leave(self, last: bytes = b"Q\n") -> str:
        """What stdout holds in the end."""
        os.write(self._ours, last)
        assert self.process.stdout is not None
        out = self.process.stdout.read().decode()
        self.process.wait(timeout=30)
        return out

    def is_as_it_was(self) -> bool:
        return termios.tcgetattr(self._theirs) == self._before

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=30)
        if self.process.stdout is not None:
            self.process.stdout.close()
        os.close(self._ours)
        os.close(self._theirs)


@contextmanager
def at_a_terminal(home: Path, *arguments: str, columns: int = 80, lines: int = 24) -> Iterator[Typist]:
    named = () if "--rater" in arguments else ("--rater", "ann")
    typist = Typist(home, ("run", *arguments, *named), columns, lines)
    try:
        yield typist
    finally:
        typist.close()
