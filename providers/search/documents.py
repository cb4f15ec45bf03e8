"""A folder of documents: HTML, text, Markdown, and JSON lines with a text each. Their names, their bytes, their text.

A name leads to a document only by having been listed: none is ever taken for a path, so none leads out of the folder.
Reads files; knows no search.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from hashlib import sha256
from html import unescape
from pathlib import Path
from urllib.parse import quote

import orjson
from msgspec import Struct

from .results import TITLE_MAX, plain

SCHEME = "corpus:"
BYTES_MAX = 5 << 20
_TYPES = {
    ".html": "text/html",
    ".htm": "text/html",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
}
_LINES = ".jsonl"
_JSON = "application/json"
_CHARSET = re.compile(rb"<meta[^<>]{0,200}charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_RAW = re.compile(r"<(script|style|noscript|template)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title\b[^<>]*>([^<]*)", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_PIECE = 1 << 16
_SAFE = "/:?=&%+,;@~!$'()*"


class CorpusError(ValueError):
    """The folder is no corpus. One line: which file, what is wrong with it, what to do."""


class Document(Struct, frozen=True):
    """Where one document lies: a file, or `size` bytes of one from `offset` on. `digest` is of its bytes."""

    name: str
    path: Path
    content_type: str
    digest: bytes
    offset: int = 0
    size: int = 0

    @property
    def url(self) -> str:
        return SCHEME + self.name

    def read(self) -> bytes:
        """Its bytes; CorpusError where they are no longer what they were."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                found = file.read(self.size)
        except OSError as error:
            raise CorpusError(f"{self.path} can't be read ({error.strerror}): put it back and start again") from error
        if sha256(found).digest() != self.digest:
            raise CorpusError(f"{self.path} has changed since it was indexed: start again")
        return found


class Written(Struct, frozen=True):
    """What a document says."""

    title: str
    text: str


class Row(Struct, frozen=True):
    """A line of JSON as it has to be."""

    text: str
    title: str = ""
    url: str = ""


def listed(folder: Path) -> tuple[Document, ...]:
    """Every document of a folder in the order of their names. Reads all of them, for their digests."""
    if not folder.is_dir():
        raise CorpusError(f"corpus {folder}: expected a folder of documents, and there is none")
    found: dict[str, Document] = {}
    for path in _files(folder):
        name = quote(path.relative_to(folder).as_posix(), safe=_SAFE.replace("%", ""))
        if path.suffix.lower() == _LINES:
            _add_lines(path, name, found)
        else:
            body = _read(path)
            kind = _TYPES[path.suffix.lower()]
            found[name] = Document(name, path, kind, sha256(body).digest(), 0, len(body))
    if not found:
        kinds = ", ".join([*_TYPES, _LINES])
        raise CorpusError(f"corpus {folder}: expected documents ({kinds}), and there are none")
    return tuple(found[name] for name in sorted(found))


def digest_of(documents: tuple[Document, ...]) -> str:
    """What tells one corpus from another: names and contents, wherever it lies."""
    whole = sha256()
    for document in documents:
        whole.update(document.name.encode() + b"\0" + document.digest)
    return whole.hexdigest()


def written(document: Document, body: bytes) -> Written:
    """Title and text, for the index and for snippets."""
    if document.content_type == _JSON:
        row = _row(body, document.path, 0)
        return Written(plain(row.title or row.url or document.name, TITLE_MAX), row.text)
    if document.content_type == "text/html":
        return _of_html(_decoded(body), document.name)
    text = _decoded(body)
    first = next((line for line in text.splitlines() if line.strip()), "")
    return Written(plain(first.lstrip("# ") or document.name, TITLE_MAX), text)


def page_of(document: Document, body: bytes) -> tuple[str, bytes]:
    """What a reader of the document's address gets: content type and bytes."""
    if document.content_type != _JSON:
        return document.content_type, body
    return _TYPES[".txt"], _row(body, document.path, 0).text.encode()


def _files(folder: Path) -> Iterator[Path]:
    root = folder.resolve()
    for place, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(place, name)
            is_known = path.suffix.lower() in _TYPES or path.suffix.lower() == _LINES
            # A link may lead out of the folder, or to what is no file.
            if is_known and not name.startswith(".") and path.resolve().is_relative_to(root) and path.is_file():
                yield path


def _refuse(error: OSError) -> None:
    raise CorpusError(f"{error.filename} can't be read ({error.strerror}): mend or remove it") from error


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > BYTES_MAX:
            raise CorpusError(f"{path} has more than {BYTES_MAX >> 20} MiB: split it, or write it as JSON lines")
        return path.read_bytes()
    except OSError as error:
        raise CorpusError(f"{path} can't be read ({error.strerror}): mend or remove it") from error


def _add_lines(path: Path, name: str, found: dict[str, Document]) -> None:
    """Each line is a document: named by its address where that is one of its own, else by its number. No file's name
    holds `://`."""
    offset = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(BYTES_MAX + 1), b""), 1):
                if len(line) > BYTES_MAX:
                    raise CorpusError(f"{path}, line {number} has more than {BYTES_MAX >> 20} MiB: split it")
                if line.strip():
                    url = quote(_row(line, path, number).url.strip(), safe=_SAFE + "#[]")
                    own = url if "://" in url and url not in found else f"{name}/{number}"
                    found[own] = Document(own, path, _JSON, sha256(line).digest(), offset, len(line))
                offset += len(line)
    except OSError as error:
        raise CorpusError(f"{path} can't be read ({error.strerror}): mend or remove it") from error


def _row(line: bytes, path: Path, number: int) -> Row:
    try:
        parsed = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise CorpusError(f"{path}, line {number} is no JSON ({error}): mend or remove it") from error
    texts = [parsed.get(name) for name in ("text", "title", "url")] if isinstance(parsed, dict) else [None]
    text, *others = texts
    if not isinstance(text, str) or any(other is not None and not isinstance(other, str) for other in others):
        raise CorpusError(f'{path}, line {number}: expected {{"url": …, "title": …, "text": …}}, all of them texts')
    title, url = (other or "" for other in others)
    return Row(text, title, url)


def _decoded(body: bytes) -> str:
    """Text in UTF-8, in what the page says of itself, or in what most else is."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        found = _CHARSET.search(body[:4096])
        try:
            return body.decode(found[1].decode() if found else "cp1252", "replace")
        except LookupError:
            return body.decode("cp1252", "replace")


def _of_html(html: str, name: str) -> Written:
    """The text between tags, without scripts and styles. Not the article alone: that is for whoever reads the page."""
    title = _TITLE.search(html)
    shown: list[str] = []
    place = 0
    while (raw := _RAW.search(html, place)) is not None:
        shown.append(html[place : raw.start()])
        end = re.compile(rf"</{raw[1]}\b", re.IGNORECASE).search(html, raw.end())
        place = len(html) if end is None else end.start()
    shown.append(html[place:])
    text = " ".join(unescape(_TAG.sub(" ", piece)) for part in shown for piece in _pieces(part))
    return Written(plain(title[1] if title else "", TITLE_MAX) or name, text)


def _pieces(html: str) -> Iterator[str]:
    """In parts that begin with a tag: one search over megabytes would hold up whatever else runs."""
    place = 0
    while place < len(html):
        end = html.find("<", place + _PIECE)
        end = len(html) if end < 0 else end
        yield html[place:end]
        place = end
