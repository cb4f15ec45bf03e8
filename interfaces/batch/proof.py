"""The proof of a batch: compares manifest, notes and rows.

Every note must be intact, every row the one of its note, none double, hashes and counts as noted. Repairs nothing.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from ...engine.runs.journal import read_lines, torn_tail
from ...engine.runs.proof import Proof, proof_of
from ...engine.runs.run_folder import FAILURES, RECORDS, read_manifest
from .notes import ANSWERED, FAILED, RETIRED, Notes
from .place import BatchPlace
from .rows import TAG_CHARS, line_of


def prove(place: BatchPlace) -> Proof:
    manifest = read_manifest(place.folder)
    proof = proof_of(manifest, None)
    proof.unproven = ["input: not looked at; with another one the same command refuses"]
    last = int(manifest.get("lines", 0))

    def wrong(path: Path, number: int, mistake: str) -> None:
        proof.add(f"{path.name} line {number}: {mistake}")

    tag, done = manifest["specification"]["input"][:TAG_CHARS], bytearray(last + 1)
    with Notes(place, wrong) as notes:
        for path in place.files:
            _look_at_rows(path, tag, notes, done, proof)
    for path in (place.folder / RECORDS, place.folder / FAILURES, *place.retired, *place.files):
        proof.torn += torn_tail(path)
    proof.pending = manifest.get("requests", 0) - proof.records - proof.failures
    counts = manifest.get("counts")
    if manifest.get("ended") is None or counts is None:
        proof.unproven.append("counts: the batch has not ended, so the manifest has none")
    elif (counts["answered"], counts["failed"]) != (proof.records, proof.failures):
        proof.add(
            f"manifest.json: counts {counts['answered']:,} answers and {counts['failed']:,} failures; the rows are "
            f"{proof.records:,} and {proof.failures:,}"
        )
    return proof


def _look_at_rows(path: Path, tag: str, notes: Notes, done: bytearray, proof: Proof) -> None:
    if not path.exists():
        proof.add(f"{path}: missing")
    for number, row in enumerate(read_lines(path), 1):
        line, here = line_of(row, tag), f"{path.name} line {number}"
        if line is None or not 0 < line < len(done):
            proof.add(f"{here}: no row of this batch")
            continue
        match = notes.of(line, zlib.crc32(row))
        if done[line]:
            proof.add(f"{here}: a second row for line {line} of the input")
        elif match is not None and match[0] != RETIRED:
            done[line] = True
            proof.records += match[0] == ANSWERED
            proof.failures += match[0] == FAILED
        elif match is not None or not notes.is_known(line):
            proof.torn.append(f"{here}: its line is asked again by the next start")
        else:
            proof.add(f"{here}: changed: its checksum is not the one noted for line {line} of the input")
