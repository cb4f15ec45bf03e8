"""Writes a report as one HTML page that loads nothing from a network and runs only its own scripts.

Owns the page's frame. Tables, still pictures and texts are in the page itself; without scripts only the interaction is
lost. Knows no benchmark.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from string import Template

from ..engine.fault import LocalFault
from ..engine.folder_file import open_to_read, write_whole
from .colours import COLOURS, style_sheet
from .csv_files import csv_of
from .escaping import in_html, in_script, packed
from .headline import headline_html
from .labels import one_line
from .page_policy import policy, source_of
from .pictures import drawing_library
from .sections import PageContents, Section, anchor_html, csv_name
from .table import Figure


def page(title: str, parts: Sequence[PageContents], kept_in: Path | None = None) -> bytes:
    """Returns the page with the sections of each benchmark, one below the other. The same parts give the same bytes.
    `kept_in`: the folder that keeps the script of live figures for other processes; None: it is made anew."""
    runtime = _runtime(kept_in)
    specs = {figure.name: figure.spec for part in parts for figure in part.figures if figure.spec is not None}
    packs = {name: pack for part in parts for name, pack in part.packs.items()}
    of_items = ["items.js"] if packs else []
    packs["csv-data"] = packed({csv_name(table): csv_of(table).decode() for part in parts for table in part.tables})
    scripts = [runtime, *map(source_of, ("elements.js", "page.js", *of_items))]
    blocks = [
        f'<script type="application/json" id="figure-data">{in_script(specs)}</script>',
        "\n".join(f'<script type="text/plain" id="{name}">{packed}</script>' for name, packed in packs.items()),
    ]
    return framed_page(title, parts, blocks, scripts)


def framed_page(
    title: str, parts: Sequence[PageContents], blocks: Sequence[str] = (), scripts: Sequence[str] = ()
) -> bytes:
    """Returns a whole page in UTF-8: the frame with title, contents and style, around the sections of all `parts`.
    `scripts` are JavaScript sources; `blocks` is the markup that holds their data, and stands before them."""
    figures = [figure for part in parts for figure in part.figures]
    of_items = source_of("items.css") if any(part.packs for part in parts) else ""
    style = _style(figures, of_items + "".join(part.style for part in parts))
    heading = one_line(title)
    values = {
        "policy": policy(style, scripts),
        "title": in_html(f"{heading} – Millstream report"),
        "heading": in_html(heading),
        "style": style,
        "contents": _contents(parts),
        "sections": "\n".join(_section(part, section, len(parts) > 1) for part in parts for section in part.sections),
        "scripts": "\n".join([*blocks, *(f"<script>{script}</script>" for script in scripts)]),
    }
    return Template(source_of("page.html")).substitute(values).encode("utf-8")


def _section(part: PageContents, section: Section, is_named: bool) -> str:
    name = section.name
    whose = f'<p class="eyebrow" id="{name}-whose">{part.name}</p>' if is_named else ""
    labels = f"{name}-whose {name}-title" if is_named else f"{name}-title"
    heading = f'{whose}<h2 id="{name}-title">{section.title}{anchor_html(name, section.title)}</h2>'
    first = ""
    if part.headline is not None and section is part.sections[0]:
        first = f"{headline_html(part.headline, f'{name}-headline')}\n"
    return f'<section id="{name}" aria-labelledby="{labels}">{heading}\n{first}{section.body}\n</section>'


def _contents(parts: Sequence[PageContents]) -> str:
    if len(parts) == 1:
        return _links(parts[0].sections)
    return "".join(f'<p class="whose">{part.name}</p>{_links(part.sections)}' for part in parts)


def _links(sections: Iterable[Section]) -> str:
    items = []
    for section in sections:
        inner = "".join(
            f'<li><a href="#{target}" aria-label="{label}">{label.rpartition(" ")[2]}</a></li>'
            for target, label in section.targets
        )
        items.append(f'<li><a href="#{section.name}">{section.title}</a>{f"<ol>{inner}</ol>" if inner else ""}</li>')
    return f"<ol>{''.join(items)}</ol>"


@cache
def _runtime(kept_in: Path | None = None) -> str:
    """Returns Vega, Vega-Lite and Vega-Embed as one script. To bundle it takes two seconds."""
    if kept_in is None:
        return _bundled()
    return kept_script(kept_in / f"figures-{version('vl-convert-python')}.js", _bundled)


def kept_script(file: Path, make: Callable[[], str]) -> str:
    """Returns the script that a file holds, behind its SHA-256. One that is missing or damaged is made and kept."""
    with suppress(OSError, LocalFault), open_to_read(file) as kept:
        digest, _, script = kept.read().partition(b"\n")
        if digest == hashlib.sha256(script).hexdigest().encode():
            return script.decode()
    made = make()
    with suppress(OSError, LocalFault):  # a report needs no file but its own
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, f"{hashlib.sha256(made.encode()).hexdigest()}\n{made}".encode())
    return made


def _bundled() -> str:
    bundle = str(drawing_library().javascript_bundle("window.vegaEmbed = vegaEmbed;\n"))
    # These end a script block wherever they occur.
    return bundle.replace("</script", r"<\/script").replace("<!--", r"<\!--")


def _style(figures: Iterable[Figure], of_parts: str) -> str:
    """Returns the style sheet: chart colours (always the light ones in print), the page's rules, each figure's smallest
    width."""
    light = " ".join(f"--chart-{name}: {colour.light};" for name, colour in COLOURS.items())
    widths = "\n".join(
        f"#{figure.name} .plot svg {{ min-width: {figure.min_width}px; }}" for figure in figures if figure.min_width
    )
    sheet = source_of("page.css")
    on_paper = f"@media print {{ :root {{ {light} }}\n.plot svg {{ min-width: 0 !important; }} }}"
    return f"{style_sheet()}{sheet}{of_parts}{widths}\n{on_paper}\n"
