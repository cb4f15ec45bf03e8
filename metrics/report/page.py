"""The report as one page: a file that asks nothing of any network and runs nothing but its own two scripts.

Owns the order of the sections and the page's policy: default-src 'none', scripts and styles by their hashes. Tables,
still pictures and words stand in the page itself; the scripts only make it livelier.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from string import Template

from .colours import COLOURS, style_sheet
from .contents import Contents
from .explorer import packed
from .html_tables import table_html
from .inert import in_html, in_script
from .labels import plain
from .page_sections import explorer_html, origins_html, summary_html
from .table import Figure, Findings, Table

_SVG_ID = re.compile(r'(\bid="|url\(#|href="#)([\w-]+)')
_NUMBERED = re.compile(r"(?:table|figure)-(\d+)-")


def page(contents: Contents) -> bytes:
    """The same contents give the same bytes."""
    runtime = _runtime()
    findings = contents.findings
    style = _style(findings)
    script = files(__package__).joinpath("page.js").read_text("utf-8")
    specs = {figure.name: figure.spec for figure in findings.figures if figure.spec is not None}
    sections = list(_sections(contents))
    values = {
        "policy": _policy(style, [runtime, script]),
        "title": in_html(plain(f"{contents.title} – Millstream report")),
        "heading": in_html(plain(contents.title)),
        "style": style,
        "contents": _contents(sections, findings),
        "sections": "\n".join(_section(*section) for section in sections),
        "figures": in_script(specs),
        "explorer": packed(contents.explorer),
        "scripts": f"<script>{runtime}</script>\n<script>{script}</script>",
    }
    return Template(files(__package__).joinpath("page.html").read_text("utf-8")).substitute(values).encode("utf-8")


def _sections(contents: Contents) -> Iterator[tuple[str, str, str]]:
    """Identity, title and body of each."""
    findings = contents.findings
    yield "summary", "Summary", summary_html(contents)
    remarks = "".join(f"<li>{in_html(remark)}</li>" for remark in findings.remarks)
    yield "warnings", "Read with care", f'<ul class="remarks">{remarks}</ul>'
    drawn = {figure.table for figure in findings.figures}
    loose = [table for table in findings.tables if table.name not in drawn]
    of_paper = [table for table in loose if table.name.startswith("table-")]
    behind = [table for table in loose if table.name.startswith("figure-")]
    rest = [table for table in loose if table not in of_paper and table not in behind]
    tables = {table.name: table for table in findings.tables}
    yield "tables", "The paper’s tables", _PUBLISHED + "".join(map(_table, of_paper))
    figures = "".join(_figure(figure, tables[figure.table]) for figure in findings.figures)
    yield "figures", "The paper’s figures", figures + "".join(map(_data, behind))
    yield "beyond", "Beyond the paper", "".join(map(_table, rest))
    yield "behind", "Behind the numbers", explorer_html(contents.explorer)
    yield "origin", "How it was made", origins_html(contents)


def _section(name: str, title: str, body: str) -> str:
    heading = f'<h2 id="{name}-title">{title}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">{heading}\n{body}\n</section>'


_PUBLISHED = (
    '<p class="note">Rows marked “published” are the paper’s own figures. They stand beside this run’s for comparison '
    "and enter no rank, mean or correlation.</p>"
)


def _contents(sections: Sequence[tuple[str, str, str]], findings: Findings) -> str:
    chips = {
        "tables": [table.name for table in findings.tables if table.name.startswith("table-")],
        "figures": [figure.name for figure in findings.figures],
    }
    items = []
    for name, title, _ in sections:
        inner = "".join(_chip(name.removesuffix("s"), target) for target in chips.get(name, ()))
        items.append(f'<li><a href="#{name}">{title}</a>{f"<ol>{inner}</ol>" if inner else ""}</li>')
    return f"<ol>{''.join(items)}</ol>"


def _chip(kind: str, target: str) -> str:
    found = _NUMBERED.match(target)
    number = found[1] if found else target
    return f'<li><a href="#{target}" aria-label="{kind.title()} {number}">{number}</a></li>'


def _table(table: Table) -> str:
    return (
        f'<h3>{in_html(table.title)}</h3><p class="note">{in_html(table.note)}</p>'
        f"{table_html(table, table.name, file=csv_name(table))}"
    )


def _data(table: Table) -> str:
    """A table that is better looked up than read through."""
    title = in_html(table.title)
    return (
        f'<details class="data"><summary>{title}</summary><p class="note">{in_html(table.note)}</p>'
        f"{table_html(table, f'{table.name}-data', file=csv_name(table))}</details>"
    )


def _figure(figure: Figure, table: Table) -> str:
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
        f"{_data(table)}</figure>"
    )


def csv_name(table: Table) -> str:
    """Where a table's file stands, from the page."""
    return f"tables/{table.name}.csv"


def _still(figure: Figure) -> str:
    """The figure as it stands in the page: its colours are the page's, by name."""
    import vl_convert

    drawn = str(vl_convert.vegalite_to_svg(figure.spec or {}))
    # Vega numbers what is referred to by how much it has drawn before; a page has several pictures, and the same bytes
    # whenever it is made.
    places: dict[str, int] = {}
    return _SVG_ID.sub(lambda found: f"{found[1]}{figure.name}-{places.setdefault(found[2], len(places))}", drawn)


@cache
def _runtime() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script. It takes a second or two to bundle, so once a process."""
    import vl_convert

    bundle = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;\n"))
    # A script block ends at these, wherever they stand.
    return bundle.replace("</script", r"<\/script").replace("<!--", r"<\!--")


def _style(findings: Findings) -> str:
    """The charts' colours, which paper always has light, the page's own sheet, and the least width of each figure."""
    light = " ".join(f"--chart-{name}: {colour.light};" for name, colour in COLOURS.items())
    widths = "\n".join(
        f"#{figure.name} .plot svg {{ min-width: {figure.min_width}px; }}"
        for figure in findings.figures
        if figure.min_width
    )
    sheet = files(__package__).joinpath("page.css").read_text("utf-8")
    on_paper = f"@media print {{ :root {{ {light} }}\n.plot svg {{ min-width: 0 !important; }} }}"
    return f"{style_sheet()}{sheet}{widths}\n{on_paper}\n"


def _policy(style: str, scripts: Sequence[str]) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src {_hash(style)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
