"""Verifies a run: compares manifest, journals, data and scores.

Every line must be intact, expected and unique, and none may follow a failed step; missing lines are pending; counts,
costs and scores must equal those computed again. Reports, repairs nothing. The benchmark checks its own fields.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...engine.runs.pairs import Pair
from ...engine.runs.proof import OwnCalls, Proof, compare_counts, compare_scores, proof_of, whole_records
from ...engine.runs.run_folder import FAILURES, RECORDS
from .item import Item, item_of, line_ids, steps_in
from .record import Record


class Roll:
    """A checklist of the journal lines that a run must have. `steps` gives each item's number of steps, `ids` its line
    ids; `noun` is the word for a line in messages."""

    def __init__(
        self,
        steps: Mapping[Pair, Mapping[str, int]],
        proof: Proof,
        noun: str = "id",
        ids: Callable[[str, int], list[str]] = line_ids,
    ) -> None:
        self._steps = steps
        self._proof = proof
        self._noun = noun
        self._ids = ids
        self._seen: dict[Pair, set[str]] = {pair: set() for pair in steps}
        self._failed: dict[tuple[Pair, str], int] = {}

    def add(self, here: str, pair: Pair, item: str, line: str, *, is_failure: bool) -> bool:
        """Records a line and returns whether it is expected and new; if not, adds a finding to the proof."""
        steps = self._steps.get(pair)
        if steps is None:
            self._proof.add(f"{here}: {pair} is not in this run")
            return False
        ids = self._ids(item, steps.get(item, 0))
        if line not in ids:
            self._proof.add(f"{here}: {self._noun} {line} is not in this run")
            return False
        if line in self._seen[pair]:
            self._proof.add(f"{here}: {self._noun} {line} of {pair} stands there twice")
            return False
        self._seen[pair].add(line)
        if is_failure:
            step = ids.index(line)
            self._failed[pair, item] = min(step, self._failed.get((pair, item), step))
        return True

    def close(self) -> None:
        """Reports lines that follow a failure, and counts the missing lines: held by a failure, or pending."""
        missing = sum(steps_in(steps) - len(self._seen[pair]) for pair, steps in self._steps.items())
        for (pair, item), step in self._failed.items():
            ids = self._ids(item, self._steps[pair][item])
            later = sum(line in self._seen[pair] for line in ids[step + 1 :])
            if later:
                noun = "step" if self._noun == "id" else self._noun
                self._proof.add(f"{item} of {pair}: {noun} {step + 1} failed, and {later} later {noun}s were asked")
            self._proof.held += sum(line not in self._seen[pair] for line in ids)
        self._proof.pending = missing - self._proof.held


class Provable(Struct, frozen=True, kw_only=True):
    """The data and functions that verification needs from the benchmark."""

    name: str
    """The benchmark's key in scores.json."""
    title: str
    """The benchmark's name in messages."""
    kind: type[Record]
    """The type of a record."""
    pairs: Iterable[Pair]
    """The pairs of the run."""
    items: Mapping[str, Item] | None
    """The items of the run by their ids; None: not known, since the benchmark's code is not available."""
    data: str | None
    """The digest of its data now; None: the data can't be reached."""
    check: Callable[[Record, Item | None], str | None]
    """Returns what is wrong with a record by the benchmark's own rules (None: nothing); the item is None if not known.
    """
    scores: Callable[[], dict[str, Any]]
    """Computes and returns the contents of scores.json."""


def prove(folder: Path, manifest: Mapping[str, Any], of: Provable) -> Proof:
    """Verifies a run and returns the findings."""
    proof = proof_of(manifest, of.data)
    items = of.items or {}
    steps = {item.id: item.steps for item in items.values()}
    roll = None if of.items is None else Roll(dict.fromkeys(of.pairs, steps), proof)
    costs, calls = dict[Pair, float](), OwnCalls(proof)
    for name, kind in ((RECORDS, of.kind), (FAILURES, Record)):
        for here, record in whole_records(folder, name, kind, of.title, proof):
            costs[record.pair] = costs.get(record.pair, 0.0) + (record.cost or 0.0)
            own = record.id if record.id in items else item_of(record.id, record.step)
            item = items.get(own)
            if roll is not None and roll.add(here, record.pair, own, record.id, is_failure=record.is_failure):
                assert item is not None
                if (record.item, record.group) != (item.of or item.id, item.group):
                    proof.add(f"{here}: id {record.id} has the item {record.item!r} and the group {record.group!r}")
            calls.add(here, (record.pair, record.item, record.step), record.keys)
            if name == RECORDS and not record.is_failure and (wrong := of.check(record, item)):
                proof.add(f"{here}: {wrong}")
    if roll is None:
        proof.unproven.append("items: the benchmark's code is not run here, so nobody looked for missing ones")
    else:
        roll.close()
    compare_counts(manifest, proof)
    compare_costs(manifest, costs, proof)
    compare_scores(folder, manifest, of.name, of.scores, proof)
    return proof


def compare_costs(manifest: Mapping[str, Any], costs: Mapping[Pair, float], proof: Proof) -> None:
    """Adds a finding for each pair whose cost in the manifest is not the sum of its lines."""
    if manifest.get("ended") is None:
        return
    for row in manifest.get("counts") or ():
        pair = Pair(row["model"], row["temperature"], row.get("effort"))
        noted, found = row.get("cost") or 0.0, costs.get(pair, 0.0)
        if not math.isclose(noted, found, rel_tol=1e-9, abs_tol=1e-9):
            proof.add(f"manifest.json: {pair} cost ${noted:,.6f}; {RECORDS} and {FAILURES} hold ${found:,.6f}")
