"""Paints a display on a stream: lines over each other on a terminal, one plain line that is written again in a
notebook, plain lines now and then in a log.

Owns the width, the escape sequences, colours and the rhythm of a log. Displays give it lines and know no stream. It
costs some tenths of a millisecond, since it paints in the loop that measures. The cursor is never hidden, so that no
end of the process leaves a terminal without one.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, TextIO

from ...report.text import cut

WIDTH_MIN = 20
LOG_FIRST_S, LOG_EVERY_S = 2.0, 10.0
GAP = "  "
_BAR_MIN, _BAR_MAX = 10, 40

Tone = Literal["plain", "strong", "good", "bad", "faint"]
_CODES: dict[Tone, str] = {"plain": "", "strong": "1", "good": "32", "bad": "31", "faint": "90"}
# For terminals whose encoding lacks these characters.
_ASCII = str.maketrans("━─…–", "=-~-")


class TextPiece(NamedTuple):
    """A text that is never torn between two lines."""

    text: str
    tone: Tone = "plain"


PaintedLine = tuple[TextPiece, ...]
Draw = Callable[[int], Sequence[PaintedLine]]
"""Returns the lines of a picture that is at most as wide as its argument."""


class Painter:
    """The painter of one display until `end`. `stream` None: paints nothing. While it paints over stderr, other output
    to stderr is written above the picture."""

    def __init__(self, stream: TextIO | None, now: float = 0.0) -> None:
        self._stream = stream
        self._next_log = now + LOG_FIRST_S
        self._height = 0
        # The length of a notebook's line. There a carriage return writes a line again, and nothing else moves back.
        self._length = 0
        self._is_notebook = type(stream).__module__.partition(".")[0] == "ipykernel"
        self._above: _LinesAbove | None = None
        self.is_screen = False
        if stream is not None and stream.isatty():
            from rich.console import Console

            self._console = Console(file=stream)
            self.is_screen = not self._console.is_dumb_terminal
        if (self.is_screen or self._is_notebook) and stream is sys.stderr:
            self._above = sys.stderr = _LinesAbove(self, stream)

    def is_due(self, now: float) -> bool:
        """Whether `show` would write something now; `now` is in seconds."""
        return self.is_screen or self._is_notebook or now >= self._next_log

    def show(self, draw: Draw, plain: Callable[[], Iterable[str]], now: float) -> None:
        """Paints the picture; into a log go the `plain` lines instead, some seconds after the last."""
        if self.is_screen:
            self.paint(draw)
        elif self._is_notebook:
            self._write_again(" | ".join(plain()))
        elif now >= self._next_log:
            self._next_log = now + LOG_EVERY_S
            self.log(plain())

    def paint(self, draw: Draw) -> None:
        size = self._console.size
        lines = list(draw(max(WIDTH_MIN, size.width - 1)))[: max(1, size.height - 1)]
        self._write(self._home() + "\n".join(self._coded(line) + "\x1b[K" for line in lines) + "\x1b[J")
        self._height = len(lines)

    def log(self, lines: Iterable[str]) -> None:
        self._write("".join(f"{line}\n" for line in lines))

    def clear(self) -> None:
        """Removes the picture: the next one begins where the cursor is then."""
        if self._height:
            self._write(self._home() + "\x1b[J")
            self._height = 0
        if self._length:
            self._write(f"\r{' ' * self._length}\r")
            self._length = 0

    def _write_again(self, line: str) -> None:
        self._write(f"\r{line.ljust(self._length)}")
        self._length = len(line)

    def end(self, draw: Draw, plain: Callable[[], Iterable[str]]) -> None:
        """Paints the last picture, or writes the last lines, and leaves the stream to others."""
        if self.is_screen:
            self.paint(draw)
            self._write("\n")
            self._height = 0
        else:
            self.clear()
            self.log(plain())
        self.close()

    def close(self) -> None:
        """Removes the picture, and leaves the stream to others."""
        self.clear()
        if self._above is not None:
            if sys.stderr is self._above:
                sys.stderr = self._above.stream
            self._above.write_rest()
            self._above = None
        self._stream = None

    def _home(self) -> str:
        return "\r" + (f"\x1b[{self._height - 1}A" if self._height > 1 else "")

    def _coded(self, line: PaintedLine) -> str:
        if self._console.no_color:
            text = "".join(piece.text for piece in line)
        else:
            text = "".join(
                f"\x1b[{_CODES[piece.tone]}m{piece.text}\x1b[0m" if _CODES[piece.tone] else piece.text for piece in line
            )
        return text.translate(_ASCII) if self._console.options.ascii_only else text

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        encoding = self._stream.encoding or "utf-8"
        try:
            self._stream.write(text.encode(encoding, "replace").decode(encoding))
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None  # the terminal or the log's reader is gone; the work matters more


class _LinesAbove(io.TextIOBase):
    """A stand-in for stderr: whole lines that are written to it go above the painter's picture."""

    def __init__(self, painter: Painter, stream: TextIO) -> None:
        self.stream = stream
        self._painter = painter
        self._rest = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.stream.encoding

    def isatty(self) -> bool:
        return self.stream.isatty()

    def fileno(self) -> int:
        return self.stream.fileno()

    def write(self, text: str) -> int:
        whole, newline, self._rest = (self._rest + text).rpartition("\n")
        if newline:
            self._painter.clear()
            self.stream.write(whole + newline)
            self.stream.flush()
        return len(text)

    def write_rest(self) -> None:
        if self._rest:
            self.stream.write(self._rest)


def packed(pieces: Iterable[TextPiece], width: int) -> list[PaintedLine]:
    """Returns the pieces in lines of at most `width` characters: one that does not fit begins a new line."""
    lines: list[list[TextPiece]] = []
    used = width
    for piece in pieces:
        piece = piece._replace(text=cut(piece.text, width))
        if lines and used + len(GAP) + len(piece.text) <= width:
            lines[-1] += (TextPiece(GAP), piece)
            used += len(GAP) + len(piece.text)
        else:
            lines.append([piece])
            used = len(piece.text)
    return [tuple(line) for line in lines]


def cropped(pieces: Sequence[TextPiece], width: int) -> PaintedLine:
    """Returns as many whole pieces as fit on one line."""
    lines = packed(pieces, width)
    return lines[0] if lines else ()


def bar_line(share: float | None, pieces: Sequence[TextPiece], width: int) -> PaintedLine:
    """Returns a bar that is full to `share`, and the pieces; these alone without room for it or a known share."""
    room = width - sum(len(GAP) + len(piece.text) for piece in pieces)
    if room < _BAR_MIN or share is None:
        return cropped(pieces, width)
    cells = min(room, _BAR_MAX)
    full = cells if share >= 1 else int(cells * share)
    behind = [part for piece in pieces for part in (TextPiece(GAP), piece)]
    return (TextPiece("━" * full, "good"), TextPiece("─" * (cells - full), "faint"), *behind)
