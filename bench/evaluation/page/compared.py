"""The section on runs on the same rows: paired differences, what the runs differ in, and the items that flipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ....report.escaping import in_html
from ....report.labels import folder_labels
from ....report.sections import PageContents, Section, table_section
from ....report.table import MODEL, Column, Table, table_of
from ..door.benchmark import ItemBenchmark
from ..reading.run_comparison import RunComparison, compared_folders, runs_left_out
from .variants import COMPARED

_FLIPS_MOST = 200
# Of figures that are neither right nor wrong nearly all differ.
_LARGEST = 10


def with_compared(
    contents: PageContents, benchmark: ItemBenchmark[Any], folders: Sequence[Path], chosen: Mapping[str, Any]
) -> PageContents:
    """Returns a part of the page with the comparisons of every two of its runs, after its first section; unchanged if
    there is one run, or the benchmark compares none."""
    labels = folder_labels(list(folders))
    comparisons = compared_folders(benchmark, {labels[folder]: folder for folder in folders}, chosen)
    if not comparisons:
        return contents
    tables = [table for table in (_differences(benchmark, comparisons), _flips(benchmark, comparisons)) if table.rows]
    left_out = f"<p>{text}</p>" if (text := runs_left_out(comparisons)) else ""
    body = left_out + "".join(map(_about, comparisons)) + "".join(map(table_section, tables))
    section = Section(f"{benchmark.name}-compared", "Runs compared", body)
    first, *rest = contents.sections
    return replace(
        contents,
        sections=(first, section, *rest),
        tables=(*contents.tables, *tables),
        unlike=contents.unlike or "; ".join(each.why_not for each in comparisons if each.why_not),
    )


def _about(compared: RunComparison) -> str:
    if compared.why_not:
        return f'<p class="note">Not compared: {in_html(compared.why_not)}.</p>'
    texts = [f"<p>{in_html(compared.sentence)}.</p>"]
    for each in compared.differences:
        if each.is_long:
            lines = "\n".join(each.lines())
            texts.append(
                f'<p class="note">{in_html(each.option)}: − {in_html(compared.a)}, + {in_html(compared.b)}</p>'
                f"<pre>{in_html(lines)}</pre>"
            )
    return "".join(texts)


def _differences(benchmark: ItemBenchmark[Any], comparisons: Sequence[RunComparison]) -> Table:
    note = (
        "Paired over the items that both runs have a score for. A difference has a p only where the runs differ in "
        "exactly one option: with several, it can’t be put down to one. Holm adjusts over the models of two runs."
    )
    return table_of(
        f"{benchmark.name}-runs-compared",
        "Differences between runs",
        note,
        [((compared, row), row.entry) for compared in comparisons for row in compared.rows],
        {
            Column("a", "Run"): lambda each: each[0][0].a,
            Column("b", "Minus"): lambda each: each[0][0].b,
            MODEL: lambda each: each[0][1].name,
            **COMPARED,
            Column("flipped", "Flipped", "count"): lambda each: len(each[0][1].flips) if each[0][0].has_right else None,
            Column("differ", "The runs differ in"): lambda each: (
                ", ".join(difference.brief for difference in each[0][1].differences) or None
            ),
        },
    )


def _flips(benchmark: ItemBenchmark[Any], comparisons: Sequence[RunComparison]) -> Table:
    note = (
        f"Items that are right in one run alone, {_FLIPS_MOST} at most; of scores that are neither right nor wrong, "
        f"the {_LARGEST} largest differences."
    )
    flips = [
        (compared, row, flip)
        for compared in comparisons
        for row in compared.rows
        for flip in row.flips[: None if compared.has_right else _LARGEST]
    ]
    return table_of(
        f"{benchmark.name}-runs-flipped",
        "Items that flipped",
        note,
        flips[:_FLIPS_MOST],
        {
            Column("item", "Item"): lambda each: each[2].item,
            MODEL: lambda each: each[1].name,
            Column("a", "Run"): lambda each: each[0].a,
            Column("score_a", "Score", "small"): lambda each: each[2].a,
            Column("b", "Other run"): lambda each: each[0].b,
            Column("score_b", "Its score", "small"): lambda each: each[2].b,
        },
    )
