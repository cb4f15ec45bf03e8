"""A task's figures in `scores.json`: of each model, from the answers that are read for its scores.

Owns the shape of these entries, and which of them are kept where a function can't be run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...engine.pairs import Pair
from ...metrics.naming import row_names
from ...metrics.statistics.intervals import interval_entry
from ...metrics.task.figures import OF
from ...metrics.task.trials import ModelAnswers, ReadingRules
from .figures import F1, Answers, Figure, OwnFigure
from .records import Record
from .rows import TaskError


class FigureRows:
    """The answers that a task's figures are computed from, gathered while they are read for its scores."""

    def __init__(self, figures: Mapping[str, Figure], scorer: Any, main: str) -> None:
        self._figures, self._scorer, self._main = figures, scorer, main
        self._needs_records = any(isinstance(each, F1 | OwnFigure) for each in figures.values())
        self._records: defaultdict[Pair, list[Record]] = defaultdict(list)

    def gathered(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            of_pair = self._records[record.pair]
            if self._needs_records:
                of_pair.append(record)
            yield record

    def entries(self, pairs: Iterable[Pair], models: Sequence[ModelAnswers], rules: ReadingRules) -> dict[str, Any]:
        """Returns the figures of each model for `scores.json`, by the model's name."""
        of_name = {name: pair for pair, name in row_names(dict.fromkeys([*pairs, *self._records])).items()}
        return {
            columns.name: {
                name: self._entry(
                    figure,
                    Answers(columns, rules, self._main, self._scorer, self._records.get(of_name[columns.name], ())),
                )
                for name, figure in self._figures.items()
            }
            for columns in models
            if self._figures
        }

    def _entry(self, figure: Figure, answers: Answers) -> dict[str, Any]:
        value, problem = None, None
        try:
            if answers.columns.is_worthless():
                raise TaskError("half of the answers have no score, or more")
            value = figure.of(answers)
        except TaskError as error:
            problem = str(error)
        entry = {"value": None if value is None else value.mean, **interval_entry(value, OF)}
        if value is None:
            entry["ci95_note"] = f"no figure: {problem or 'it is not defined for these answers'}"
        entry[OF] = 0 if value is None else value.clusters
        return {**entry, "function": figure.described_as} if isinstance(figure, OwnFigure) else entry


def has_functions(specification: Mapping[str, Any] | None) -> bool:
    """Returns whether a run has figures by functions."""
    return any(each["figure"] == "function" for each in (specification or {}).get("figures", {}).values())


def with_kept(part: Mapping[str, Any], kept: Any, task: str) -> Mapping[str, Any]:
    """Returns a task's part of `scores.json` with the figures of functions, which are not run here, as the file has
    them that the run's own program wrote: `kept`."""
    for model, entry in part["models"].items():
        before = _within(kept, task, "models", model, "figures")
        for name, figure in entry["figures"].items():
            of_name = _within(before, name)
            if "function" in figure and of_name.get("function") == figure["function"]:
                entry["figures"][name] = of_name
    return part


def _within(value: Any, *keys: str) -> Mapping[str, Any]:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}
