"""The contents of a report, and the markup of the tables and figures in their sections.

Owns `PageContents`, the one shape between a benchmark's numbers and a page. Knows no benchmark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from msgspec import Struct

from .escaping import in_html
from .headline import Headline
from .html_tables import table_html
from .pictures import drawing_library
from .standings import AnswerStatus, RunOrigin
from .table import PUBLISHED, Figure, Table

_SVG_ID = re.compile(r'(\bid="|url\(#|href="#)([\w-]+)')
_ROLES = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
_NUMBERED = re.compile(r"(?:^|-)(?:table|figure)-(\d+)-")


class Section(Struct, frozen=True):
    """A section of a page. `body` is its markup; `targets` are pairs of an element's id and its label in the table of
    contents."""

    name: str
    title: str
    body: str
    targets: tuple[tuple[str, str], ...] = ()


class PageContents(Struct, frozen=True, kw_only=True):
    """Everything that a report has on one benchmark: the sections of its page, and the contents of its files."""

    name: str = ""
    """The benchmark's name for readers."""
    title: str = ""
    """The heading of a page of this benchmark alone."""
    headline: Headline | None = None
    """What a reader sees first, at the top of the first section; None: there is nothing to show."""
    sections: tuple[Section, ...] = ()
    """The sections of the page, in order."""
    tables: tuple[Table, ...] = ()
    """Every table that gets a CSV file."""
    figures: tuple[Figure, ...] = ()
    """Every figure, each drawn from one of the tables."""
    remarks: tuple[str, ...] = ()
    """Sentences that a reader must know before reading a number."""
    standings: tuple[AnswerStatus, ...] = ()
    """The numbers of existing and missing answers of each model."""
    unmeasured: tuple[str, ...] = ()
    """A sentence for each thing of which nothing was measured."""
    silent: tuple[str, ...] = ()
    """The sentences of `unmeasured`, and one for each model that has a score only because silence is scored too."""
    unlike: str = ""
    """The sentence on how the runs differ; empty if they do not."""
    of_samples: str = ""
    """The sentence that the data are samples of the package; empty if they are the user's own."""
    origins: tuple[RunOrigin, ...] = ()
    """How each run was made."""
    choices: tuple[tuple[str, str], ...] = ()
    """The readings that the report uses, as pairs of a label and a value."""
    command: str = ""
    """The command that makes the report again."""
    packs: Mapping[str, str] = MappingProxyType({})
    """Data for the scripts of the page, by the identity of their element."""
    scripts: tuple[str, ...] = ()
    """Scripts of this benchmark, besides those of every page."""
    style: str = ""
    """Style rules of this benchmark, besides those of every page."""


def remarks_html(remarks: Iterable[str]) -> str:
    items = "".join(f"<li>{in_html(remark)}</li>" for remark in remarks)
    return f'<ul class="remarks">{items}</ul>'


def targets_of(kind: str, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Returns pairs of each name and its label: `kind` with the paper's number if the name contains one, else the
    name."""
    matches = ((name, _NUMBERED.search(name)) for name in names)
    return tuple((name, f"{kind} {number[1]}" if number else name) for name, number in matches)


def shared_out(contents: PageContents, prefix: str = "") -> tuple[list[Table], list[Table], list[Table]]:
    """Returns three lists of the tables from which no figure is drawn: the paper's tables, the data behind its figures,
    and the rest. `prefix` is the start of the tables' names."""
    drawn = {figure.table for figure in contents.figures}
    loose = [table for table in contents.tables if table.name not in drawn]
    of_paper = [table for table in loose if table.name.startswith(f"{prefix}table-")]
    behind = [table for table in loose if table.name.startswith(f"{prefix}figure-")]
    return of_paper, behind, [table for table in loose if table not in of_paper and table not in behind]


def table_section(table: Table) -> str:
    """Returns the markup of a table under a heading; one line for an empty table, and a folded one if every row is the
    paper's."""
    if not table.rows:
        return f'<p class="empty" id="{table.name}">{in_html(table.title)}: there is no row.</p>'
    body = f'<p class="note">{in_html(table.note)}</p>{table_html(table, table.name, file=csv_name(table))}'
    if all(PUBLISHED in row for row in table.rows):
        return (
            f'<details class="data"><summary>{in_html(table.title)}: published figures alone</summary>{body}</details>'
        )
    return f"<h3>{in_html(table.title)}{anchor_html(table.name, table.title)}</h3>{body}"


def anchor_html(name: str, title: str) -> str:
    """Returns the link at a heading that leads to it."""
    return f'<a class="anchor" href="#{name}" aria-label="Link to {in_html(title)}">#</a>'


def data_html(table: Table) -> str:
    """Returns the markup of a table that stays folded until a reader opens it."""
    if not table.rows:
        return ""
    title = in_html(table.title)
    return (
        f'<details class="data"><summary>{title}</summary><p class="note">{in_html(table.note)}</p>'
        f"{table_html(table, f'{table.name}-data', file=csv_name(table))}</details>"
    )


def figures_html(contents: PageContents, behind: Iterable[Table]) -> str:
    """Returns the markup of every figure with its table, and of the tables `behind` after them."""
    tables = {table.name: table for table in contents.tables}
    drawn = "".join(figure_html(figure, tables[figure.table]) for figure in contents.figures)
    return drawn + "".join(map(data_html, behind))


def csv_name(table: Table) -> str:
    """Returns the path of a table's CSV file, relative to the page."""
    return f"tables/{table.name}.csv"


def figure_html(figure: Figure, table: Table | None) -> str:
    """Returns the markup of a figure with its folded table; `table` None if the table is below another figure."""
    name, title = figure.name, in_html(figure.title)
    if figure.spec is None:
        drawing = f'<p class="empty">{in_html(figure.empty)}</p>'
    else:
        drawing = (
            f'<div class="plot" role="region" tabindex="0" aria-label="{title}">'
            f'<div class="still">{_still(figure)}</div></div>'
        )
    heading = f"<h3>{title}{anchor_html(name, figure.title)}</h3>"
    return (
        f'<figure id="{name}">{heading}{drawing}<figcaption>{in_html(figure.caption)}</figcaption>'
        f"{'' if table is None else data_html(table)}</figure>"
    )


def _still(figure: Figure) -> str:
    """Returns the figure as SVG whose colours are CSS variables of the page."""
    drawn = str(drawing_library().vegalite_to_svg(figure.spec or {}))
    drawn = drawn.replace("<svg ", f'<svg role="img" aria-label="{in_html(figure.title)}" ', 1)
    # Vega numbers the parts of a drawing on from all that it drew before. A page has several pictures, and must have
    # the same bytes whenever it is made.
    places: dict[str, int] = {}
    # One picture with a name to who can't see it: its numbers are in the table below.
    drawn = _ROLES.sub("", drawn).replace("<svg ", f'<svg role="img" aria-label="{in_html(figure.title)}" ', 1)
    return _SVG_ID.sub(lambda match: f"{match[1]}{figure.name}-{places.setdefault(match[2], len(places))}", drawn)
