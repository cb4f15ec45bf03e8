"""Finds the number that an answer gives, exactly.

Owns how thousands separators, percent signs, units, powers and fractions are read. It is strict: an ambiguous answer
has no number. Pure functions of texts.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal, NamedTuple

Decimal = Literal[".", ","]
Which = Literal["answer", "first", "last"]

_DIGITS_MAX, _POWER_MAX, _TERM_CHARS = 400, 300, 8
_WORDS = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_MAGNITUDES = r"(?:k|K|M|bn|mn|B|mio|Mio|Mrd)"
_PARTS = r"dozens?|(?:ten|hundred|thousand|million|billion|trillion)ths?"
# A number after these is no number of its own; an m after an amount of money stands for millions.
_TERM_BEFORE = re.compile(r"(?:√|sqrt|\\[dt]?frac)[\s{(]*$")
_MILLIONS_AFTER = re.compile(r"\s?m(?![A-Za-z])")
# Digits and letters in turn are a name or a digest, no number; an area or a volume is one.
_NAME_AFTER = re.compile(r"(?!(?:[kcdm]?m|ft|in|yd)[23]\b)[A-Za-z]+[0-9]")
_WIDE = str.maketrans("０１２３４５６７８９．，－＋％−–", "0123456789.,-+%--")
# A sign belongs to a number if no word and no other number stands right before it.
_TOKEN = re.compile(
    rf"(?<![\w.,])(?<![A-Za-z]-)(?P<sign>(?<![\w)\]][-+])[-+]\s?(?=[$€£¥]?[0-9.]))?(?:[$€£¥]\s?)?(?P<sign2>(?<=[$€£¥])[-+])?"
    r"(?P<body>(?:[0-9]|\.[0-9])[0-9.,'’_\u00a0\u2009\u202f]*)"
    r"(?P<ratio>\s?/\s?[0-9][0-9.,/]*)?"
    r"(?P<power>[eE][-+]?[0-9]+|\s*(?:[×x*·]|\\times|\\cdot)\s*10\s*(?:\^|\*\*)\s*\{?[-+]?[0-9]+\}?)?"
    rf"(?P<odd>[²³⁰¹⁴-⁹]|\s?[¼-¾⅐-⅟↉]|\^|\*\*[0-9({{]|:[0-9]|\s?{_MAGNITUDES}(?![A-Za-z])|[-/xX][0-9]|"
    rf"\s(?:{_PARTS})\b)?"
    rf"(?P<words>(?:\s(?:{'|'.join(_WORDS)})s?\b)*)"
    r"(?P<percent>\s?(?:%|\\%|percent\b|per cent\b))?"
)
_STATED = re.compile(
    r"(?:\\boxed\{(?P<boxed>[^{}]*)\}|####(?P<marked>[^\n]*)|"
    r"\b(?i:answer)\s*[*_]*\s*(?:(?i:is|would be|must be)\b\s*|[:=]\s*)[:=]?(?P<stated>[^\n]*))"
)


class NumberRead(NamedTuple):
    """A number read from a text: its exact value without a percent sign, whether it has one, and its text."""

    value: Fraction
    is_percent: bool
    text: str


def number_in(text: str, decimal: Decimal = ".", which: Which = "answer") -> NumberRead | None:
    """Returns the number of an answer; None if there is none, or if it is ambiguous.

    `which`: "answer": the one that the answer states last (`\\boxed{42}`, `#### 42`, "the answer is 42", "answer: 42");
    without a statement the only one of the last line, else the only one of all. "first" and "last": that one of the
    whole answer. Where a statement or line holds several different numbers, the one behind its only equals sign counts,
    else none.
    """
    text = text.translate(_WIDE)
    if which != "answer":
        read = _numbers(text, decimal)
        return read[0 if which == "first" else -1] if read else None
    stated = list(_STATED.finditer(text))
    if stated:
        last = next(part for part in stated[-1].groups() if part is not None)
        if last.lower().startswith("not "):
            return None
        if _numbers(last, decimal):
            return _only(last, decimal)
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and (read := _numbers(lines[-1], decimal)):
        return _only(lines[-1], decimal)
    return _only(text, decimal)


def _only(text: str, decimal: Decimal) -> NumberRead | None:
    found = _numbers(text, decimal)
    alike = {None if number is None else number[:2] for number in found}
    if len(alike) > 1 and text.count("=") == 1:
        return _only(text.partition("=")[2], decimal)
    return found[0] if len(alike) == 1 else None


def _numbers(text: str, decimal: Decimal) -> list[NumberRead | None]:
    """Returns every number of a text in order; None for one that is ambiguous."""
    found = (match for match in _TOKEN.finditer(text) if not _NAME_AFTER.match(text, match.end()))
    return [_number(match, decimal) for match in found]


def _number(match: re.Match[str], decimal: Decimal) -> NumberRead | None:
    body = match["body"].rstrip(".,'’_\u00a0\u2009\u202f")
    value = None if match["odd"] or _is_part(match) else _plain(body, decimal)
    if value is None:
        return None
    if match["ratio"]:
        if match["power"]:
            return None
        below = _plain(match["ratio"].strip(" /").rstrip(".,"), decimal)
        if not below:
            return None
        value /= below
    if match["power"]:
        digits = re.findall(r"[-+]?[0-9]+", match["power"])
        power = int(digits[-1]) if len(digits[-1]) < 6 else _POWER_MAX + 1
        if abs(power) > _POWER_MAX:
            return None
        value *= Fraction(10) ** power
    for word in match["words"].split():
        value *= 10 ** _WORDS[word.rstrip("s")]
    sign = (match["sign"] or match["sign2"] or "").strip()
    return NumberRead(-value if sign == "-" else value, bool(match["percent"]), match[0].strip())


def _is_part(match: re.Match[str]) -> bool:
    """Returns whether the digits are only a part of a number: under a root, in a fraction, or an amount in millions."""
    if _TERM_BEFORE.search(match.string, max(0, match.start() - _TERM_CHARS), match.start()):
        return True
    is_money = any(sign in match[0] for sign in "$€£¥")
    return is_money and _MILLIONS_AFTER.match(match.string, match.end()) is not None


def _plain(text: str, decimal: Decimal) -> Fraction | None:
    """Returns the value of digits with thousands separators and a decimal sign; None if they are no well-formed number.
    Groups have three digits and one kind of separator: a comma (a full stop where the comma is the decimal sign), an
    apostrophe, an underscore or a thin space."""
    thousands = "," if decimal == "." else "."
    whole, sign, rest = text.partition(decimal)
    if len(text) > _DIGITS_MAX or (sign and not re.fullmatch("[0-9]+", rest)):
        return None
    if not re.fullmatch(
        rf"[0-9]*|[0-9]{{1,3}}(?:([{thousands}'’_\u00a0\u2009\u202f])[0-9]{{3}})(?:\1[0-9]{{3}})*", whole
    ):
        return None
    digits = re.sub("[^0-9]", "", whole)
    return Fraction(f"{digits or 0}.{rest or 0}") if digits or rest else None
