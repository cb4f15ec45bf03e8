"""Tables and lines of plain text, for terminals and files. Pure: nothing is printed here."""

from __future__ import annotations

from collections.abc import Sequence

_COLUMNS_LEAST = 10


def inert(text: str) -> str:
    """Returns the text with every unprintable character replaced, so that a terminal obeys none of it."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def cut(text: str, length: int) -> str:
    """Returns the text, shortened to `length` characters with an ellipsis at its end where it is longer."""
    return text if len(text) <= length else f"{text[: max(0, length - 1)]}…"


def table(rows: Sequence[Sequence[str]], lean: Sequence[int] = (0,)) -> str:
    """Columns under each other: those in `lean` are names and lean left, the others are numbers and lean right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in lean else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def printable(name: str) -> str:
    """A model's name is its user's own, but it must not move the cursor or take two cells a character."""
    return "".join(character if character.isascii() and character.isprintable() else "?" for character in name)


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Texts under each other, all leaning left."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def wrapped(text: str, columns: int) -> list[str]:
    """Returns the text as lines at most `columns` wide, without characters that a terminal would obey."""
    from rich.console import Console
    from rich.text import Text

    width = max(columns, _COLUMNS_LEAST)
    console = Console(width=width)
    lines: list[str] = []
    for line in text.splitlines():
        whole = Text(inert(line.expandtabs(4)))
        lines += [part.plain.rstrip() for part in whole.wrap(console, width, overflow="fold")] or [""]
    return lines
