"""Parsers that go wrong, importable by their names so that a worker process can run them."""

from __future__ import annotations

from millstream.bench.millstone.importing.pages import Read, read_page


def raises_on_b(data: bytes) -> Read:
    if b"<h1>b</h1>" in data:
        raise RuntimeError("the parser's\nown \ud800")
    return read_page(data)


def hangs_on_b(data: bytes) -> Read:
    while b"<h1>b</h1>" in data:
        pass
    return read_page(data)
