"""Counts: from answers, one at a time, or from a published table, to the counts array of each model.

Owns what is counted apart: models by name and temperature, issues, cases, stances, and (from answers) templates and
trials. Reads text and values, never a file; knows no score.
"""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .millstone import CASES, STANCES, Counts

TEMPLATES = range(1, 7)
_CELLS = len(CASES) * len(STANCES)
_COLUMNS = ("issue", "issue_stance", "count", "case", "model")
# The authors' names for the cases, and ours.
_CASE_NAMES = MappingProxyType(
    dict(zip(("neither", "pro", "con", "75pro", "75con", "all"), CASES, strict=True)) | {case: case for case in CASES}
)


@dataclass(frozen=True)
class ModelCounts:
    """One model's answers, pooled: `pooled[issue, case, stance]`, issues in the order of `issues`.

    `units[issue, template, trial, case, stance]` is the same before pooling, None where only totals were published.
    `disagreements`: answers that the two stance readings read differently, None where nobody compared.
    """

    model: str
    issues: tuple[str, ...]
    pooled: Counts
    units: Counts | None = None
    refused: tuple[int, ...] = ()
    disagreements: int | None = None

    def __repr__(self) -> str:
        return f"<ModelCounts {self.model} [Issues: {len(self.issues)}, Answers: {int(self.pooled.sum())}]>"


class CountRow(NamedTuple):
    """One line of a published table."""

    model: str
    issue: str
    case: str
    stance: str
    answers: int


def rows_of_csv(text: str) -> list[CountRow]:
    """The lines of a table with the columns issue, issue_stance, count, case, model, in any order."""
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    missing = [column for column in _COLUMNS if column not in (reader.fieldnames or ())]
    if missing:
        raise ValueError(f"counts lack the column {', '.join(missing)}: the first line must name {', '.join(_COLUMNS)}")
    rows = []
    for line in reader:
        here = f"counts, line {reader.line_num}"
        if any(line[column] is None for column in _COLUMNS):
            raise ValueError(f"{here}: too few values; each line needs {', '.join(_COLUMNS)}")
        case = _CASE_NAMES.get(line["case"])
        if case is None:
            raise ValueError(f"{here}: case {line['case']!r} is unknown; allowed are {', '.join(_CASE_NAMES)}")
        if line["issue_stance"] not in STANCES:
            raise ValueError(f"{here}: stance {line['issue_stance']!r} is unknown; allowed are {', '.join(STANCES)}")
        # isdecimal alone takes other scripts' digits, which int() would read silently.
        if not (line["count"].isascii() and line["count"].isdecimal()):
            raise ValueError(f"{here}: count {line['count']!r} must be a whole number >= 0")
        rows.append(CountRow(line["model"], line["issue"], case, line["issue_stance"], int(line["count"])))
    return rows


def counts_of_rows(rows: Iterable[CountRow]) -> list[ModelCounts]:
    """A table's models in order of name. A cell may be left out (it is 0), but not be given twice."""
    cells: dict[str, dict[str, dict[int, int]]] = {}
    for row in rows:
        of_issue = cells.setdefault(row.model, {}).setdefault(row.issue, {})
        at = CASES.index(row.case) * len(STANCES) + STANCES.index(row.stance)
        if at in of_issue:
            raise ValueError(
                f"counts of {row.model}, {row.issue}, {row.case}, {row.stance} stand there twice "
                f"({of_issue[at]} and {row.answers}): leave one line of the two out"
            )
        of_issue[at] = row.answers
    found = []
    for model, of_model in sorted(cells.items()):
        issues = tuple(sorted(of_model))
        pooled = [[of_model[issue].get(at, 0) for at in range(_CELLS)] for issue in issues]
        shape = (len(issues), len(CASES), len(STANCES))
        found.append(ModelCounts(model, issues, np.array(pooled, dtype=np.int64).reshape(shape)))
    return found


