"""A page taken apart: its elements, and the rows of its tables by their identity."""

from __future__ import annotations

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
