"""The live page: its markup, style and script as one document that loads nothing and runs only its own script."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from string import Template
from types import ModuleType

from msgspec import Struct

from ... import report
from ...report.colours import style_sheet


class Page(Struct, frozen=True):
    """The document in UTF-8, and the texts in it that its policy allows."""

    html: bytes
    style: str
    scripts: tuple[str, ...]


def page() -> Page:
    """Returns the page. It holds no data: its script asks the server."""
    style = (
        style_sheet()
        + "".join(_text(report, name) for name in ("page.css", "items.css"))
        + _text(__package__, "view.css")
    )
    scripts = (_text(report, "items.js"), _text(__package__, "view.js"))
    elements = "\n".join(f"<script>{script}</script>" for script in scripts)
    html = Template(_text(__package__, "view.html")).substitute(style=style, scripts=elements)
    return Page(html.encode(), style, scripts)


def policy(made: Page) -> str:
    """Returns the policy of the page: nothing but its own style and script, and questions to its own server."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, made.scripts))}",
            f"style-src {_hash(made.style)}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def _text(package: ModuleType | str, name: str) -> str:
    return files(package).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
