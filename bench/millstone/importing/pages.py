"""Reads saved ProCon pages as issues: the question, the arguments of both sides, the sources.

Owns the markup that names these parts, and the fallbacks where a page lacks it; each fallback is a finding. Fetches
nothing, and no page stops the import. Knows no paraphrases: a model writes them later.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from lxml import etree, html  # type: ignore[import-untyped]

from ....engine.runs.data_file import DatasetError, read_bytes
from ....providers.pages.workers import TaskBreakdown, TaskError, Worker, WorkerSpec
from ....providers.search.documents import decoded
from ..checks import Finding, fatal, plain
from ..issue import Side
from .blocks import PageArgument, PageBlock, arguments_of, is_end, title_of
from .checkout import CheckoutIssue, unread

BYTES_MAX = 5 << 20
PAGE_S = 20.0  # a hostile page below that size can still cost any parser minutes

_SUFFIXES = (".html", ".htm", ".xhtml")
_CITED = re.compile(r"#pcref-(?:.*-)?(\d+)$")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BODY = ("p", "blockquote", "ul", "ol")
_CAPTURED = (*_HEADINGS, "p", "blockquote", "pre", "li", "dd")
_BLOCKS = (*_CAPTURED, "div", "ul", "ol", "section", "article", "table", "tr", "td", "br", "dt", "dl")
_UNREAD = ("script", "style", "noscript", "template", "svg", "form", "button")
_ASIDE = frozenset({"nav", "footer", "aside"})
# Characters that XML forbids, so that lxml refuses to write them, though its HTML parser reads them.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

Read = tuple[dict[str, Any], list[Finding]]


def read_pages(
    folder: Path, read: Callable[[bytes], Read] | None = None, within_s: float = PAGE_S
) -> Iterator[CheckoutIssue]:
    """Yields the issue of every saved page of a folder; its id is the file's name. `read` must be importable by its
    name: pages are read in another process, which is killed if one takes longer than `within_s` seconds. Raises
    DatasetError if there is no page."""
    paths = sorted(path for path in folder.glob("*") if path.suffix.lower() in _SUFFIXES)
    if not paths:
        raise DatasetError(f"{folder}: expected a folder of saved pages, got one without any .html file")
    with closing(Worker(WorkerSpec(modules=(__name__,), work="process that reads pages"))) as worker:
        for path in paths:
            yield _source_of(path, lambda data: worker.run(read or read_page, data, within_s=within_s))


def _source_of(path: Path, read: Callable[[bytes], Read]) -> CheckoutIssue:
    name = plain(str(path))
    try:
        data = read_bytes(path, BYTES_MAX)
    except DatasetError as error:
        return CheckoutIssue(name, path.stem, findings=(unread(error, path),))
    try:
        content, findings = read(data)
    except TaskError as error:
        detail = f"expected a page, got one that the parser fails on: {error}"
    except TaskBreakdown as error:
        detail = f"expected a page, got one that the parser was stopped at: {error}"
    else:
        return CheckoutIssue(name, path.stem, content, tuple(findings))
    return CheckoutIssue(name, path.stem, findings=(fatal("unreadable", detail),))


def read_page(data: bytes) -> Read:
    """Returns the parts of a page that were found, in the released format, and findings on those that were not found in
    their usual markup."""
    findings: list[Finding] = []
    text, struck = _without_controls(decoded(data))
    try:
        page = html.document_fromstring(text.encode(), parser=html.HTMLParser(encoding="utf-8"))
    except (etree.LxmlError, ValueError) as error:
        return {}, [fatal("unreadable", f"expected HTML, got something else: {error}")]
    etree.strip_elements(page, *_UNREAD, etree.Comment, etree.ProcessingInstruction, with_tail=False)
    struck |= _strike_controls(page)
    if struck:
        codes = ", ".join(f"U+{ord(character):04X}" for character in sorted(struck))
        findings.append(Finding("control characters", f"{codes}: left out of the text", is_fault=False))
    _prepare(page)
    content: dict[str, Any] = {"paraphrases": []}
    question = _question(page, findings)
    if question:
        content["question"] = question
    content["sources"] = _sources(page, findings)
    sides: tuple[Side, Side] = ("pro", "con")
    for side in sides:
        content[f"{side}s"] = [argument.text() for argument in _arguments(page, side, findings)]
    return content, findings


def _missed(detail: str) -> Finding:
    return Finding("not found", detail, is_fault=False)


def _without_controls(text: str) -> tuple[str, set[str]]:
    """Returns the text without control characters, and which it had; one that separates words becomes a space."""
    struck = set(_CONTROL.findall(text))
    return (_CONTROL.sub(lambda one: " " if one[0].isspace() else "", text) if struck else text), struck


def _strike_controls(page: Any) -> set[str]:
    """Removes control characters from a parsed page without comments, since the parser decodes character references;
    returns those that it had."""
    struck: set[str] = set()
    for element in page.iter():
        for place in ("text", "tail"):
            text, controls = _without_controls(getattr(element, place) or "")
            if controls:
                setattr(element, place, text)
                struck |= controls
        if element.tag == "meta":
            text, controls = _without_controls(element.get("content", ""))
            if controls:
                element.set("content", text)
                struck |= controls
    return struck


def _prepare(page: Any) -> None:
    """Turns citations into text, and separates the words of different blocks by spaces."""
    for anchor in list(page.iter("a")):
        match = _CITED.search(anchor.get("href", ""))
        if match is not None and anchor.getparent() is not None:
            for child in list(anchor):
                anchor.remove(child)
            anchor.text = f"[{match[1]}]"
            anchor.drop_tag()
    for block in page.iter(*_BLOCKS):
        block.text, block.tail = f" {block.text or ''}", f" {block.tail or ''}"


def _words(element: Any) -> str:
    """Returns an element's text on one line. A citation in brackets of its own keeps one pair of brackets."""
    return re.sub(r"\[\s*\[(\d+)\]\s*\]", r"[\1]", " ".join(element.text_content().split()))


