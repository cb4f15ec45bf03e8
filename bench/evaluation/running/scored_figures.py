"""The figures of a run for a comparison with another run, taken from its scores: one for each issue or conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ....engine.pairs import Pair
from ....engine.runs.run_folder import RECORDS
from ....metrics.naming import row_names
from ..door.benchmark import ItemBenchmark
from ..door.run_figures import RowFigures, RunFigures
from ..door.served_rows import ScoredRun
from ..door.treatments import pairs_in
from .record_lines import record_lines
from .scoring import part_of


def scored_figures(
    benchmark: ItemBenchmark[Any],
    run: ScoredRun,
    figures_of: Callable[[Mapping[str, Any], Pair], Mapping[str, float | None]],
    *,
    of: str,
    within: tuple[float, float],
    left_out: Iterable[str] = (),
) -> RunFigures:
    """Returns a run's figures: those that `figures_of` finds in its part of scores.json for a pair. What decided them
    is the benchmark's manner, without what `left_out` names."""
    part = part_of(benchmark, run.rows.lines(record_lines(run.folder / RECORDS)), run)
    manner = benchmark.manner(run.folder, {benchmark.name: part}, {})
    rows: dict[str, RowFigures] = {}
    for pair, name in row_names(pairs_in(run.specification or {})).items():
        figures = {item: value for item, value in figures_of(part, pair).items() if value is not None}
        rows[name] = RowFigures(pair, figures)
    return RunFigures(
        is_told=run.manifest is not None,
        rows=rows,
        options={name: text for name, text in manner.items() if name not in left_out},
        addresses=(run.specification or {}).get("endpoints") or {},
        within=within,
        of=of,
    )
