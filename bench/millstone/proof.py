"""The proof of a MillStone run: manifest, journals, data set and scores against each other.

Every line intact, every id of the grid exactly once for each model and temperature, nothing unknown, the digests and
the scores as recomputed. Finds and tells; mends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...engine.journal import read_lines
from ...engine.pairs import Pair
from ...engine.proof import Proof, compare_counts, compare_scores, proof_of, whole_records
from ...engine.run_folder import FAILURES, RECORDS
from ...metrics.scores import scores as scores_of
from .dataset import Dataset
from .grid import CONFIGS
from .records import Record
from .recount import recount
from .sweep import asked_of


def prove(folder: Path, manifest: Mapping[str, Any], dataset: Dataset | None) -> Proof:
    """Look at everything. `dataset` None: it can't be reached, so prompts' ids are made from the manifest alone."""
    proof = proof_of(manifest, None if dataset is None else dataset.digest)
    specification = manifest["specification"]
    pairs = [Pair(m, t) for m in specification["models"] for t in specification["temperatures"]]
    expected = set(ids_of(specification))
    seen: dict[Pair, set[str]] = {pair: set() for pair in pairs}
    for name in (RECORDS, FAILURES):
        for here, record in whole_records(folder, name, Record, "MillStone", proof):
            _look_at(here, record, expected, seen, proof)
    proof.pending = len(pairs) * len(expected) - sum(map(len, seen.values()))
    compare_counts(manifest, proof)
    compare_scores(folder, manifest, "millstone", lambda: _scores(folder, specification), proof)
    return proof


def ids_of(specification: Mapping[str, Any]) -> Iterator[str]:
    """The grid's ids, from the specification alone."""
    for issue in specification["issues"]:
        for template in range(1, specification["templates"] + 1):
            for config in CONFIGS[specification["protocol"]]:
                for trial in range(specification["trials"]):
                    yield f"{issue}/{template}/{config.name}/{trial}"


def _look_at(here: str, record: Record, expected: set[str], seen: Mapping[Pair, set[str]], proof: Proof) -> None:
    """It is known, and there once."""
    pair = Pair(record.model, record.temperature)
    if pair not in seen:
        proof.add(f"{here}: {pair} is not in this run")
    elif record.id not in expected:
        proof.add(f"{here}: id {record.id} is not in this run's grid")
    elif record.id in seen[pair]:
        proof.add(f"{here}: id {record.id} of {pair} stands there twice")
    else:
        seen[pair].add(record.id)


def _scores(folder: Path, specification: Mapping[str, Any]) -> dict[str, Any]:
    counted = recount(read_lines(folder / RECORDS), source=RECORDS)
    return scores_of(counted.tally, asked=asked_of(specification))
