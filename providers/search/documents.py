"""Reads a folder of documents: HTML, text, Markdown, and JSON lines, each with a text.

A name is looked up among the listed documents and never used as a path, so none leads out of the folder. Knows no
search.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from hashlib import sha256
from html import unescape
from pathlib import Path
from urllib.parse import quote

import msgspec
from msgspec import Struct

from .results import TITLE_MAX, plain
from .table import SCHEME

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
    """Raised for a folder that is no corpus; one line names the file, the problem and what to do."""


class CorpusDocument(Struct, frozen=True):
    """The location of one document, `size` bytes of a file from `offset` on, with the digest of these bytes."""

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
        """Returns its bytes; raises CorpusError if they have changed or can't be read."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                body = file.read(self.size)
        except OSError as error:
            raise CorpusError(f"{self.path} can't be read ({error.strerror}): put it back and start again") from error
        if sha256(body).digest() != self.digest:
            raise CorpusError(f"{self.path} has changed since it was indexed: start again")
        return body


class DocumentText(Struct, frozen=True):
    """The title and text of a document."""

    title: str
    text: str


class CorpusLine(Struct, frozen=True):
    """A document in a file of JSON lines."""

    text: str
    title: str | None = None
    url: str | None = None


def list_documents(folder: Path) -> tuple[CorpusDocument, ...]:
    """Returns the documents of a folder in the order of their names. Reads all of them, for their digests."""
    if not folder.is_dir():
        raise CorpusError(f"corpus {folder}: expected a folder of documents, and there is none")
    documents: dict[str, CorpusDocument] = {}
    for path in _files(folder):
        name = quote(path.relative_to(folder).as_posix(), safe=_SAFE.replace("%", ""))
        if path.suffix.lower() == _LINES:
            _add_lines(path, name, documents)
        else:
            body = _read(path)
            kind = _TYPES[path.suffix.lower()]
            documents[name] = CorpusDocument(name, path, kind, sha256(body).digest(), 0, len(body))
    if not documents:
        kinds = ", ".join([*_TYPES, _LINES])
        raise CorpusError(f"corpus {folder}: expected documents ({kinds}), and there are none")
    return tuple(documents[name] for name in sorted(documents))


def digest_of(documents: tuple[CorpusDocument, ...]) -> str:
    """Returns the digest, in hex, of names and contents, which identifies a corpus in any folder."""
    whole = sha256()
    for document in documents:
        whole.update(document.name.encode() + b"\0" + document.digest)
    return whole.hexdigest()


def document_text(document: CorpusDocument, body: bytes) -> DocumentText:
    """Returns a document's title and text, for the index and for snippets."""
    if document.content_type == _JSON:
        row = _row(body, document.path, 0)
        return DocumentText(plain(row.title or row.url or document.name, TITLE_MAX), row.text)
    if document.content_type == "text/html":
        return _of_html(decoded(body), document.name)
    text = decoded(body)
    first = next((line for line in text.splitlines() if line.strip()), "")
    return DocumentText(plain(first.lstrip("# ") or document.name, TITLE_MAX), text)


def page_of(document: CorpusDocument, body: bytes) -> tuple[str, bytes]:
    """Returns the content type and bytes that are served for the document's address."""
    if document.content_type != _JSON:
        return document.content_type, body
    return _TYPES[".txt"], _row(body, document.path, 0).text.encode()


def _files(folder: Path) -> Iterator[Path]:
    root = folder.resolve()
    for place, folders, files in os.walk(folder, onerror=_raise_unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(place, name)
            is_known = path.suffix.lower() in _TYPES or path.suffix.lower() == _LINES
            # A link may lead out of the folder, or to something that is not a file.
            if is_known and not name.startswith(".") and path.resolve().is_relative_to(root) and path.is_file():
                yield path


def _raise_unreadable(error: OSError) -> None:
    raise CorpusError(f"{error.filename} can't be read ({error.strerror}): correct or remove it") from error


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > BYTES_MAX:
            raise CorpusError(f"{path} has more than {BYTES_MAX >> 20} MiB: split it, or write it as JSON lines")
        return path.read_bytes()
    except OSError as error:
        raise CorpusError(f"{path} can't be read ({error.strerror}): correct or remove it") from error


def _add_lines(path: Path, name: str, documents: dict[str, CorpusDocument]) -> None:
    """Adds each line of a file as a document, named by its address if that is unique, else by file and line number,
    from 1. No file's name has `://` in it."""
    offset = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(BYTES_MAX + 1), b""), 1):
                if len(line) > BYTES_MAX:
                    raise CorpusError(f"{path}, line {number} has more than {BYTES_MAX >> 20} MiB: split it")
                if line.strip():
                    url = quote((_row(line, path, number).url or "").strip(), safe=_SAFE + "#[]")
                    key = url if "://" in url and url not in documents else f"{name}/{number}"
                    documents[key] = CorpusDocument(key, path, _JSON, sha256(line).digest(), offset, len(line))
                offset += len(line)
    except OSError as error:
        raise CorpusError(f"{path} can't be read ({error.strerror}): correct or remove it") from error


def _row(line: bytes, path: Path, number: int) -> CorpusLine:
    try:
        return msgspec.json.decode(line, type=CorpusLine)
    except msgspec.ValidationError:
        raise CorpusError(
            f'{path}, line {number}: expected {{"url": …, "title": …, "text": …}}, all of them texts'
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path}, line {number} is no JSON ({error}): correct or remove it") from error


def decoded(body: bytes) -> str:
    """Returns the text of bytes in UTF-8, else in the charset that the page declares, else in windows-1252."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        match = _CHARSET.search(body[:4096])
        try:
            return body.decode(match[1].decode() if match else "cp1252", "replace")
        except (LookupError, ValueError):
            return body.decode("cp1252", "replace")


def _of_html(html: str, name: str) -> DocumentText:
    """Returns the text between the tags, without scripts and styles; the main text is found when the page is read."""
    title = _TITLE.search(html)
    parts: list[str] = []
    place = 0
    while (raw := _RAW.search(html, place)) is not None:
        parts.append(html[place : raw.start()])
        end = re.compile(rf"</{raw[1]}\b", re.IGNORECASE).search(html, raw.end())
        place = len(html) if end is None else end.start()
    parts.append(html[place:])
    text = " ".join(unescape(_TAG.sub(" ", piece)) for part in parts for piece in _pieces(part))
    return DocumentText(plain(title[1] if title else "", TITLE_MAX) or name, text)


def _pieces(html: str) -> Iterator[str]:
    """Yields the page in pieces that begin with a tag: one search over megabytes would block all other work."""
    place = 0
    while place < len(html):
        end = html.find("<", place + _PIECE)
        end = len(html) if end < 0 else end
        yield html[place:end]
        place = end
