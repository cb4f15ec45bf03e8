"""The section of a report on what changed between two runs of one model, and its tables: for every benchmark.

Owns their columns and words. Computes no figure.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ....format import count_text
from ....report.escaping import in_html
from ....report.sections import PageContents, Section, table_section
from ....report.table import Cell, Column, Table
from ..reading.changes import RunChange

_BETWEEN = (Column("model", "Model"), Column("before", "From"), Column("after", "To"))
_NUMBERS = (
    Column("compared", "Answers in both", "count"),
    Column("changed", "Changed", "count"),
    Column("share", "Share changed", "share"),
)
_CHANCE = (
    "A model that is asked twice answers otherwise at times by chance alone, above all at a high temperature; a change "
    "here is no test. No interval is given."
)
_UNLIKE = "The runs were not made alike (see Read with care), which alone may explain a change. No interval is given."


def with_changes(contents: PageContents, prefix: str, changes: Sequence[RunChange], unit: str = "item") -> PageContents:
    """Returns a benchmark's part of the report with the section on what changed, after its first section. `prefix` is
    the beginning of names; `changes` has one for each model in two runs; `unit` is the noun for what a record belongs
    to. Without changes, the part stays as it is."""
    if not changes:
        return contents
    why = _UNLIKE if contents.unlike else _CHANCE
    tables = [table for table in (_by_model(prefix, changes, why), _by_unit(prefix, changes, why)) if table.rows]
    sentences = "".join(f"<p>{in_html(_sentence(change, unit))}</p>" for change in changes)
    section = Section(f"{prefix}-changed", "What changed", sentences + "".join(map(table_section, tables)))
    first, *rest = contents.sections
    return replace(contents, sections=(first, section, *rest), tables=(*contents.tables, *tables))


def _sentence(change: RunChange, unit: str) -> str:
    name = f"{change.pair}, from {change.before} to {change.after}"
    if not change.compared:
        return f"{name}: the runs share no answer, so nothing can be compared."
    moved = sum(bool(unit.changed) for unit in change.units)
    text = (
        f"{name}: {change.changed:,} of {change.compared:,} answers are read otherwise "
        f"({change.changed / change.compared:.1%}), in {moved:,} of {count_text(len(change.units), unit)}."
    )
    if change.changed:
        (before, after), number = min(change.ways.items(), key=lambda way: (-way[1], way[0]))
        text += f" Most often: {before} to {after} ({number:,})."
    alone = change.alone_before + change.alone_after
    return text + (f" {alone:,} answers are in one of the two alone, and are not compared." if alone else "")


def _by_model(prefix: str, changes: Sequence[RunChange], why: str) -> Table:
    rows = list[tuple[Cell, ...]]()
    for change in changes:
        between = (str(change.pair), change.before, change.after)
        for (before, after), number in sorted(change.ways.items(), key=lambda way: (-way[1], way[0])):
            rows.append((*between, before, after, number, change.compared, number / change.compared))
    return Table(
        f"{prefix}-changed-ways",
        "What became what",
        f"Each change of reading between the two runs, of one model's answers with the same id. {why}",
        (
            *_BETWEEN,
            Column("reading_before", "Was read as"),
            Column("reading_after", "Is read as"),
            Column("changed", "Answers", "count"),
            Column("compared", "Of answers in both", "count"),
            Column("share", "Share", "share"),
        ),
        tuple(rows),
    )


def _by_unit(prefix: str, changes: Sequence[RunChange], why: str) -> Table:
    rows = list[tuple[Cell, ...]]()
    for change in changes:
        between = (str(change.pair), change.before, change.after)
        for each in change.units:
            way = f"{each.ways[0][0][0]} to {each.ways[0][0][1]} ({each.ways[0][1]:,})" if each.ways else None
            share = each.changed / each.compared
            rows.append((*between, each.unit, each.compared, each.changed, share, way))
    return Table(
        f"{prefix}-changed-by-unit",
        "Where answers changed",
        "By issue, conversation or item, the largest share first. Answers in both are those with a reading in both "
        f"runs. {why}",
        (*_BETWEEN, Column("unit", "About"), *_NUMBERS, Column("most", "Most often")),
        tuple(rows),
        is_long=True,
    )
