"""Verifies a run of any benchmark, by its items, or by those that its manifest lists where the data can't be read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ....engine.runs.proof import Proof
from ..door.benchmark import ItemBenchmark
from ..door.defect import benchmark_code
from ..door.item import Item, Wrong
from ..door.listed_run import ListedRun
from ..door.run_items import items_of
from ..door.treatments import pairs_in
from ..running.scoring import scores_again
from .proof import Provable, prove


def prove_run(benchmark: ItemBenchmark[Any], folder: Path, manifest: dict[str, Any]) -> Proof:
    """Checks a run's manifest and journals and returns the proof: what is missing, duplicated or changed."""
    specification, listed = manifest["specification"], benchmark.listed(manifest)
    run = listed if isinstance(listed, ListedRun) else _with_data(benchmark, manifest, listed)
    name = benchmark.scores_name(specification)
    return prove(
        folder,
        manifest,
        Provable(
            name=name,
            title=benchmark.title if name == benchmark.name else name,
            kind=benchmark.Record,
            noun=benchmark.noun_of_line,
            pairs=pairs_in(specification),
            items=run.items,
            data=run.data,
            check=run.check,
            unproven=run.unproven,
            scores=lambda: scores_again(benchmark, folder, manifest),
        ),
    )


def _with_data(benchmark: ItemBenchmark[Any], manifest: dict[str, Any], items: Iterable[Item] | None) -> ListedRun:
    """Returns a run with the items of its data, or the given ones if these are others by now or can't be read."""
    data = None
    try:
        held = items_of(benchmark, benchmark.options_of(manifest))
    except (Exception, SystemExit):  # noqa: BLE001 (why its data can't be read, `run` says: the rest can be proven without)
        pass
    else:
        data = held.digest
        # Items of other data can't be compared with this run's lines.
        items = held if data == manifest["specification"].get("data") else items

    def check(record: Any, item: Item | None) -> Wrong:
        with benchmark_code(benchmark.title):
            return None if item is None else benchmark.check(record, item)

    return ListedRun(items=items, data=data, check=check)
