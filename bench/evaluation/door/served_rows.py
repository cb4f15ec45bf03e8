"""The rows of a run's answers, and a run whose lines are scored by these rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from msgspec import Struct

from ....engine.pairs import Pair
from ....engine.runs.run_folder import RECORDS
from ....providers.models import bare_name
from .outside import JOINT
from .treatments import as_list, pairs_in


class ServedRows(Struct, frozen=True):
    """The rows of a run's answers, and sentences on who gave these. Most runs have no `names`."""

    names: Mapping[Pair, Mapping[str, str]] = MappingProxyType({})
    """For each pair that another model answered, or two: the row's model by the served name."""
    remarks: tuple[str, ...] = ()
    """Sentences on models that are not the asked ones, and on their snapshots."""
    unmeasured: tuple[str, ...] = ()
    """Sentences on pairs that two models answered, and on two judges under one name."""
    served: Mapping[str, Mapping[str, int]] = MappingProxyType({})
    """The number of answers by served name, for each pair whose servers state one."""
    has_two_judges: bool = False
    """Whether a judge was answered by two models."""
    divided: frozenset[tuple[Pair, str]] = frozenset()
    """The items that no one model answered alone: they are in no row."""

    def pairs(self, pair: Pair) -> list[Pair]:
        """Returns the rows of a pair, each as a pair with the row's model."""
        models = sorted(set(self.names.get(pair, {}).values()))
        return [pair._replace(model=model) for model in models] or [pair]

    def is_ranked(self, row: Pair) -> bool:
        """Returns whether a row may have a rank: not if two models answered its pair, or two its judge."""
        divided = (each for pair in self.names if len(rows := self.pairs(pair)) > 1 for each in rows)
        return not self.has_two_judges and row not in divided

    def specification(self, specification: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the specification with the rows for its pairs."""
        if not self.names:
            return specification
        rows = [row for pair in pairs_in(specification) for row in self.pairs(pair)]
        return {**specification, "models": [row.model for row in rows], "pairs": [as_list(row) for row in rows]}

    def manifest(self, manifest: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Returns the manifest with the rows for its pairs."""
        if manifest is None or not self.names:
            return manifest
        return {**manifest, "specification": self.specification(manifest["specification"])}

    def scores(self, scores: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the contents of scores.json with who answered, as far as servers state it."""
        served = {"answers": self.served, "remarks": list(self.remarks), "unmeasured": list(self.unmeasured)}
        return {**scores, **({"served": served} if self.served else {})}

    def lines(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        return filter(None, map(self.line, lines)) if self.names else iter(lines)

    def line(self, line: bytes) -> bytes:
        """Returns a record's line with its row's model for its own; empty if it is in no row."""
        if not self.names or not line.strip():
            return line
        record = json.loads(line)
        pair = Pair(record["model"], record.get("temperature"), record.get("effort"))
        rows = self.pairs(pair)
        if (pair, record.get("item")) in self.divided:
            return b""
        served = "".join(bare_names(record.get("served") or ""))
        row = rows[0].model if len(rows) == 1 else self.names[pair].get(served)
        return json.dumps({**record, "model": row}).encode() if row else b""


ONE_ROW_EACH = ServedRows()


class ScoredRun(Struct, frozen=True, kw_only=True):
    """A run whose lines are scored, and how they are read."""

    folder: Path
    """The run's folder."""
    manifest: Mapping[str, Any] | None
    """The run's manifest, with the rows in place of its pairs; None for records of another program."""
    readings: Any
    """The readings: the run's own, or others where they are given."""
    rows: ServedRows = ONE_ROW_EACH
    """The rows of its answers."""
    source: str = RECORDS
    """The name of its records in messages."""
    is_each_once: bool = False
    """Whether an id that stands there twice is an error. Our own runs never write one."""

    @property
    def specification(self) -> Mapping[str, Any] | None:
        """The run's specification; None for records of another program."""
        return None if self.manifest is None else self.manifest["specification"]


class Tally(Protocol):
    """Gathers the lines of a run's records for its scores, while they are read for other ends too."""

    def add(self, row: Pair, line: Any) -> None:
        """Adds one line, decoded as the benchmark's `Line` or `Record`, to those of its row."""
        ...

    def scores(self, run: ScoredRun) -> Mapping[str, Any]:
        """Returns the scores of the lines so far. Raises RecordError for one that stands there twice, if the run has
        each once."""
        ...


def bare_names(served: str) -> dict[str, str]:
    """Returns the models of a record's served names, under one name each for all their snapshots."""
    return {bare_name(name): name for name in served.split(JOINT)}