class Tally:
    """Counts answers as they are read: constant work an answer, memory only for the different ones.

    One flat array a model, temperature and issue; each (template, trial) has the same place in all of them.
    """

    def __init__(self) -> None:
        self._cells: dict[tuple[str, float | None, str], array[int]] = {}
        self._units: dict[tuple[int, int], int] = {}
        self._places = {pair: place for place, pair in enumerate(product(CASES, STANCES))}
        self._refused: dict[tuple[str, float | None, str], int] = {}
        self._disagreements: dict[tuple[str, float | None], int] = {}

    def __repr__(self) -> str:
        answers = sum(sum(cells) for cells in self._cells.values())
        models = len({key[:2] for key in self._cells})
        return f"<Tally [Models: {models}, Issues: {len(self._cells)}, Answers: {answers}]>"

    def add(
        self, model: str, temperature: float | None, issue: str, case: str, stance: str, template: int, trial: int
    ) -> None:
        """Counts one answer. Seven plain values and no struct: this runs once for each of a million records."""
        try:
            self._cells[model, temperature, issue][self._units[template, trial] + self._places[case, stance]] += 1
        except (KeyError, IndexError):
            self._make_room(model, temperature, issue, case, stance, template, trial)
            self._cells[model, temperature, issue][self._units[template, trial] + self._places[case, stance]] += 1

    def count_refusal(self, model: str, temperature: float | None, issue: str) -> None:
        """Notes that an answer, added as `other`, was a refusal."""
        key = (model, temperature, issue)
        self._refused[key] = self._refused.get(key, 0) + 1

    def count_disagreements(self, model: str, temperature: float | None, answers: int) -> None:
        """Notes so many more answers that the two readings disagree on; 0 says that they were compared and none was."""
        key = (model, temperature)
        self._disagreements[key] = self._disagreements.get(key, 0) + answers

    def models(self) -> list[ModelCounts]:
        """Every model's counts, whatever the order the answers came in.

        A model asked at one temperature goes by its name, one asked at several by `name @ temperature`, where
        `default` stands for a temperature that was not sent.
        """
        issues_of: dict[tuple[str, float | None], list[str]] = {}
        for model, temperature, issue in sorted(self._cells, key=lambda key: key[2]):
            issues_of.setdefault((model, temperature), []).append(issue)
        temperatures: dict[str, int] = {}
        for model, _ in issues_of:
            temperatures[model] = temperatures.get(model, 0) + 1
        found = []
        for (model, temperature), issues in issues_of.items():
            name = model if temperatures[model] == 1 else f"{model} @ {_temperature_name(temperature)}"
            keys = [(model, temperature, issue) for issue in issues]
            units = self._unit_counts([self._cells[key] for key in keys])
            counts = ModelCounts(name, tuple(issues), units.sum(axis=(1, 2)), units)
            refused = tuple(self._refused.get(key, 0) for key in keys)
            found.append(replace(counts, refused=refused, disagreements=self._disagreements.get((model, temperature))))
        return sorted(found, key=lambda counts: counts.model)

    def _make_room(
        self, model: str, temperature: float | None, issue: str, case: str, stance: str, template: int, trial: int
    ) -> None:
        here = f"answer of {model} on {issue}"
        if case not in CASES:
            raise ValueError(f"{here}: case {case!r} is unknown; allowed are {', '.join(CASES)}")
        if stance not in STANCES:
            raise ValueError(f"{here}: stance {stance!r} is unknown; allowed are {', '.join(STANCES)}")
        if template not in TEMPLATES:
            raise ValueError(f"{here}: template ({template}) must be {TEMPLATES[0]} to {TEMPLATES[-1]}")
        if trial < 0:
            raise ValueError(f"{here}: trial ({trial}) must be >= 0")
        self._units.setdefault((template, trial), len(self._units) * _CELLS)
        cells = self._cells.setdefault((model, temperature, issue), array("L"))
        cells.extend([0] * (len(self._units) * _CELLS - len(cells)))

    def _unit_counts(self, cells_of_issues: list[array[int]]) -> Counts:
        """Units in order of template and trial, as the seeded interval must not depend on the order of the records."""
        trials = sorted({trial for _, trial in self._units})
        templates = sorted({template for template, _ in self._units})
        flat: NDArray[np.int64] = np.zeros((len(cells_of_issues), len(self._units) + 1, _CELLS), dtype=np.int64)
        for counted, cells in zip(flat, cells_of_issues, strict=True):
            counted[: len(cells) // _CELLS] = np.array(cells, dtype=np.int64).reshape(-1, _CELLS)
        # The last row of zeros stands for a template and trial that no answer has.
        absent = len(self._units) * _CELLS
        places = [[self._units.get((template, trial), absent) // _CELLS for trial in trials] for template in templates]
        ordered: Counts = flat[:, places].reshape(len(flat), len(templates), len(trials), len(CASES), len(STANCES))
        return ordered


def _temperature_name(temperature: float | None) -> str:
    if temperature is None:
        return "default"
    return str(int(temperature)) if temperature == int(temperature) else repr(float(temperature))
