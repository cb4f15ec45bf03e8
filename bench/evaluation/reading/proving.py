"""Verifies a run: compares manifest, journals, data and scores.

Every line must be intact, expected and unique, and none may follow a failed step; missing lines are pending; counts,
costs and scores must equal those computed again. Reports, repairs nothing. The benchmark checks its own fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ....engine.runs.pairs import Pair
from ....engine.runs.proof import OwnCalls, Proof, compare_counts, compare_scores, proof_of, whole_records
from ....engine.runs.run_folder import FAILURES, RECORDS
from ..door.benchmark import ItemBenchmark
from ..door.defect import benchmark_code
from ..door.item import Item, Wrong
from ..door.listed_run import ListedRun
from ..door.record import Record
from ..door.run_items import items_of, options_in
from ..door.treatments import pairs_in
from ..running.scoring import scores_again
from .proof import Roll, compare_costs


def prove_run(benchmark: ItemBenchmark[Any], folder: Path, manifest: dict[str, Any]) -> Proof:
    """Checks a run's manifest and journals and returns the proof: what is missing, duplicated or changed."""
    specification, listed = manifest["specification"], benchmark.listed(manifest)
    run = listed if isinstance(listed, ListedRun) else _with_data(benchmark, manifest, listed)
    scored_as, record_kind = benchmark.scores_name(specification), benchmark.Record
    proof = proof_of(manifest, run.data)
    roll = None if run.items is None else Roll(pairs_in(specification), run.items, proof, benchmark.noun_of_line)
    costs, calls = dict[Pair, float](), OwnCalls(proof)
    # Failures that the framework makes have none of the benchmark's fields.
    makes_failures = not issubclass(record_kind, Record)
    kinds: dict[str, type[Any]] = {
        RECORDS: record_kind,
        FAILURES: record_kind if makes_failures else Record,
    }
    for name, kind in kinds.items():
        for here, record in whole_records(folder, name, kind, run.title or benchmark.title, proof):
            costs[record.pair] = costs.get(record.pair, 0.0) + (record.cost or 0.0)
            item = None
            if roll is not None:
                item = roll.add(here, record.pair, *record.place, is_failure=record.is_failure)
            repeated, keys = record.own_calls
            calls.add(here, (record.pair, *repeated), keys)
            if isinstance(record, Record) and item is not None:
                named = (record.item, record.group)
                if named != (item.of or item.id, item.group):
                    proof.add(f"{here}: id {record.id} has the item {record.item!r} and the group {record.group!r}")
            if makes_failures or (name == RECORDS and not record.is_failure):
                wrong = run.check(record, item)
                for sentence in (wrong,) if isinstance(wrong, str) else wrong or ():
                    proof.add(f"{here}: {sentence}")
    if roll is None:
        proof.unproven.append("items: the benchmark's code is not run here, so nobody looked for missing ones")
    else:
        roll.close()
    compare_counts(manifest, proof)
    compare_costs(manifest, costs, proof)
    compare_scores(folder, manifest, scored_as, lambda: scores_again(benchmark, folder, manifest), proof)
    proof.unproven.extend(run.unproven)
    return proof


def _with_data(benchmark: ItemBenchmark[Any], manifest: dict[str, Any], items: Iterable[Item] | None) -> ListedRun:
    """Returns a run with the items of its data, or the given ones if these are others by now or can't be read."""
    data = None
    try:
        held = items_of(benchmark, options_in(benchmark, manifest))
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
