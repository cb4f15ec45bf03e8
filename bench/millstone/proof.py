"""The proof of a MillStone run: manifest, journals, data set and scores against each other.

Every line intact, every id of the grid exactly once for each model and temperature, nothing unknown, the digests and
the scores as recomputed. Finds and tells; mends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson
from msgspec import Struct, field

from ...engine.journal import has_torn_tail, is_intact, read_lines
from ...engine.pairs import Pair
from ...engine.run_folder import FAILURES, RECORDS, manifest_hash, specification_hash
from ...metrics.scores import scores as scores_of
from .dataset import Dataset
from .grid import CONFIGS
from .records import Record, RecordError
from .recount import recount
from .sweep import asked_of

WRONGS_KEPT = 1_000


class Proof(Struct):
    """What was looked at and what is wrong; `wrong` keeps the first thousand."""

    records: int = 0
    failures: int = 0
    pending: int = 0
    torn: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    wrongs: int = 0
    unproven: list[str] = field(default_factory=list)

    def add(self, what: str) -> None:
        self.wrongs += 1
        if len(self.wrong) < WRONGS_KEPT:
            self.wrong.append(what)


def prove(folder: Path, manifest: Mapping[str, Any], dataset: Dataset | None) -> Proof:
    """Look at everything. `dataset` None: it can't be reached, so prompts' ids are made from the manifest alone."""
    proof = Proof()
    specification = manifest["specification"]
    if specification_hash(specification) != manifest.get("specification_hash"):
        proof.add("manifest.json: the specification's hash is not the one noted beside it: one of both was changed")
    if manifest_hash(manifest) != manifest.get("manifest_hash"):
        proof.add("manifest.json: its hash is not the one noted in it: something in it was changed")
    if dataset is None:
        proof.unproven.append("data set: not reachable, so its digest was not compared")
    elif dataset.digest != specification.get("data"):
        proof.add(
            f"data set: its digest is {dataset.digest[:12]}…, the run's was {str(specification.get('data'))[:12]}…"
        )
    pairs = [Pair(m, t) for m in specification["models"] for t in specification["temperatures"]]
    expected = set(ids_of(specification))
    seen: dict[Pair, set[str]] = {pair: set() for pair in pairs}
    for name in (RECORDS, FAILURES):
        count = _look_at(folder, name, expected, seen, proof)
        if name == RECORDS:
            proof.records = count
        else:
            proof.failures = count
    proof.pending = len(pairs) * len(expected) - sum(map(len, seen.values()))
    _compare_counts(manifest, proof)
    _compare_scores(folder, manifest, proof)
    return proof


def ids_of(specification: Mapping[str, Any]) -> Iterator[str]:
    """The grid's ids, from the specification alone."""
    for issue in specification["issues"]:
        for template in range(1, specification["templates"] + 1):
            for config in CONFIGS[specification["protocol"]]:
                for trial in range(specification["trials"]):
                    yield f"{issue}/{template}/{config.name}/{trial}"


def _look_at(folder: Path, name: str, expected: set[str], seen: Mapping[Pair, set[str]], proof: Proof) -> int:
    """One journal: each line whole, known, and there once."""
    path = folder / name
    decode = msgspec.json.Decoder(Record).decode
    count = 0
    for number, line in enumerate(read_lines(path), 1):
        count += 1
        here = f"{name} line {number}"
        if not is_intact(line, must_be_sealed=True):
            proof.add(f"{here}: damaged: its checksum is missing or wrong")
            continue
        try:
            record = decode(line)
        except (msgspec.MsgspecError, UnicodeError) as error:
            proof.add(f"{here}: no record of MillStone: {error}")
            continue
        pair = Pair(record.model, record.temperature)
        if pair not in seen:
            proof.add(f"{here}: {pair} is not in this run")
        elif record.id not in expected:
            proof.add(f"{here}: id {record.id} is not in this run's grid")
        elif record.id in seen[pair]:
            proof.add(f"{here}: id {record.id} of {pair} stands there twice")
        else:
            seen[pair].add(record.id)
        if (record.stance is None) != (name == FAILURES):
            proof.add(f"{here}: status {record.status} does not belong in this file")
    if has_torn_tail(path):
        proof.torn.append(f"{name}: its last line is torn, as a kill leaves it; the next start sets it aside")
    return count


def _compare_counts(manifest: Mapping[str, Any], proof: Proof) -> None:
    counts = manifest.get("counts")
    if manifest.get("ended") is None or not counts:
        proof.unproven.append("counts: the run has not ended, so the manifest has none")
        return
    noted = sum(row["ok"] + row["refused"] for row in counts), sum(sum(row["failed"].values()) for row in counts)
    if noted != (proof.records, proof.failures):
        proof.add(
            f"manifest.json: counts {noted[0]:,} records and {noted[1]:,} failures; the files hold "
            f"{proof.records:,} and {proof.failures:,}"
        )


def _compare_scores(folder: Path, manifest: Mapping[str, Any], proof: Proof) -> None:
    path = folder / "scores.json"
    if not path.exists():
        proof.unproven.append("scores.json: not there, so nothing to compare")
        return
    if manifest.get("ended") is None:
        # Written when an earlier part of the run ended, or by `score` meanwhile: the records have grown since.
        proof.unproven.append("scores.json: the run has not ended, so its scores are of an earlier state")
        return
    try:
        noted = orjson.loads(path.read_bytes())
        counted = recount(read_lines(folder / RECORDS), source=RECORDS)
    except (orjson.JSONDecodeError, RecordError) as error:
        proof.add(f"scores.json: can't be compared: {error}")
        return
    computed = orjson.loads(orjson.dumps(scores_of(counted.tally, asked=asked_of(manifest["specification"]))))
    if noted != computed:
        models = computed["millstone"]["models"]
        theirs = noted.get("millstone", {}).get("models", {}) if isinstance(noted, dict) else {}
        differing = [model for model in models.keys() | theirs.keys() if models.get(model) != theirs.get(model)]
        proof.add(f"scores.json: not what the records give, for {', '.join(sorted(differing)) or 'the whole file'}")
