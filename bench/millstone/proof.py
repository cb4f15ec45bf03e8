"""Verifies a MillStone run: compares manifest, journals, data set and scores.

Every line must be intact, and every id of the grid must occur exactly once for each model and temperature; digests and
scores must equal those computed again. Reports, repairs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...engine.runs.journal import read_lines
from ...engine.runs.pairs import Pair
from ...engine.runs.proof import Proof, compare_counts, compare_scores, proof_of, whole_records
from ...engine.runs.run_folder import FAILURES, RECORDS
from ...metrics.millstone.scores import scores as scores_of
from ..evaluation.proof import Roll
from .dataset import IssueDataset
from .grid import CONFIGS
from .records import Record
from .recount import asked_of, recount


def prove(folder: Path, manifest: Mapping[str, Any], dataset: IssueDataset | None) -> Proof:
    """Verifies a run and returns the findings. `dataset` None: it can't be read, so its digest is not compared."""
    proof = proof_of(manifest, None if dataset is None else dataset.digest)
    specification = manifest["specification"]
    pairs = [Pair(m, t) for m in specification["models"] for t in specification["temperatures"]]
    roll = Roll(dict.fromkeys(pairs, dict.fromkeys(ids_of(specification), 1)), proof)
    for name in (RECORDS, FAILURES):
        for here, record in whole_records(folder, name, Record, "MillStone", proof):
            pair = Pair(record.model, record.temperature)
            roll.add(here, pair, record.id, record.id, is_failure=name == FAILURES)
    roll.close()
    compare_counts(manifest, proof)
    compare_scores(folder, manifest, "millstone", lambda: _scores(folder, specification), proof)
    return proof


def ids_of(specification: Mapping[str, Any]) -> Iterator[str]:
    """Yields the ids of the grid's items, computed from the specification alone."""
    for issue in specification["issues"]:
        for template in range(1, specification["templates"] + 1):
            for config in CONFIGS[specification["protocol"]]:
                for trial in range(specification["trials"]):
                    yield f"{issue}/{template}/{config.name}/{trial}"


def _scores(folder: Path, specification: Mapping[str, Any]) -> dict[str, Any]:
    counted = recount(read_lines(folder / RECORDS), source=RECORDS)
    return scores_of(counted.tally, asked=asked_of(specification))
