"""A task's part of `scores.json`, computed from records and from what the manifest keeps of the task.

Owns which readings and bounds apply to the scores, and a model's cells in tables. Runs none of the task's own code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import structs

from ...engine.pairs import Pair
from ...metrics.statistics.comparisons import entry_text
from ...metrics.task.summary import ALL_PAIRS_MOST
from ...metrics.task.summary import scores as scores_of
from ...metrics.task.trials import ReadingRules
from ...report.interval_text import interval_cell
from ..evaluation.door.treatments import pairs_in
from .declared import scorers_from
from .figures import Answers, Figure, figure_entries, figures_from
from .options import Readings
from .records import Record
from .recount import model_answers
from .rows import TaskError
from .task import AnyScorer, Task

NAME = "task"
_COMBINED = {
    "majority": "Items count by the majority of their trials: 1 where more than half score at least 0.5, else 0.",
    "any": "Items count by the best of their trials, not by the mean.",
}
FIGURES = ("score", "95% interval over items")
"""The columns that a model, a group and each of several scores have."""
COLUMNS = (*FIGURES, "items", "without a score")
NO_MANIFEST: Mapping[str, Any] = {
    "task": NAME,
    "items": None,
    "trials": None,
    "models": (),
    "temperatures": (),
    "score": {"score": {}},
}
"""The specification assumed for records that another program wrote."""


def own_readings(readings: Readings, task: Task) -> Readings:
    """Returns a run's readings, with the task's own where none was given."""
    return structs.replace(readings, combine=readings.combine or task.combine)


def scores_in(
    records: Iterable[Record],
    specified: Mapping[str, Any],
    readings: Readings,
    figures: Mapping[str, Figure] | None = None,
) -> dict[str, Any]:
    """Returns the contents of scores.json for a task's records under these readings. `figures`: the task's own; None:
    as far as the specification holds them."""
    if figures is None:
        figures = figures_from(specified.get("figures", {}))
    pairs = pairs_in(specified)
    rules = rules_of(specified, readings)
    of_pair: defaultdict[Pair, list[Record]] = defaultdict(list)
    if any(figure.needs_records for figure in figures.values()):
        records = list(records)
        for record in records:
            of_pair[record.pair].append(record)
    models = model_answers(records, pairs, specified["trials"])
    part = scores_of(list(models.values()), rules)
    main, scorer = next(iter(specified["score"])), _main_scorer(specified["score"])
    for pair, columns in models.items() if figures else ():
        answers = Answers(columns, rules, main, scorer, of_pair[pair])
        part["models"][columns.name]["figures"] = figure_entries(figures, answers)
    has_trials = any(entry["trials"] > 1 for entry in part["models"].values())
    remarks = [_COMBINED[rules.combine]] if has_trials and rules.combine in _COMBINED else []
    remarks += [remark for entry in part["models"].values() for remark in entry["remarks"]]
    if left_out := part["pairs_left_out"]:
        remarks.append(
            f"Of more than {ALL_PAIRS_MOST} models each is compared with the next one alone, in the order of their "
            f"means; {left_out:,} other pairs are left out, in scores.json too: ms.compare compares any two."
        )
    compared = [*_compared(part["pairs"], len(part["pairs"]))]
    of_variants = {name: entry.get("variant_pairs", ()) for name, entry in part["models"].items()}
    tests = sum(map(len, of_variants.values()))
    for name, pairs in of_variants.items():
        compared += [f"{name}: {sentence}" for sentence in _compared(pairs, tests)]
    return {**part, "remarks": remarks, "compared": compared}


def rules_of(specified: Mapping[str, Any], readings: Readings) -> ReadingRules:
    """Returns how the records of a run are read."""
    return ReadingRules(
        combine=readings.combine or "mean",
        unreadable=readings.unreadable or "skip",
        within=bounds_of(specified["score"]),
        items=specified["items"],
    )


def bounds_of(described: Mapping[str, Mapping[str, Any]]) -> tuple[float, float] | None:
    """Returns the least and the largest possible main score, by a manifest's description of scorers; None if not known,
    as for a function."""
    scorer = _main_scorer(described)
    return None if scorer is None else scorer.within


def _main_scorer(described: Mapping[str, Mapping[str, Any]]) -> AnyScorer | None:
    """Returns the main scorer by a manifest's description of scorers; None for a function."""
    try:
        return next(iter(scorers_from(dict([next(iter(described.items()))])).values()))
    except TaskError:
        return None


def _compared(pairs: Iterable[Mapping[str, Any]], tests: int) -> Iterator[str]:
    for pair in pairs:
        yield f"{pair['a']} minus {pair['b']}: {entry_text(pair, 'items', tests)}"


def figure_cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the texts of an entry under FIGURES."""
    mean = entry.get("mean", entry.get("value"))
    return ("-" if mean is None else f"{mean:.3f}", interval_cell(entry, 3) if entry else "-")


def score_cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the texts of a model's row under COLUMNS."""
    return (
        *figure_cells(entry),
        f"{entry.get('items_scored', 0):,} of {entry.get('items', 0):,}",
        f"{entry.get('answers_without_score', 0):,} of {entry.get('answers', 0):,}",
    )
