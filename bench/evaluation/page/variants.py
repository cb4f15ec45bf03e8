"""The tables of a prompt's variants: the score of each, and the paired difference of every two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ....report.interval_cells import cells_of_entry, interval_columns
from ....report.table import MODEL, Cell, Column, Table

_ITEMS = Column("items", "Items", "count")


def variant_tables(benchmark: str, entries: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Table]:
    """Returns the tables that have rows, of the models' names with their entries of scores.json."""
    scores: list[tuple[Cell, ...]] = []
    pairs: list[tuple[Cell, ...]] = []
    for model, entry in entries:
        # The benchmark owns the entry: it may use these names for something else.
        if not isinstance(variants := entry.get("variants"), Mapping) or "variant_pairs" not in entry:
            continue
        for name, score in variants.items():
            scores.append((model, name, score["mean"], *cells_of_entry(score), score["items"]))
        for pair in entry["variant_pairs"]:
            figures = (pair["difference"], *cells_of_entry(pair), pair["p"], pair["p_adjusted"], pair["items"])
            pairs.append((model, pair["a"], pair["b"], *figures))
    interval = interval_columns("small")
    each = Table(
        f"{benchmark}-variants",
        "Scores by variant",
        "The mean over the items, asked in this variant of the prompt alone.",
        (MODEL, Column("variant", "Variant"), Column("score", "Score", "small"), *interval, _ITEMS),
        tuple(scores),
    )
    columns = (
        MODEL,
        Column("a", "Variant"),
        Column("b", "Minus"),
        Column("difference", "Difference", "small"),
        *interval,
        Column("p", "p", "p"),
        Column("p_holm", "p, adjusted by Holm", "p"),
        _ITEMS,
    )
    compared = Table(
        f"{benchmark}-variant-pairs",
        "Variants compared",
        "Paired over the items that have a score in both variants. Holm adjusts over all rows of a run.",
        columns,
        tuple(pairs),
    )
    return [table for table in (each, compared) if table.rows]
