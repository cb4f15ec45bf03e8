"""Verifies a run: compares manifest, journals, data and scores.

Every line must be intact, expected and unique, and none may follow a failed step; missing lines are pending; counts,
costs and scores must equal those computed again. Reports, repairs nothing. The benchmark checks its own fields.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ....configuration.errors import UsageError
from ....engine.call import known_sum
from ....engine.pairs import Pair, PairCounts
from ....engine.runs.data_file import DatasetError
from ....engine.runs.proof import OwnCalls, Proof, compare_counts, compare_scores, proof_of, whole_records
from ....engine.runs.run_folder import FAILURES, RECORDS
from ..door.benchmark import ItemBenchmark
from ..door.defect import BenchmarkDefect, benchmark_code
from ..door.item import Item, Wrong
from ..door.listed_run import ListedRun
from ..door.record import Record
from ..door.run_items import items_of, options_in
from ..door.treatments import pairs_in
from ..running.scoring import scores_again, tally_again
from ..running.served import compare_names


def prove_run(benchmark: ItemBenchmark[Any], folder: Path, manifest: dict[str, Any]) -> Proof:
    """Checks a run's manifest and journals and returns the proof: what is missing, duplicated or changed."""
    specification, listed = manifest["specification"], benchmark.listed(manifest)
    run = listed if isinstance(listed, ListedRun) else _with_data(benchmark, manifest, listed)
    scored_as, record_kind = benchmark.scores_name(specification), benchmark.Record
    proof = proof_of(manifest, run.data, run.why_unread)
    roll = None if run.items is None else Roll(pairs_in(specification), run.items, proof, benchmark.noun_of_line)
    counted, calls = dict[Pair, PairCounts](), OwnCalls(proof)
    # The records are read once for their scores too, unless a line is not whole.
    tally, tallied = tally_again(benchmark, folder, manifest), 0
    # Failures that the framework makes have none of the benchmark's fields.
    makes_failures = not issubclass(record_kind, Record)
    kinds: dict[str, type[Any]] = {
        RECORDS: record_kind,
        FAILURES: record_kind if makes_failures else Record,
    }
    has_judge = "served_judge" in record_kind.__struct_fields__
    for name, kind in kinds.items():
        for here, record in whole_records(folder, name, kind, run.title or benchmark.title, proof):
            pair, is_failure, item = record.pair, record.is_failure, None
            counts = counted.get(pair) or counted.setdefault(pair, PairCounts())
            counts.cost = known_sum(counts.cost, record.cost)
            if roll is not None:
                item = roll.add(here, pair, *record.place, is_failure=is_failure)
            repeated, keys = record.own_calls
            calls.add(here, (pair, *repeated), keys)
            if tally is not None and name == RECORDS:
                tally.add(pair, record)
                tallied += 1
            if not is_failure and not has_judge:
                counts.name(record.served, record.fingerprint)
            if isinstance(record, Record) and item is not None:
                named = (record.item, record.group)
                if named != (item.of or item.id, item.group):
                    proof.add(f"{here}: id {record.id} has the item {record.item!r} and the group {record.group!r}")
            if makes_failures or (name == RECORDS and not is_failure):
                wrong = run.check(record, item)
                for sentence in (wrong,) if isinstance(wrong, str) else wrong or ():
                    proof.add(f"{here}: {sentence}")
    if roll is None:
        proof.unproven.append("items: the benchmark's code is not run here, so nobody looked for missing ones")
    else:
        roll.close()
    compare_counts(manifest, proof)
    compare_costs(manifest, counted, proof)
    whole = tally if tallied == proof.records and not proof.torn else None
    compare_scores(folder, manifest, scored_as, lambda: scores_again(benchmark, folder, manifest, whole), proof)
    proof.unproven.extend(run.unproven)
    compare_names(folder, manifest, {} if has_judge else counted, proof)
    return proof