def _has_class(element: Any, name: str) -> bool:
    return name in element.get("class", "").split()


def _question(page: Any, findings: list[Finding]) -> str:
    named = [words for div in page.iter("div") if _has_class(div, "topic-identifier") and (words := _words(div))]
    if named:
        return str(named[0])
    tried = (
        ("h1", [_words(heading) for heading in page.iter("h1")]),
        ("og:title", [meta.get("content", "") for meta in page.iter("meta") if meta.get("property") == "og:title"]),
        ("title", [_words(title) for title in page.iter("title")]),
    )
    for place, texts in tried:
        for text in texts:
            question = " ".join(text.split(" | ")[0].split())
            if question:
                findings.append(_missed(f"question: no div of class topic-identifier; taken from the {place}"))
                return question
    return ""


def _arguments(page: Any, side: Side, findings: list[Finding]) -> list[PageArgument]:
    """Returns one side's arguments: the sections of its class, else those found under its headings."""
    sections = [
        section
        for section in page.iter("section")
        if _has_class(section, side)
        and not any(_has_class(inner, side) for inner in section.iterdescendants("section"))
    ]
    if sections:
        read = [_of_section(section, f"{side}s[{at}]", findings) for at, section in enumerate(sections)]
        arguments = [argument for argument in read if argument.text()]
        if arguments:
            return arguments
    arguments = arguments_of(_blocks(page), side)
    if arguments:
        findings.append(_missed(f"{side}s: no section of class {side}; found by headings"))
    return arguments


def _of_section(section: Any, where: str, findings: list[Finding]) -> PageArgument:
    heading = next(section.iter("h2"), None)
    if heading is None:
        heading = next(section.iter(*_HEADINGS), None)
        instead = "has no title" if heading is None else f"its title taken from the {heading.tag}"
        findings.append(_missed(f"{where}: no h2; {instead}"))
    bodies = [element for element in section.iter(*_BODY) if _has_class(element, "topic-paragraph")]
    if not bodies:
        bodies = list(section.iter(*_BODY))
        instead = "every paragraph taken" if bodies else "it has no text below its title"
        findings.append(_missed(f"{where}: no paragraph of class topic-paragraph; {instead}"))
    body = [text for element in _outermost(bodies) if (text := _paragraph(element))]
    return PageArgument("" if heading is None else title_of(_words(heading)), tuple(body))


def _outermost(elements: list[Any]) -> list[Any]:
    """Returns the elements that are not inside another one of the list."""
    chosen = set(elements)
    return [element for element in elements if not any(above in chosen for above in element.iterancestors())]


def _paragraph(element: Any) -> str:
    if element.tag in ("ul", "ol"):
        return "\n".join(f"- {text}" for item in element.iterchildren("li") if (text := _words(item)))
    paragraphs = [text for inner in element.iter("p") if (text := _words(inner))] if element.tag == "blockquote" else []
    return "\n".join(paragraphs) or _words(element)


def _sources(page: Any, findings: list[Finding]) -> dict[str, str]:
    """Returns the items of the list under the heading of the sources, the k-th under the key [k]."""
    is_behind = False
    for element in page.iter(*_HEADINGS, "ol", "ul"):
        if element.tag in _HEADINGS:
            is_behind = is_behind or is_end(_words(element))
        elif is_behind:
            items = [re.sub(r"^\[\d+\]\s*", "", _words(item)) for item in element.iterchildren("li")]
            if items:
                return {f"[{number}]": text for number, text in enumerate(items, 1)}
    findings.append(_missed("sources: no list under a heading Sources"))
    return {}


def _blocks(page: Any) -> Iterator[PageBlock]:
    for element in page.iter(*_CAPTURED):
        above = {ancestor.tag for ancestor in element.iterancestors()}
        if above & _ASIDE or above & set(_CAPTURED):
            continue
        text = _words(element)
        if not text:
            continue
        if element.tag in _HEADINGS:
            yield PageBlock("heading", text, int(element.tag[1]))
        else:
            yield PageBlock("item" if element.tag in ("li", "dd") else "text", text)
