"""Finds arguments by headings alone, where a page's markup doesn't name them.

Owns which headings begin an argument or a side. Sees a page as a flat sequence of headings, paragraphs and list items.
Knows no HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from ..issue import Side

Kind = Literal["heading", "text", "item"]

# "Pro 1: …", "Con argument #2 – …", "Pro: …"; "Pro-life …" is a title like any other.
_NUMBERED = re.compile(
    r"(?P<side>pro|con)s?(?:\s+argument)?(?:\s*#?\d+\s*(?:[:.)–—-]\s*|\s|$)|\s*:\s*)(?P<title>.*)", re.IGNORECASE
)
_SIDE = re.compile(
    r"(?:the\s+)?(?:(?P<side>pro|con)s?(?:\s+(?:arguments?|side|position))?|arguments?\s+(?:for|in\s+favou?r"
    r"|(?P<against>against))\b.*)",
    re.IGNORECASE,
)
_END = re.compile(r"(?:sources|references|footnotes|bibliography|citations)\s*:?", re.IGNORECASE)


class PageBlock(NamedTuple):
    """A piece of a page. `level` is that of a heading, 1 to 6; 0 for other pieces."""

    kind: Kind
    text: str
    level: int = 0


class PageArgument(NamedTuple):
    """An argument of a page: its title, and the paragraphs below it."""

    title: str
    body: tuple[str, ...]

    def text(self) -> str:
        """Returns the argument in the released format: the title, then paragraphs with a blank line between them."""
        return "\n".join(filter(None, [self.title, "\n\n".join(self.body)]))


def title_of(heading: str) -> str:
    """Returns a heading without a leading "Pro 1:", which would reveal the side."""
    match = _NUMBERED.fullmatch(heading)
    return match["title"].strip() if match is not None else heading


def is_end(heading: str) -> bool:
    """Returns whether a heading begins the list of sources."""
    return _END.fullmatch(heading) is not None


def arguments_of(blocks: Iterable[PageBlock], side: Side) -> list[PageArgument]:
    """Returns the arguments of one side: each under its own heading, or all under one heading of the side."""
    blocks = list(blocks)
    single: list[PageArgument] = []
    grouped: list[PageArgument] = []
    for at, block in enumerate(blocks):
        if block.kind != "heading":
            continue
        numbered = _NUMBERED.fullmatch(block.text)
        if numbered is not None and numbered["side"].lower() == side:
            single.append(_argument(numbered["title"].strip(), _under(blocks, at)))
        elif _side_of(block.text) == side:
            grouped += _of_group(_under(blocks, at))
    return [argument for argument in (single or grouped) if argument.text()]


def _side_of(heading: str) -> Side | None:
    match = _SIDE.fullmatch(heading)
    if match is None:
        return None
    if match["side"] is None:
        return "con" if match["against"] else "pro"
    return "pro" if match["side"].lower() == "pro" else "con"


def _under(blocks: Sequence[PageBlock], at: int) -> list[PageBlock]:
    """Returns the blocks below the heading at index `at`, up to the next heading of its level or above."""
    below: list[PageBlock] = []
    for block in blocks[at + 1 :]:
        if block.kind == "heading" and (
            block.level <= blocks[at].level or any(form.fullmatch(block.text) for form in (_NUMBERED, _SIDE, _END))
        ):
            break
        below.append(block)
    return below


def _argument(title: str, blocks: Iterable[PageBlock]) -> PageArgument:
    body: list[str] = []
    previous: Kind = "text"
    for block in blocks:
        if block.kind == "item" and previous == "item":
            body[-1] += f"\n- {block.text}"
        else:
            body.append(f"- {block.text}" if block.kind == "item" else block.text)
        previous = block.kind
    return PageArgument(title, tuple(body))


def _of_group(blocks: Sequence[PageBlock]) -> list[PageArgument]:
    """Returns the arguments under the heading of a side: by the headings below it, else list items, else paragraphs."""
    level = min((block.level for block in blocks if block.kind == "heading"), default=0)
    if level:
        starts = [at for at, block in enumerate(blocks) if block.kind == "heading" and block.level == level]
        ends = [*starts[1:], len(blocks)]
        return [
            _argument(title_of(blocks[start].text), blocks[start + 1 : end])
            for start, end in zip(starts, ends, strict=True)
        ]
    kind: Kind = "item" if any(block.kind == "item" for block in blocks) else "text"
    return [PageArgument("", (block.text,)) for block in blocks if block.kind == kind]
