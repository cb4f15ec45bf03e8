"""A real terminal of so many columns, and what it gets from whoever writes to it."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
from collections.abc import Iterator


def terminal(columns: int, lines: int = 24) -> tuple[int, int]:
    """Our side of a new one, and the side that a process is given."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    return ours, theirs


def pieces(ours: int) -> Iterator[bytes]:
    """All that it gets, as it comes, until nobody holds the other side any more; then our side is closed too."""
    try:
        while piece := os.read(ours, 65_536):
            yield piece
    except OSError:  # how Linux says that the other side has closed
        pass
    finally:
        os.close(ours)
