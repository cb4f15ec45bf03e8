"""The tables of a prompt's variants: the score of each, and the paired difference of every two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ....report.interval_cells import cells_of_entry, interval_columns
from ....report.table import MODEL, Cells, Column, Table, cells_in, table_of

COMPARED: Cells[tuple[Any, Mapping[str, Any]]] = {
    Column("difference", "Difference", "small"): lambda row: row[1]["difference"],
    **cells_in(interval_columns("small"), lambda row: cells_of_entry(row[1])),
    Column("p", "p", "p"): lambda row: row[1]["p"],
    Column("p_holm", "p, adjusted by Holm", "p"): lambda row: row[1]["p_adjusted"],
    Column("items", "Items", "count"): lambda row: row[1]["items"],
}
"""The columns of a paired difference, of rows that have its entry of scores.json as their second part."""


def variant_tables(benchmark: str, entries: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Table]:
    """Returns the tables that have rows, of the models' names with their entries of scores.json."""
    # The benchmark owns the entry: it may use these names for something else.
    varied = [
        (model, entry)
        for model, entry in entries
        if isinstance(entry.get("variants"), Mapping) and "variant_pairs" in entry
    ]
    each = table_of(
        f"{benchmark}-variants",
        "Scores by variant",
        "The mean over the items, asked in this variant of the prompt alone.",
        [((model, name), score) for model, entry in varied for name, score in entry["variants"].items()],
        {
            MODEL: lambda row: row[0][0],
            Column("variant", "Variant"): lambda row: row[0][1],
            Column("score", "Score", "small"): lambda row: row[1]["mean"],
            **cells_in(interval_columns("small"), lambda row: cells_of_entry(row[1])),
            Column("items", "Items", "count"): lambda row: row[1]["items"],
        },
    )
    compared = table_of(
        f"{benchmark}-variant-pairs",
        "Variants compared",
        "Paired over the items that have a score in both variants. Holm adjusts over all rows of a run.",
        [(model, pair) for model, entry in varied for pair in entry["variant_pairs"]],
        {
            MODEL: lambda row: row[0],
            Column("a", "Variant"): lambda row: row[1]["a"],
            Column("b", "Minus"): lambda row: row[1]["b"],
            **COMPARED,
        },
    )
    return [table for table in (each, compared) if table.rows]
