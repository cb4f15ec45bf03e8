"""Text that fits the width of a terminal: wide tables in bands of columns, long sentences in several lines.

Pure. A table is known by its shape: lines whose columns are two blanks or more apart. No word, number or command is
ever divided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

# Below this a terminal is too narrow for any layout.
WIDTH_MIN = 20
_GAP = re.compile(r"\S {2,}\S")
# A command, in backticks or up to the end of its clause, is pasted as a whole; all else is divided at blanks.
_UNITS = re.compile(r"`[^`]*`[^\s]*|\bmillstream [a-z]+(?![a-z:]).*?(?:;(?= )|$)|\S+")


def fitted(text: str, width: int) -> str:
    """Returns the text with no line longer than `width`, but for single words and commands that are longer."""
    if width < WIDTH_MIN:
        return text
    lines: list[str] = []
    for is_of_table, block in groupby(text.split("\n"), lambda line: _GAP.search(line) is not None):
        rows = list(block)
        if max(map(len, rows)) <= width:
            lines += rows
        elif is_of_table and len(rows) > 1 and len(columns := _columns_of(rows)) > 1:
            lines += _bands(rows, columns, width)
        else:
            lines += [part for line in rows for part in _folded(line, width)]
    return "\n".join(lines)


def _columns_of(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Returns begin and end of each column: between two of them all lines have two blanks or more."""
    length = max(map(len, lines))
    is_blank = [all(line[place : place + 1] in ("", " ") for line in lines) for place in range(length)]
    edges: list[tuple[int, int]] = []
    begin = 0
    for blank, group in groupby(range(length), lambda place: is_blank[place]):
        places = list(group)
        if blank and len(places) >= 2 and places[0] > 0:
            edges.append((begin, places[0]))
            begin = places[-1] + 1
    return [*edges, (begin, length)]


def _bands(lines: Sequence[str], columns: Sequence[tuple[int, int]], width: int) -> Iterator[str]:
    """Yields the table as several below each other, each with the first column and as many others as fit."""
    (_, end), *others = columns
    while others:
        taken, used = 0, end
        for begin, stop in others:
            if taken and used + 2 + stop - begin > width:
                break
            used += 2 + stop - begin
            taken += 1
        cells, others = others[:taken], others[taken:]
        for line in lines:
            if used > width and end < width // 2:
                yield from _hanging(line[:end], line[slice(*cells[0])], width)
                continue
            parts = [line[begin:stop].ljust(stop - begin) for begin, stop in ((0, end), *cells)]
            yield "  ".join(parts).rstrip()
        if others:
            yield ""


def _hanging(name: str, text: str, width: int) -> Iterator[str]:
    """Yields a row of two columns, whose second is folded between words."""
    for number, part in enumerate(_folded(text.strip(), width - len(name) - 2)):
        yield f"{' ' * len(name) if number else name}  {part}".rstrip()


def _folded(line: str, width: int) -> Iterator[str]:
    """Yields the line in parts that are divided between words; those after the first keep its indent."""
    indent = line[: len(line) - len(line.lstrip())]
    part = ""
    for unit in _UNITS.findall(line):
        if part and len(part) + 1 + len(unit) > width:
            yield part
            part = ""
        part = f"{part} {unit}" if part else indent + unit
    yield part
