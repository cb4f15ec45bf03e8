"""Verifies a MillStone run: compares manifest, journals, data set and scores.

Every line must be intact, and every id of the grid must occur exactly once for each model and temperature. A record's
parts must be those of its id, its letter and stance those of its text, its arguments those that the prompt showed.
Digests and scores must equal those computed again. Reports, repairs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from ...engine.runs.journal import read_lines
from ...engine.runs.pairs import pair_of
from ...engine.runs.proof import OwnCalls, Proof, compare_counts, compare_scores, proof_of, whole_records
from ...engine.runs.run_folder import FAILURES, RECORDS
from ...metrics.millstone.scores import scores as scores_of
from ...metrics.millstone.stance import Reading, letter_of, stance_of
from ..evaluation.item import Item
from ..evaluation.proof import Roll
from ..evaluation.served import rows_in
from ..evaluation.treatments import pairs_in
from .dataset import IssueDataset, Side
from .grid import CONFIGS, Grid
from .records import Record
from .recount import asked_of, recount, silence_of

# The orientation and the arguments of a prompt.
_Shown = tuple[Side, tuple[str, ...]]


def prove(folder: Path, manifest: Mapping[str, Any], dataset: IssueDataset | None) -> Proof:
    """Verifies a run and returns the findings. `dataset` None: it can't be read, so its digest is not compared."""
    proof = proof_of(manifest, None if dataset is None else dataset.digest)
    specification = manifest["specification"]
    roll = Roll(pairs_in(specification), map(Item, ids_of(specification)), proof)
    shown = _shown(specification, dataset)
    if shown is None:
        proof.unproven.append("arguments: the run's prompts can't be built here, so nobody compared what they showed")
    calls = OwnCalls(proof)
    for name in (RECORDS, FAILURES):
        for here, record in whole_records(folder, name, Record, "MillStone", proof):
            pair = pair_of(record)
            roll.add(here, pair, record.id, 1, is_failure=name == FAILURES)
            calls.add(here, (pair, record.issue, record.template, record.config), (record.key,))
            for wrong in _wrong_in(record, specification["stance"], shown):
                proof.add(f"{here}: {record.id}: {wrong}")
    roll.close()
    compare_counts(manifest, proof)
    compare_scores(folder, manifest, "millstone", lambda: _scores(folder, manifest), proof)
    return proof


def _shown(specification: Mapping[str, Any], dataset: IssueDataset | None) -> Mapping[str, _Shown] | None:
    """Returns what each item's prompt shows, by the item's id; None if the data set is not the run's, or this version
    makes other prompts of it."""
    if dataset is None:
        return None
    asked = set(specification["issues"])
    chosen = structs.replace(dataset, issues=tuple(issue for issue in dataset.issues if issue.id in asked))
    names = ("protocol", "templates", "trials", "citations")
    grid = Grid(chosen, *(specification[name] for name in names))
    if any(specification.get(name) != value for name, value in grid.specification().items()):
        return None
    return {name: (orientation, arguments) for name, orientation, arguments in grid.shown()}


def _wrong_in(record: Record, reading: Reading, shown: Mapping[str, _Shown] | None) -> Iterator[str]:
    """Yields what contradicts something else in a record, or the data set: a line that was changed and sealed anew."""
    own = f"{record.issue}/{record.template}/{record.config}/{record.trial}"
    if own != record.id:
        yield f"its fields are of {own}"
    if shown is not None and (found := shown.get(record.id)) is not None:
        orientation, arguments = found
        if record.orientation != orientation:
            yield f"orientation {record.orientation}; the data set gives {orientation}"
        if record.arguments != arguments:
            yield f"arguments {', '.join(record.arguments) or 'none'}; the run showed {', '.join(arguments) or 'none'}"
    if record.stance is None or record.orientation is None:
        return
    letter = None if record.status == "refused" else letter_of(record.text or "", reading)
    stance = stance_of(letter, record.orientation)
    if (record.letter, record.stance) != (letter, stance):
        yield f"letter {record.letter}, stance {record.stance}; its text gives {letter}, {stance}"


def ids_of(specification: Mapping[str, Any]) -> Iterator[str]:
    """Yields the ids of the grid's items, computed from the specification alone."""
    for issue in specification["issues"]:
        for template in range(1, specification["templates"] + 1):
            for config in CONFIGS[specification["protocol"]]:
                for trial in range(specification["trials"]):
                    yield f"{issue}/{template}/{config.name}/{trial}"


def _scores(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    rows = rows_in(folder, manifest)
    counted = recount(rows.lines(read_lines(folder / RECORDS)), source=RECORDS, manifest=manifest)
    asked = asked_of(rows.specification(manifest["specification"]))
    return rows.scores(scores_of(counted.tally, asked=asked, silence=silence_of(manifest), is_ranked=rows.is_ranked))
