"""A page taken apart: its elements, and the rows of its tables by their identity."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser


class Elements(HTMLParser):
    """`tables`: of each identity the rows of cells; `text`: all that is shown; `inside`: of scripts and styles."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.text = ""
        self.tables: dict[str, list[list[str]]] = {}
        self._identity = ""
        self._is_cell = False
        self.feed(page.decode("utf-8"))

    def names(self) -> list[str]:
        return [name for name, _ in self.elements]

    def identities(self) -> list[str]:
        return [str(attributes["id"]) for _, attributes in self.elements if "id" in attributes]

    def column(self, identity: str, title: str) -> list[str]:
        head, *rows = self.tables[identity]
        return [row[head.index(title)] for row in rows]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag == "div" and "id" in attributes:
            self._identity = str(attributes["id"])
        if tag == "tr":
            self.tables.setdefault(self._identity, []).append([])
        if tag in ("th", "td"):
            self._is_cell = True
            self.tables[self._identity][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td"):
            self._is_cell = False

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            self.inside.append(data)
            return
        self.text += data
        if self._is_cell:
            self.tables[self._identity][-1][-1] += data


def assert_only_its_own(page: str) -> None:
    """The page's policy allows the scripts and the style that stand in it, and the page asks for nothing else."""
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (*scripts, style)]
    assert re.findall(r"sha256-([^&']+)", policy) == hashes
    assert "default-src &#x27;none&#x27;" in policy or "default-src 'none'" in policy
    assert "url(" not in style and "@import" not in style
    body = re.sub(r"<script.*?</script>|<style>.*?</style>", "", page, flags=re.DOTALL)
    # A paper's address is a link for a reader: nothing is loaded from it.
    papers = r'<a href="https://arxiv\.org/abs/[\d.]+">'
    assert re.findall(r'(?:src|href)="(?!#|tables/)[^"]*"', re.sub(papers, "<a>", body)) == []
    assert re.findall(r"<[a-z][^>]* (?:on[a-z]+|style)=", body) == []
