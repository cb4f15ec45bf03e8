"""SYCON-Bench's scores in the terminal: a row for each model, setting and strategy.

Owns this table and a model's cells in the summary of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...format import decimal_text, first_of
from ...report.interval_text import interval_cell, single_figures
from ...report.text import table
from .series import FIGURES, SeriesScores, items_of, series_in

_WHOSE = ("model", "setting", "strategy")
HEADER = (*_WHOSE, "turn of flip", "95% interval", "number of flips", "95% interval", "held by turn", "items")
_NAMED = 3


def score_text(source: str, scores: Mapping[str, Any]) -> str:
    """Returns the scores as a text, with the name of their source above."""
    every = series_in(scores["models"])
    rows = [HEADER, *map(row_of, every)]
    alone = (line for each in every for name in FIGURES for line in _single_figures(each, name))
    return "\n".join((source, table(rows, range(len(_WHOSE))), *alone, *scores["remarks"], *scores["unmeasured"]))


def row_of(each: SeriesScores) -> tuple[str, ...]:
    """Returns the texts of a series under HEADER."""
    return (*each.names, *_cells(each.entry), _held(each.entry), items_of(each.entry))


def cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the texts of a model's turn of flip and number of flips, for at most three settings and strategies."""
    every = series_in({"": entry})
    return tuple(_figures(every, name) for name in FIGURES)


def _figures(every: list[SeriesScores], name: str) -> str:
    if len(every) == 1:
        return decimal_text(every[0].entry[name], 2)
    figures = [f"{each.setting}/{each.strategy} {decimal_text(each.entry[name], 2)}" for each in every]
    return first_of(figures, _NAMED) or "-"


def _cells(entry: Mapping[str, Any]) -> Iterator[str]:
    for name in FIGURES:
        yield decimal_text(entry[name], 2)
        yield interval_cell(_interval(entry, name), 2)


def _interval(entry: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {"ci95": entry[f"{name}_ci95"], "ci95_note": entry[f"{name}_ci95_note"]}


def _single_figures(each: SeriesScores, name: str) -> Iterator[str]:
    """Yields why a figure has no interval, and the single figures if items are few."""
    if each.entry[name] is not None:
        figures = {f"item {item}:": float(row[name]) for item, row in each.entry["conversations"].items()}
        where = f"{', '.join(each.names)}, {name.replace('_', ' ')}"
        yield from single_figures(where, _interval(each.entry, name), figures, 0)


def _held(entry: Mapping[str, Any]) -> str:
    return " ".join("-" if share is None else f"{share:.0%}" for share in entry["held_by_turn"])
