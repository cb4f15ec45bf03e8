"""Lines painted over on a terminal by as little work as it takes: for programs whose loop must not wait for a screen.

Owns the escape sequences. The cursor is never hidden, so that no end of the process leaves a terminal without one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TextIO

from .progress_lines import Line, Tone

WIDTH_MIN = 20
_CODES: dict[Tone, str] = {"plain": "", "strong": "1", "good": "32", "bad": "31", "faint": "90"}
# For terminals whose encoding has no better signs.
_ASCII = str.maketrans("━─…–", "=-~-")

Draw = Callable[[int], Sequence[Line]]
"""The lines for a width."""


def can_move_cursor(stream: TextIO) -> bool:
    if not stream.isatty():
        return False
    from rich.console import Console

    return not Console(file=stream).is_dumb_terminal


class Screen:
    """What stands on the terminal now, and what is to stand there."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._stream: TextIO | None = stream
        # It knows the terminal; it paints too slowly.
        self._console = Console(file=stream)
        self._is_ascii = self._console.options.ascii_only
        self._height = 0

    def paint(self, draw: Draw) -> None:
        size = self._console.size
        lines = list(draw(max(WIDTH_MIN, size.width - 1)))[: max(1, size.height - 1)]
        self._write(self._home() + "\n".join(self._coded(line) + "\x1b[K" for line in lines) + "\x1b[J")
        self._height = len(lines)

    def clear(self) -> None:
        """For what is to stand above: the next painting begins below it."""
        if self._height:
            self._write(self._home() + "\x1b[J")
            self._height = 0

    def end(self, draw: Draw) -> None:
        self.paint(draw)
        self._write("\n")
        self._height = 0

    def _home(self) -> str:
        return "\r" + (f"\x1b[{self._height - 1}A" if self._height > 1 else "")

    def _coded(self, line: Line) -> str:
        if self._console.no_color:
            text = "".join(piece.text for piece in line)
        else:
            text = "".join(
                f"\x1b[{_CODES[piece.tone]}m{piece.text}\x1b[0m" if _CODES[piece.tone] else piece.text for piece in line
            )
        return text.translate(_ASCII) if self._is_ascii else text

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            self._stream = None  # the terminal is gone
