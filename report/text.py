"""Tables and lines of plain text, for terminals and files. Pure: nothing is printed here."""

from __future__ import annotations

from collections.abc import Sequence

_COLUMNS_LEAST = 10


def inert(text: str) -> str:
    """Returns the text with every unprintable character replaced, so that it can't control a terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def cut(text: str, length: int) -> str:
    """Returns the text, shortened to `length` characters with an ellipsis at its end if it is longer."""
    return text if len(text) <= length else f"{text[: max(0, length - 1)]}…"


def table(rows: Sequence[Sequence[str]], lean: Sequence[int] = (0,)) -> str:
    """Returns rows as lines of aligned columns: those in `lean` (numbers from 0) hold names and are aligned left, the
    others hold numbers and are aligned right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in lean else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def printable(name: str) -> str:
    """Returns a model's name with `?` for every character that is not printable ASCII, so that it can't move the cursor
    and takes one cell for each character."""
    return "".join(character if character.isascii() and character.isprintable() else "?" for character in name)


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Returns rows as lines of columns, all aligned left."""
    return table(rows, range(len(rows[0])))


def wrapped(text: str, columns: int) -> list[str]:
    """Returns the text as lines of at most `columns` characters (10 at least), without terminal controls."""
    from rich.console import Console
    from rich.text import Text

    width = max(columns, _COLUMNS_LEAST)
    console = Console(width=width)
    lines: list[str] = []
    for line in text.splitlines():
        whole = Text(inert(line.expandtabs(4)))
        lines += [part.plain.rstrip() for part in whole.wrap(console, width, overflow="fold")] or [""]
    return lines
