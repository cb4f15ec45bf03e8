"""Proves a task's run from manifest and journals alone: the task's own program is not run.

Owns the rules for a task's record: it has the question that the manifest lists, and the score that its answer gets from
the task's scorers, unless one of these is a function.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...engine.runs.proof import Proof
from ..evaluation.door.benchmark import ItemBenchmark
from ..evaluation.door.item import Item
from ..evaluation.door.record import Record as BaseRecord
from ..evaluation.door.treatments import pairs_in
from ..evaluation.reading.proof import Provable, prove
from ..evaluation.running.scoring import scores_again
from .declared import scorer_from
from .questions import item_digest, items_digest
from .records import Record
from .rows import TaskError
from .score_table import rescored
from .task import AnyScorer


def prove_folder(benchmark: ItemBenchmark[Any], folder: Path, manifest: dict[str, Any]) -> Proof:
    """Verifies the folder of a run of the benchmark that runs tasks, and returns the proof with its findings."""
    specified, listed = manifest["specification"], manifest["dataset"]["items"]
    items = [
        Item(f"{item}/{trial}", digest, group=group or "", of=item)
        for item, group, digest in listed
        for trial in range(specified["trials"])
    ]
    listed_digests = {item: digest for item, _, digest in listed}
    scorers = _rules(specified["score"])

    def check(record: BaseRecord, item: Item | None) -> str | None:
        assert isinstance(record, Record)
        if item is not None and item_digest(record.item, record.group or None, record.row, record.prompt) != item.data:
            return f"{record.id}: row or prompt is not the one that the manifest lists"
        if (f"{record.item}/{record.trial}", 1) != (record.id, record.step):
            return f"{record.id}: its fields are of trial {record.trial}, step {record.step}"
        if scorers is not None:
            try:
                (again,) = rescored(iter([record]), scorers, specified["score"])
            except TaskError as error:
                return f"{record.id}: can't be scored again: {error}"
            if (again.score, again.scores) != (record.score, record.scores):
                return f"{record.id}: score {record.score}; its answer has {again.score}"
        return None

    proof = prove(
        folder,
        manifest,
        Provable(
            name=specified["task"],
            title=specified["task"],
            kind=Record,
            pairs=pairs_in(specified),
            items=items,
            # The data themselves are not needed: every record is compared with the questions that the manifest lists.
            data=specified["data"] if items_digest(listed_digests) == specified["questions"] else "",
            check=check,
            scores=lambda: scores_again(benchmark, folder, manifest),
        ),
    )
    if scorers is None:
        proof.unproven.append("scores: a scorer is a function, which is not run here: its scores are taken as recorded")
    return proof


def _rules(described: Mapping[str, Mapping[str, Any]]) -> dict[str, AnyScorer] | None:
    """Returns the scorers of a manifest; None if one is a function, whose recorded scores are then trusted."""
    try:
        return {name: scorer_from(each, name) for name, each in described.items()}
    except TaskError:
        return None
