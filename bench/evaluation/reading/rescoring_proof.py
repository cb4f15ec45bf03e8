"""Proves that a run's rescorings changed scores alone: the records of before are kept, and have the same answers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ....engine.fault import LocalFault
from ....engine.folder_file import open_regular
from ....engine.runs.journal import read_lines
from ....engine.runs.proof import Proof
from ....engine.runs.run_folder import RECORDS
from ..door.rescored import killed_rescoring, rescorings_in

_UNREADABLE = (OSError, LocalFault, msgspec.MsgspecError, UnicodeError)


class _Answer(Struct, frozen=True):
    """What no rescoring changes."""

    id: str
    model: str
    temperature: float | None = None
    effort: str | None = None
    text: str | None = None
    keys: tuple[str, ...] = ()


def prove_rescorings(folder: Path, manifest: Mapping[str, Any], proof: Proof) -> None:
    """Adds what is wrong with the records that rescorings kept, and a remark on each rescoring."""
    decode = msgspec.json.Decoder(_Answer).decode
    with suppress(*_UNREADABLE):
        if name := killed_rescoring(folder, manifest):
            proof.add(f"{name}: a rescoring was killed, and {RECORDS} may have its scores: rescore again")
    for each in rescorings_in(manifest):
        proof.remarks.append(each.sentence)
        try:
            with os.fdopen(open_regular(folder / each.records), "rb") as file:
                is_kept = hashlib.file_digest(file, "sha256").hexdigest() == each.records_sha256
            why_not = "" if is_kept else "its digest is another one"
        except (OSError, LocalFault) as error:
            why_not = str(error.strerror if isinstance(error, OSError) else error)
        if why_not:
            proof.add(f"{each.records}: not the records that the rescoring kept: {why_not}")
            continue
        # A damaged line of the records is a finding of its own.
        with suppress(*_UNREADABLE):
            lines = zip(read_lines(folder / each.records), read_lines(folder / RECORDS), strict=False)
            for number, (before, now) in enumerate(lines, 1):
                if decode(before) != decode(now):
                    proof.add(f"{RECORDS} line {number}: another answer than in {each.records}")
