"""The pieces that a page is put together from: sections, and how a table, a figure and its data stand in them.

Owns these shapes and this markup. Knows no benchmark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from .html_tables import table_html
from .inert import in_html
from .table import Figure, Findings, Table

_SVG_ID = re.compile(r'(\bid="|url\(#|href="#)([\w-]+)')
_NUMBERED = re.compile(r"(?:^|-)(?:table|figure)-(\d+)-")


class Section(Struct, frozen=True):
    """`body` is markup. `targets` are identities in it that the contents point at: what each is, and its number."""

    name: str
    title: str
    body: str
    targets: tuple[tuple[str, str], ...] = ()


class Part(Struct, frozen=True):
    """What a page says of one benchmark. `packs` are data for its scripts, by the identity they stand under; `scripts`
    and `style` are its own, besides those of every page."""

    name: str
    sections: tuple[Section, ...]
    figures: tuple[Figure, ...]
    packs: Mapping[str, str]
    scripts: tuple[str, ...] = ()
    style: str = ""


def remarks_html(remarks: Iterable[str]) -> str:
    items = "".join(f"<li>{in_html(remark)}</li>" for remark in remarks)
    return f'<ul class="remarks">{items}</ul>'


def targets_of(kind: str, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Tables or figures with the paper's number."""
    found = ((name, _NUMBERED.search(name)) for name in names)
    return tuple((name, f"{kind} {number[1]}" if number else name) for name, number in found)


def shared_out(findings: Findings, prefix: str = "") -> tuple[list[Table], list[Table], list[Table]]:
    """Tables that no figure is drawn from: the paper's, the data behind its figures, and the rest."""
    drawn = {figure.table for figure in findings.figures}
    loose = [table for table in findings.tables if table.name not in drawn]
    of_paper = [table for table in loose if table.name.startswith(f"{prefix}table-")]
    behind = [table for table in loose if table.name.startswith(f"{prefix}figure-")]
    return of_paper, behind, [table for table in loose if table not in of_paper and table not in behind]


def table_section(table: Table) -> str:
    return (
        f'<h3>{in_html(table.title)}</h3><p class="note">{in_html(table.note)}</p>'
        f"{table_html(table, table.name, file=csv_name(table))}"
    )


def data_html(table: Table) -> str:
    """A table that is better looked up than read through."""
    title = in_html(table.title)
    return (
        f'<details class="data"><summary>{title}</summary><p class="note">{in_html(table.note)}</p>'
        f"{table_html(table, f'{table.name}-data', file=csv_name(table))}</details>"
    )


def figures_html(findings: Findings, behind: Iterable[Table]) -> str:
    tables = {table.name: table for table in findings.tables}
    drawn = "".join(figure_html(figure, tables[figure.table]) for figure in findings.figures)
    return drawn + "".join(map(data_html, behind))


def csv_name(table: Table) -> str:
    """Where a table's file stands, from the page."""
    return f"tables/{table.name}.csv"


def figure_html(figure: Figure, table: Table | None) -> str:
    """`table` None: what it is drawn from stands beneath another figure."""
    name, title = figure.name, in_html(figure.title)
    if figure.spec is None:
        drawing = f'<p class="empty">{in_html(figure.empty)}</p>'
    else:
        drawing = (
            f'<div class="plot" role="region" tabindex="0" aria-label="{title}">'
            f'<div class="still">{_still(figure)}</div></div>'
        )
    return (
        f'<figure id="{name}"><h3>{title}</h3>{drawing}<figcaption>{in_html(figure.caption)}</figcaption>'
        f"{'' if table is None else data_html(table)}</figure>"
    )


def _still(figure: Figure) -> str:
    """The figure as it stands in the page: its colours are the page's, by name."""
    import vl_convert

    drawn = str(vl_convert.vegalite_to_svg(figure.spec or {}))
    # Vega numbers what is referred to by how much it has drawn before; a page has several pictures, and the same bytes
    # whenever it is made.
    places: dict[str, int] = {}
    return _SVG_ID.sub(lambda found: f"{found[1]}{figure.name}-{places.setdefault(found[2], len(places))}", drawn)
