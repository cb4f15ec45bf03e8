"""Extracts the text of one page: HTML, PDF or plain text. Runs in a worker, which is killed if it takes too long.

Chooses the extractor, and says why a page gives no text. Imports trafilatura and its parsers, so the parent process
never imports this module.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pypdfium2  # type: ignore[import-untyped]
import trafilatura
from lxml import html  # type: ignore[import-untyped]

from .content import DECODED_MAX, NotReadable, PageContent, TooMuch, decoded, decompressed, kind_of, without_more_layers
from .page import TEXT_MAX, PageText
from .robots_rules import judge

PDF_PAGES_MAX = 200
_TITLE_MAX = 300
# Fewer characters than this from a page with far more text are not its main text.
_SHORT = 200
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]+")
_CONTROL_BYTES = bytes(code for code in (*range(0x20), 0x7F) if code not in b"\t\n\r")
_SPACES = re.compile(r"[^\S\n]+")
_EMPTY_LINES = re.compile(r"\n{3,}")

# Repeated it is longer than _SHORT, so that the result must be trafilatura's.
_SENTENCE = "A ferry leaves the harbour every hour, and takes passengers and bicycles to the island. "
_SMALL_HTML = f"<html><title>Ferries</title><body><article><p>{4 * _SENTENCE}</p></article></body></html>".encode()
_SMALL_PDF = b"""%PDF-1.4
1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj
2 0 obj <</Type /Pages /Kids [3 0 R] /Count 1>> endobj
3 0 obj <</Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R /Resources <</Font <</F 5 0 R>>>>>> endobj
4 0 obj <</Length 37>> stream
BT /F 12 Tf 10 100 Td (Ferries) Tj ET
endstream endobj
5 0 obj <</Type /Font /Subtype /Type1 /BaseFont /Helvetica>> endobj
trailer <</Root 1 0 R>>
%%EOF
"""


def check_parsers() -> None:
    """Lets each parser read a small sample; raises its exception, or RuntimeError, if it fails on this machine."""
    page = extract(_SMALL_HTML, "text/html", "")
    if page.detail or _SENTENCE.strip() not in page.text:
        raise RuntimeError(f"trafilatura finds no text in a sound page ({page.detail or page.status})")
    page = extract(_SMALL_PDF, "application/pdf", "")
    if page.text != "Ferries":
        raise RuntimeError(f"pypdfium2 finds no text in a sound PDF ({page.detail or page.status})")
    decoded("Fähren und Fahrräder. ".encode("cp1252"), "")
    if judge(b"User-agent: *\nDisallow: /no", "", "https://example.com/no", "any").is_allowed:
        raise RuntimeError("protego finds no rule in a sound robots.txt")


def extract(body: bytes, content_type: str, encoding: str) -> PageText:
    """Returns the text of a page, or why it has none. Raises only errors of our own machine: MemoryError, ImportError
    and OSError."""
    try:
        content = decompressed(body, encoding)
        if "gzip" not in content_type.lower():
            content = without_more_layers(content)
    except NotReadable as error:
        return PageText("not_text", detail=str(error))
    except TooMuch:
        return PageText("too_large", detail=f"more than {DECODED_MAX >> 20} MiB when decompressed")
    if len(content.data) > DECODED_MAX:
        return PageText("too_large", detail=f"more than {DECODED_MAX >> 20} MiB")
    if not content.data.strip():
        return PageText("empty", detail="a page without a single character")
    kind, name = kind_of(content.data, content_type)
    if kind == "other":
        return PageText("not_text", detail=name)
    page = _from_pdf(content.data) if kind == "pdf" else _from_text(content.data, content_type, is_html=kind == "html")
    return _finished(page, content)


def _finished(page: PageText, content: PageContent) -> PageText:
    if page.status != "ok":
        return page
    text = _tidied(page.text)
    title = " ".join(_CONTROLS.sub("", page.title).split())[:_TITLE_MAX]
    if not text:
        return PageText("empty", title=title, detail=page.detail or "no text was found in the page")
    notes = [page.detail] if page.detail else []
    if not content.is_whole:
        notes.append("the compressed data broke off")
    if len(text) > TEXT_MAX:
        text = text[:TEXT_MAX].rstrip()
        notes.append(f"cut after {TEXT_MAX:,} characters")
    return PageText("ok", text, title, "; ".join(notes))


def _tidied(text: str) -> str:
    text = _CONTROLS.sub("", text[: 4 * TEXT_MAX].replace("\r\n", "\n").replace("\r", "\n"))
    return _EMPTY_LINES.sub("\n\n", "\n".join(line.strip() for line in _SPACES.sub(" ", text).split("\n"))).strip()


def _from_text(data: bytes, content_type: str, *, is_html: bool) -> PageText:
    text = decoded(data, content_type)
    return _from_html(_without_controls(text)) if is_html else PageText("ok", text)


def _without_controls(page: str) -> bytes:
    """Returns a page as UTF-8 without what _CONTROLS removes from a text, which would take ten times as long here."""
    data = page.encode("utf-8", "ignore").translate(None, _CONTROL_BYTES)
    return data.replace(b"\xef\xbf\xbe", b"").replace(b"\xef\xbf\xbf", b"")


def _from_html(page: bytes) -> PageText:
    text, title, detail = "", "", ""
    # Comments and instructions to programs are no text: a tree without them is smaller.
    parser = html.HTMLParser(encoding="utf-8", collect_ids=False, remove_comments=True, remove_pis=True)
    try:
        tree = html.document_fromstring(page, parser=parser)
        title = _title_of(tree)
        if parser.error_log.filter_from_fatals():
            detail = "nested too deeply to find its main text: the whole page"  # the parser dropped what lies deeper
        else:
            text = trafilatura.extract(tree, fast=True, include_comments=False) or ""
    except (MemoryError, ImportError, OSError):
        raise  # errors of our own machine
    except Exception as error:  # noqa: BLE001 (what two parsers make of a broken page, nobody can list)
        detail = f"trafilatura failed on it ({type(error).__name__})"
    if len(text) >= _SHORT:
        return PageText("ok", text, title)
    plain = _Plain()
    plain.feed(page.decode())
    plain.close()
    everything = plain.text()
    if everything and (not text or len(everything) > 2 * len(text) + 40):
        return PageText("ok", everything, title or plain.title, detail or "no main text was found: the whole page")
    return PageText("ok", text, title or plain.title, detail)


def _title_of(tree: Any) -> str:
    for element in tree.iter("title"):
        if text := " ".join(element.itertext()).strip():
            return str(text)
    for element in tree.iter("meta"):
        if element.get("property") == "og:title" and (text := element.get("content", "").strip()):
            return str(text)
    for element in tree.iter("h1"):
        return " ".join(element.itertext()).strip()
    return ""


class _Plain(HTMLParser):
    """A parser that collects a page's text without scripts, styles, navigation and forms, however they are nested."""

    _SILENT = frozenset(
        ("script", "style", "noscript", "template", "svg", "nav", "footer", "button", "select", "iframe")
    )
    # fmt: off
    _INLINE = frozenset((
        "a", "abbr", "b", "bdi", "bdo", "cite", "code", "em", "font", "i", "kbd", "mark", "q", "s", "small", "span",
        "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
    ))
    # fmt: on
    _NESTED_MAX = 100

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._silent: list[str] = []
        self._in_title = False
        self.title = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in self._SILENT:
            if len(self._silent) < self._NESTED_MAX:
                self._silent.append(tag)
        elif tag == "title":
            self._in_title = True
        elif tag == "body":
            self._silent.clear()
        if tag not in self._INLINE:
            self._parts.append("\n")

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        if tag not in self._INLINE:
            self._parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif tag in self._silent:
            # Elements left open within it end with it.
            del self._silent[self._silent.index(tag) :]
        if tag not in self._INLINE:
            self._parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data if len(self.title) < _TITLE_MAX else ""
        elif not self._silent:
            self._parts.append(data)

    def text(self) -> str:
        return _tidied("".join(self._parts))


def _from_pdf(data: bytes) -> PageText:
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        return PageText("not_text", detail=f"a PDF that can't be opened ({error})")
    try:
        texts: list[str] = []
        size = 0
        count = len(document)
        for number in range(min(count, PDF_PAGES_MAX)):
            try:
                text = document[number].get_textpage().get_text_bounded()
            except pypdfium2.PdfiumError:
                continue  # one damaged page
            texts.append(text)
            size += len(text)
            if size > TEXT_MAX:
                break
        title = document.get_metadata_value("Title") or ""
    finally:
        document.close()
    detail = f"the first {PDF_PAGES_MAX} of {count:,} pages" if count > PDF_PAGES_MAX else ""
    if not any(text.strip() for text in texts):
        return PageText("empty", title=title, detail="a PDF without text, such as a scanned one")
    return PageText("ok", "\n\n".join(texts), title, detail)
