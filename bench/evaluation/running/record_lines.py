"""Reads the lines of a records file, ours or another program's, and checks those with a checksum.

Accepts a last line without a newline, or one that a kill cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ....engine.fault import DamagedJournal
from ....engine.folder_file import lines_in
from ....engine.remarks import remark
from ....engine.runs.journal import is_intact
from ....format import command_text


def record_lines(path: Path, within: int | None = None, *, is_quiet: bool = False) -> Iterator[bytes]:
    """Yields every line without its newline. A last line that a kill cut is skipped with a remark, without one if
    `is_quiet`. `within`: yields only lines that begin before this offset. Raises DamagedJournal for a damaged line, and
    for a file that is not there."""
    if not path.exists():
        raise DamagedJournal(f"{path} is not there: bring it back, or run the benchmark again in another folder")
    place = 0
    for number, line in enumerate(lines_in(path), 1):
        if within is not None and place >= within:
            return
        place += len(line)
        if not line.endswith(b"\n"):
            try:
                # Not by orjson, which refuses lone surrogates: a whole line may hold such an escape.
                json.loads(line)
            except ValueError:
                if not is_quiet:
                    remark(f"{path} line {number} is torn, as a kill leaves it: left out")
                return
        line = line.removesuffix(b"\n")
        if not is_intact(line, must_be_sealed=False):
            raise DamagedJournal(
                f"{path} line {number} is damaged: `{command_text('resume', '--set-aside-damaged', path.parent)}` "
                f"asks for such lines again"
            )
        yield line
