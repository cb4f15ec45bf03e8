"""Finds the citations of an answer: numbers in brackets in all their forms, and written addresses.

Owns how they are matched to the turn's retrieved pages, and which match none. Pure; knows no prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ...engine.page_urls import normalised_url

_OPEN, _CLOSE = "[\\[【]", "[\\]】]"
_DASH = "[-‐‑–—]"
# Numbers of at most three digits: a year in brackets is no citation.
_NUMBER = r"\^?\d{1,3}(?!\d)"
# The tail that search assistants write behind a number, as in 【3†source】 and 【3:1†L5】. It is possessive: with
# backtracking a long answer would take almost forever.
_TAIL = r"(?:(?::\d{1,3})?†[^\]】\n,;]{0,60}+)?+"
_ITEM = rf"{_NUMBER}{_TAIL}(?:\s*{_DASH}\s*{_NUMBER})?"
_GROUP = re.compile(
    rf"{_OPEN}\s*(?:(?:sources?|refs?|references?)\.?\s*(?::\s*)?)?"
    rf"({_ITEM}(?:\s*(?:[,;&]|and|,\s*and)\s*(?:source\s+)?{_ITEM})*)\s*{_CLOSE}",
    re.IGNORECASE,
)
_ITEMS = re.compile(rf"({_NUMBER}){_TAIL}(?:\s*{_DASH}\s*({_NUMBER}))?")
_RANGE_OF_GROUPS = re.compile(rf"{_OPEN}\s*({_NUMBER})\s*{_CLOSE}\s*(?:{_DASH}|to)\s*{_OPEN}\s*({_NUMBER})\s*{_CLOSE}")
_URL = re.compile(r"(?:https?://|corpus:)[^\s<>\"'`|\\^{}【】]+", re.IGNORECASE)
_LINK = re.compile(rf"{_OPEN}\s*({_NUMBER})\s*{_CLOSE}\(\s*<?([^\s)<>]+(?:\([^\s)<>]*\)[^\s)<>]*)*)")
_FOOTNOTE = re.compile(rf"^[ \t>*-]*{_OPEN}\s*({_NUMBER})\s*{_CLOSE}:?[ \t]*(\S.*)$", re.MULTILINE)
_TRAILING = ".,;:!?*_~'\"’”»…"
_PAIRS = {")": "(", "]": "["}
_INVALID_MAX = 50


class Citations(Struct, frozen=True):
    """The citations of an answer. `urls` are retrieved addresses, in order of first mention. `invalid` are numbers and
    addresses, as written, that stand for no page in the prompt."""

    urls: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()


def cited_in(text: str, retrieved: Sequence[str], pages: Iterable[int], aliases: Sequence[str] = ()) -> Citations:
    """Returns the citations of an answer. `pages` are the numbers, from 1, of the pages in the prompt; `aliases` are
    the final addresses of the retrieved ones, in the same order.

    Where the answer itself assigns an address to a number, in a list at its end or a link, that address counts if it
    was retrieved.
    """
    places = _places(retrieved, aliases)
    visible = set(pages)
    numbering = _own_numbering(text, places)
    urls: dict[str, None] = {}
    invalid: dict[str, None] = {}
    mentions: list[tuple[int, int | str]] = [*_numbers(text), *_urls(text)]
    # Each mention once: a long answer may name one address thousands of times.
    for mention in dict.fromkeys(mention for _, mention in sorted(mentions, key=lambda each: each[0])):
        if isinstance(mention, str):
            place = places.get(normalised_url(mention))
        else:
            place = numbering.get(mention, mention - 1 if mention in visible else None)
        if place is None:
            invalid[mention if isinstance(mention, str) else f"[{mention}]"] = None
        else:
            urls[retrieved[place]] = None
    return Citations(tuple(urls), tuple(invalid)[:_INVALID_MAX])


def _places(retrieved: Sequence[str], aliases: Sequence[str]) -> dict[str, int]:
    places: dict[str, int] = {}
    for listed in (retrieved, aliases):
        for place, url in enumerate(listed):
            if url:
                places.setdefault(normalised_url(url), place)
    return places


def _own_numbering(text: str, places: dict[str, int]) -> dict[int, int]:
    """Returns the numbers to which the answer assigns an address, in a list of footnotes or by a link, each with the
    place of that address among the retrieved ones, from 0."""
    numbering: dict[int, int] = {}
    defined = [(match[1], match[2]) for pattern in (_FOOTNOTE, _LINK) for match in pattern.finditer(text)]
    for number, words in defined:
        urls = _urls(words)
        # Only an address that ends its line: a sentence may begin with a number and name another page further on.
        if len(urls) == 1 and not words[urls[0][0] + len(urls[0][1]) :].strip(_TRAILING + ")]> "):
            place = places.get(normalised_url(urls[0][1]))
            if place is not None:
                numbering.setdefault(_value(number), place)
    return numbering


def _value(number: str) -> int:
    return int(number.removeprefix("^"))


def _numbers(text: str) -> list[tuple[int, int]]:
    """Returns every number in brackets with its first place in the text, ranges expanded."""
    ranges: dict[int, int] = {}
    for match in _RANGE_OF_GROUPS.finditer(text):
        for number in _spread(match[1], match[2]):
            ranges.setdefault(number, match.start())
    groups: dict[int, int] = {}
    for match in _GROUP.finditer(text):
        for item in _ITEMS.finditer(match[1]):
            for number in _spread(item[1], item[2]):
                groups.setdefault(number, match.start() + item.start())
    return [(at, number) for places in (ranges, groups) for number, at in places.items()]


def _spread(first: str, last: str | None) -> Iterable[int]:
    low = _value(first)
    high = low if last is None else _value(last)
    # If the range is backwards, or wider than any list of sources, these are two numbers.
    return range(low, high + 1) if low <= high <= low + 100 else (low, high)


def _urls(text: str) -> list[tuple[int, str]]:
    return [(match.start(), url) for match in _URL.finditer(text) if (url := _trimmed(match[0]))]


def _trimmed(url: str) -> str:
    """Returns the address without the punctuation of the surrounding sentence. A closing bracket belongs to the address
    if it was opened within it."""
    # A markdown link on an address: [https://a.example](https://a.example).
    url = url.split("](", 1)[0]
    count = {bracket: url.count(bracket) for bracket in "()[]"}
    end = len(url)
    while end:
        last = url[end - 1]
        if last in _PAIRS and count[last] > count[_PAIRS[last]]:
            count[last] -= 1
        elif last not in _TRAILING:
            break
        end -= 1
    return url[:end]
