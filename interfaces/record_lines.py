"""The lines of a file of records, ours or another program's, checked where they have a checksum.

Owns what is forgiven in a file that nobody is writing: a last line without its newline, or torn by a kill.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ..engine.fault import DamagedJournal
from ..engine.journal import is_intact
from .output import note


def record_lines(path: Path, within: int | None = None) -> Iterator[bytes]:
    """Every line without its newline. Other programs may end their last one without; one that a kill tore is left
    out, and told. `within`: only those that begin before this place."""
    place = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if within is not None and place >= within:
                return
            place += len(line)
            if not line.endswith(b"\n"):
                try:
                    # Not by orjson, which takes no half character: a whole line may hold such as an escape.
                    json.loads(line)
                except (ValueError, RecursionError):
                    note(f"millstream: {path} line {number} is torn, as a kill leaves it: left out")
                    return
            line = line.removesuffix(b"\n")
            if not is_intact(line, must_be_sealed=False):
                raise DamagedJournal(
                    f"{path} line {number} is damaged: `millstream resume --set-aside-damaged {path.parent}` asks for "
                    f"such lines again"
                )
            yield line
