"""Verifies a run of any benchmark, by its items, or by those that its manifest lists where the data can't be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ....engine.runs.proof import Proof
from ..door.benchmark import ItemBenchmark
from ..door.defect import benchmark_code
from ..door.item import Item, Wrong
from ..door.run_items import items_of
from ..door.treatments import pairs_in
from ..running.scoring import scores_again
from .proof import Provable, prove


def prove_run(benchmark: ItemBenchmark[Any], folder: Path, manifest: dict[str, Any]) -> Proof:
    """Checks a run's manifest and journals and returns the proof: what is missing, duplicated or changed."""
    if (proof := benchmark.prove(folder, manifest)) is not None:
        return proof
    specification = manifest["specification"]
    data, items = None, benchmark.listed(manifest)
    try:
        held = items_of(benchmark, benchmark.options_of(manifest))
    except (Exception, SystemExit):  # noqa: BLE001 (why its data can't be read, `run` says: the rest can be proven without)
        pass
    else:
        data = held.digest
        # Items of other data can't be compared with this run's lines.
        items = held if data == specification.get("data") else items

    def check(record: Any, item: Item | None) -> Wrong:
        with benchmark_code(benchmark.title):
            return None if item is None else benchmark.check(record, item)

    return prove(
        folder,
        manifest,
        Provable(
            name=benchmark.name,
            title=benchmark.title,
            kind=benchmark.Record,
            noun=benchmark.noun_of_line,
            pairs=pairs_in(specification),
            items=items,
            data=data,
            check=check,
            scores=lambda: scores_again(benchmark, folder, manifest),
        ),
    )
