"""The live page: its markup, style and script as one document that loads nothing and runs only its own scripts."""

from __future__ import annotations

from string import Template

from ...report.colours import style_sheet
from ...report.page_policy import policy, source_of


def page() -> tuple[bytes, str]:
    """Returns the page in UTF-8, and its policy. It holds no data: its script asks its own server."""
    own = source_of("view.css", __package__), source_of("view.js", __package__)
    style = "".join((style_sheet(), source_of("page.css"), source_of("items.css"), own[0]))
    scripts = source_of("elements.js"), source_of("items.js"), own[1]
    elements = "\n".join(f"<script>{script}</script>" for script in scripts)
    html = Template(source_of("view.html", __package__)).substitute(style=style, scripts=elements)
    return html.encode(), policy(style, scripts, "connect-src 'self'", "frame-ancestors 'none'")