def _with_data(benchmark: ItemBenchmark[Any], manifest: dict[str, Any], items: Iterable[Item] | None) -> ListedRun:
    """Returns a run with the items of its data, or the given ones if these are others by now or can't be read."""
    data, why_unread = None, ""
    try:
        held = items_of(benchmark, options_in(benchmark, manifest))
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the rest can be proven without the data)
        # An error that is not ours says little without its name.
        name = "" if isinstance(error, UsageError | DatasetError | BenchmarkDefect) else f"{type(error).__name__}: "
        why_unread = name + " ".join(str(error).split())
    else:
        data = held.digest
        # Items of other data can't be compared with this run's lines.
        items = held if data == manifest["specification"].get("data") else items

    def check(record: Any, item: Item | None) -> Wrong:
        with benchmark_code(benchmark.title):
            return None if item is None else benchmark.check(record, item)

    return ListedRun(items=items, data=data, why_unread=why_unread, check=check)


class Roll:
    """A checklist of the journal lines that a run must have. `noun` is the word for a line in messages."""

    def __init__(self, pairs: Iterable[Pair], items: Iterable[Item], proof: Proof, noun: str = "id") -> None:
        self._items: dict[str, Item] = {}
        # Of later steps alone: most items have one.
        self._steps: dict[str, int] = {}
        for item in items:
            for step, line in enumerate(item.line_ids(), 1):
                self._items[line] = item
                if step > 1:
                    self._steps[line] = step
        self._proof = proof
        self._noun = noun
        self._seen: dict[Pair, set[str]] = {pair: set() for pair in pairs}
        self._failed: dict[tuple[Pair, str], int] = {}

    def add(self, here: str, pair: Pair, line: str, step: int, *, is_failure: bool) -> Item | None:
        """Records a line and returns its item. None: the line is not expected or not new, which is a finding."""
        seen = self._seen.get(pair)
        if seen is None:
            self._proof.add(f"{here}: {pair} is not in this run")
            return None
        item = self._items.get(line)
        if item is None or step != self._steps.get(line, 1):
            self._proof.add(f"{here}: {self._noun} {line} is not in this run")
            return None
        if line in seen:
            self._proof.add(f"{here}: {self._noun} {line} of {pair} stands there twice")
            return None
        seen.add(line)
        if is_failure:
            self._failed[pair, item.id] = min(step, self._failed.get((pair, item.id), step))
        return item

    def close(self) -> None:
        """Reports lines that follow a failure, and counts the missing lines: held by a failure, or pending."""
        missing = sum(len(self._items) - len(seen) for seen in self._seen.values())
        lines_of: dict[str, list[str]] = {}
        for line, item in self._items.items() if self._failed else ():
            lines_of.setdefault(item.id, []).append(line)
        for (pair, name), step in self._failed.items():
            seen = self._seen[pair]
            later = sum(line in seen for line in lines_of[name][step:])
            if later:
                noun = "step" if self._noun == "id" else self._noun
                self._proof.add(f"{name} of {pair}: {noun} {step} failed, and {later} later {noun}s were asked")
            self._proof.held += sum(line not in seen for line in lines_of[name])
        self._proof.pending = missing - self._proof.held


def compare_costs(manifest: Mapping[str, Any], counted: Mapping[Pair, PairCounts], proof: Proof) -> None:
    """Adds a finding for each pair whose cost in the manifest is not the sum of its lines."""
    if manifest.get("ended") is None:
        return
    for row in manifest.get("counts") or ():
        pair = Pair(row["model"], row["temperature"], row.get("effort"))
        noted, sum_of_lines = row.get("cost") or 0.0, counted.get(pair, PairCounts()).cost or 0.0
        if not math.isclose(noted, sum_of_lines, rel_tol=1e-9, abs_tol=1e-9):
            proof.add(f"manifest.json: {pair} cost ${noted:,.6f}; {RECORDS} and {FAILURES} hold ${sum_of_lines:,.6f}")
