"""The checklist of a run's lines, and of its costs: what `verify` compares records with. Reads no file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ....engine.runs.pairs import Pair
from ....engine.runs.proof import Proof
from ....engine.runs.run_folder import FAILURES, RECORDS
from ..door.item import Item


class Roll:
    """A checklist of the journal lines that a run must have. `noun` is the word for a line in messages."""

    def __init__(self, pairs: Iterable[Pair], items: Iterable[Item], proof: Proof, noun: str = "id") -> None:
        self._places = {line: (item, step) for item in items for step, line in enumerate(item.line_ids(), 1)}
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
        item, expected = self._places.get(line, (None, 0))
        if item is None or step != expected:
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
        missing = sum(len(self._places) - len(seen) for seen in self._seen.values())
        lines_of: dict[str, list[str]] = {}
        for line, (item, _) in self._places.items():
            lines_of.setdefault(item.id, []).append(line)
        for (pair, name), step in self._failed.items():
            seen = self._seen[pair]
            later = sum(line in seen for line in lines_of[name][step:])
            if later:
                noun = "step" if self._noun == "id" else self._noun
                self._proof.add(f"{name} of {pair}: {noun} {step} failed, and {later} later {noun}s were asked")
            self._proof.held += sum(line not in seen for line in lines_of[name])
        self._proof.pending = missing - self._proof.held


def compare_costs(manifest: Mapping[str, Any], costs: Mapping[Pair, float], proof: Proof) -> None:
    """Adds a finding for each pair whose cost in the manifest is not the sum of its lines."""
    if manifest.get("ended") is None:
        return
    for row in manifest.get("counts") or ():
        pair = Pair(row["model"], row["temperature"], row.get("effort"))
        noted, sum_of_lines = row.get("cost") or 0.0, costs.get(pair, 0.0)
        if not math.isclose(noted, sum_of_lines, rel_tol=1e-9, abs_tol=1e-9):
            proof.add(f"manifest.json: {pair} cost ${noted:,.6f}; {RECORDS} and {FAILURES} hold ${sum_of_lines:,.6f}")
