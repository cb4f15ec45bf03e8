"""The contents of a report, and the markup of the tables and figures in their sections.

Owns `PageContents`, the one shape between a benchmark's numbers and a page. Knows no benchmark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from .escaping import in_html
from .headline import Headline
from .html_tables import table_html
from .interval_cells import OVER
from .pictures import drawing_library
from .standings import AnswerStatus, RunOrigin, folded, origins_html, samples_note
from .table import PUBLISHED, Figure, Table

_PUBLISHED_NOTE = (
    '<p class="note">Rows marked “published” are the paper’s own figures. They stand beside this run’s for comparison '
    "and enter no rank, mean or correlation.</p>"
)
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
    """Data for the tables of items by models, by the identity of their element."""
    style: str = ""
    """Style rules of this benchmark, besides those of every page."""


def remarks_html(remarks: Iterable[str]) -> str:
    items = "".join(f"<li>{in_html(remark)}</li>" for remark in remarks)
    return f'<ul class="remarks">{items}</ul>'


def paper_sections(
    contents: PageContents, summary: str, beyond: str, note: str = "", more: Sequence[Section] = (), prefix: str = ""
) -> tuple[Section, ...]:
    """Returns the sections of a benchmark that has a paper, from the `summary` to the origin, between them the paper's
    tables and figures. `beyond` is the title of the section of all other tables, and `note` the markup above these;
    `more` are the benchmark's own sections; `prefix` is the start of the names of tables and sections."""
    tables = {table.name: table for table in contents.tables}
    drawn = {figure.table for figure in contents.figures}
    loose = [table for table in contents.tables if table.name not in drawn]
    of_paper = [table for table in loose if table.name.startswith(f"{prefix}table-")]
    behind = [table for table in loose if table.name.startswith(f"{prefix}figure-")]
    rest = [table for table in loose if table not in of_paper and table not in behind]
    figures = [figure_html(figure, tables[figure.table]) for figure in contents.figures]
    return (
        Section(f"{prefix}summary", "Summary", summary),
        Section(f"{prefix}warnings", "Read with care", remarks_html(contents.remarks)),
        Section(
            f"{prefix}tables",
            "The paper’s tables",
            _PUBLISHED_NOTE + samples_note(contents.of_samples) + "".join(map(table_section, of_paper)),
            _targets("Table", of_paper),
        ),
        Section(
            f"{prefix}figures",
            "The paper’s figures",
            "".join((*figures, *map(data_html, behind))),
            _targets("Figure", contents.figures),
        ),
        Section(f"{prefix}beyond", beyond, note + "".join(map(table_section, rest))),
        *more,
        Section(f"{prefix}origin", "How it was made", origins_html(contents.origins, contents.command)),
    )


def _targets(kind: str, shown: Iterable[Table | Figure]) -> tuple[tuple[str, str], ...]:
    """Returns pairs of each name and its label: `kind` with the paper's number if the name contains one, else the
    name."""
    matches = ((each.name, _NUMBERED.search(each.name)) for each in shown)
    return tuple((name, f"{kind} {number[1]}" if number else name) for name, number in matches)


def table_section(table: Table) -> str:
    """Returns the markup of a table under a heading; one line for an empty table, and a folded one if every row is the
    paper's."""
    if not table.rows:
        return f'<p class="empty" id="{table.name}">{in_html(table.title)}: there is no row.</p>'
    body = f'<p class="note">{in_html(_note_of(table))}</p>{table_html(table, table.name, file=csv_name(table))}'
    if all(PUBLISHED in row for row in table.rows):
        return folded(f"{table.title}: published figures alone", body)
    return f"<h3>{in_html(table.title)}{anchor_html(table.name, table.title)}</h3>{body}"


def _note_of(table: Table) -> str:
    """Returns a table's note, without what it says of intervals if the table has none."""
    lows = [at for at, column in enumerate(table.columns) if column.name == "low"]
    if not lows or any(row[at] is not None for row in table.rows for at in lows):
        return table.note
    note = table.note
    for sentence in OVER.values():
        note = note.replace(sentence, "")
    return " ".join(note.split())


def anchor_html(name: str, title: str) -> str:
    """Returns the link at a heading that leads to it."""
    return f'<a class="anchor" href="#{name}" aria-label="Link to {in_html(title)}">#</a>'


def data_html(table: Table) -> str:
    """Returns the markup of a table that stays folded until a reader opens it."""
    if not table.rows:
        return ""
    shown = table_html(table, f"{table.name}-data", file=csv_name(table))
    return folded(table.title, f'<p class="note">{in_html(_note_of(table))}</p>{shown}')


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
    # Vega numbers the parts of a drawing on from all that it drew before. A page has several pictures, and must have
    # the same bytes whenever it is made.
    places: dict[str, int] = {}
    # One picture with a name to who can't see it: its numbers are in the table below.
    drawn = _ROLES.sub("", drawn).replace("<svg ", f'<svg role="img" aria-label="{in_html(figure.title)}" ', 1)
    return _SVG_ID.sub(lambda match: f"{match[1]}{figure.name}-{places.setdefault(match[2], len(places))}", drawn)
