"""Reads the lines of a records file, ours or another program's, and checks those with a checksum.

Accepts a last line without a newline, or one that a kill cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import accumulate, chain
from pathlib import Path

from ....engine.fault import DamagedJournal
from ....engine.folder_file import line_blocks
from ....engine.remarks import remark
from ....engine.runs.journal import damaged_places
from ....format import command_text


def record_lines(path: Path, within: int | None = None, *, is_quiet: bool = False) -> Iterator[bytes]:
    """Yields every line without its newline. A last line that a kill cut is skipped with a remark, without one if
    `is_quiet`. `within`: yields only lines that begin before this offset. Raises DamagedJournal for a damaged line, and
    for a file that is not there."""
    return chain.from_iterable(_record_blocks(path, within, is_quiet=is_quiet))


def _record_blocks(path: Path, within: int | None, *, is_quiet: bool) -> Iterator[list[bytes]]:
    if not path.exists():
        raise DamagedJournal(f"{path} is not there: bring it back, or run the benchmark again in another folder")
    place = before = 0
    for lines in line_blocks(path):
        if within is not None:
            begins = accumulate(map(len, lines), initial=place)
            lines = [line for line, begin in zip(lines, begins, strict=False) if begin < within]
            place += sum(map(len, lines))
        if not lines or (not lines[-1].endswith(b"\n") and _is_torn(lines[-1], path, before + 1, is_quiet=is_quiet)):
            return
        lines = [line.removesuffix(b"\n") for line in lines]
        if damaged := damaged_places(lines, must_be_sealed=False):
            yield lines[: damaged[0]]
            raise DamagedJournal(
                f"{path} line {before + damaged[0] + 1} is damaged: "
                f"`{command_text('resume', '--set-aside-damaged', path.parent)}` asks for such lines again"
            )
        yield lines
        before += len(lines)


def _is_torn(line: bytes, path: Path, number: int, *, is_quiet: bool) -> bool:
    """Returns whether a last line without a newline is cut off, and says so."""
    try:
        # Not by orjson, which refuses lone surrogates: a whole line may hold such an escape.
        json.loads(line)
    except ValueError:
        if not is_quiet:
            remark(f"{path} line {number} is torn, as a kill leaves it: left out")
        return True
    return False
