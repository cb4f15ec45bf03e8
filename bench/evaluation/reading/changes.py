"""Which answers a model gives otherwise in one run than in another: by the first reading of each, joined by record id.

Knows no page. A reading is a stance, a position, held or not held, right or wrong: what the benchmark's labels are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from msgspec import Struct

from ....engine.runs.pairs import Pair
from .labelling.sample import AnswerFile


class UnitChange(Struct, frozen=True):
    """The answers of one issue, conversation or item in two runs."""

    unit: str
    """Its id."""
    compared: int
    """How many answers have a reading in both runs."""
    changed: int
    """How many of them are read otherwise in the later run."""
    ways: tuple[tuple[tuple[str, str], int], ...]
    """Each pair of an earlier and a later reading that differ, with their number, the most frequent first."""


class RunChange(Struct, frozen=True):
    """One model's answers in two runs."""

    pair: Pair
    """The model at its temperature."""
    before: str
    """The earlier run: the first of the given ones that has this model."""
    after: str
    """The later run."""
    alone_before: int
    """How many answers with a reading the earlier run alone has."""
    alone_after: int
    """How many the later run alone has."""
    units: tuple[UnitChange, ...]
    """Every unit with an answer in both, the one with the largest changed share first."""

    @property
    def compared(self) -> int:
        return sum(unit.compared for unit in self.units)

    @property
    def changed(self) -> int:
        return sum(unit.changed for unit in self.units)

    @property
    def ways(self) -> Counter[tuple[str, str]]:
        """The numbers of changes by earlier and later reading."""
        every: Counter[tuple[str, str]] = Counter()
        for unit in self.units:
            every.update(dict(unit.ways))
        return every


def changes_between(runs: Mapping[str, AnswerFile], unit_of: Callable[[str], str]) -> list[RunChange]:
    """Returns a change for each model that two or more runs have. `runs`: the answers of each run, by its name, in the
    order in which they are compared; `unit_of` gives a record's unit from its id."""
    first: dict[Pair, tuple[str, dict[str, str]]] = {}
    changes = []
    for name, answers in runs.items():
        readings: dict[Pair, dict[str, str]] = {}
        for key, reading in answers.first_readings():
            readings.setdefault(key.pair, {})[key.id] = reading
        for pair, by_id in readings.items():
            if pair not in first:
                first[pair] = name, by_id
            else:
                before, earlier = first[pair]
                changes.append(_change(pair, (before, earlier), (name, by_id), unit_of))
    return changes


def _change(
    pair: Pair, before: tuple[str, dict[str, str]], after: tuple[str, dict[str, str]], unit_of: Callable[[str], str]
) -> RunChange:
    earlier, later = before[1], after[1]
    compared: Counter[str] = Counter()
    ways: dict[str, Counter[tuple[str, str]]] = {}
    for name, reading in earlier.items():
        if name in later:
            unit = unit_of(name)
            compared[unit] += 1
            if later[name] != reading:
                ways.setdefault(unit, Counter())[reading, later[name]] += 1
    units = [
        UnitChange(unit, number, sum(moves.values()), tuple(sorted(moves.items(), key=lambda way: (-way[1], way[0]))))
        for unit, number in compared.items()
        for moves in (ways.get(unit, Counter[tuple[str, str]]()),)
    ]
    units.sort(key=lambda each: (-each.changed / each.compared, -each.changed, each.unit))
    shared = sum(compared.values())
    return RunChange(pair, before[0], after[0], len(earlier) - shared, len(later) - shared, tuple(units))
