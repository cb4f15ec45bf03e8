"""Brings texts into one form, so that all ways to write the same answer are equal.

Owns what `match` treats as equal. Pure functions of texts.
"""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad"))
_ONE_SIGN = str.maketrans(
    {**dict.fromkeys("‐‑‒–—−", "-"), **dict.fromkeys("‘’‚‛´`ʼ", "'"), **dict.fromkeys("“”„‟«»", '"')}
)
_MARKDOWN, _QUOTES = "*_", "\"'"
# A full stop, a sign or a currency may begin a number, so they are kept at the beginning, and so is % at the end.
_BEFORE = _MARKDOWN + _QUOTES + "([{¿¡「『《〈（【 "
_AFTER = _MARKDOWN + _QUOTES + ")]}.,;:!?…。、，！？；：」』》〉）】 "
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_POWER = re.compile(r"(?<=[0-9])[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
# Scripts that write words without a space between them.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)


def normalised(text: str) -> str:
    """Returns the form in which two answers are compared.

    Equal are: upper and lower case; any run of whitespace and one space; forms that Unicode calls compatible (NFKC:
    full-width letters, ligatures, composed and decomposed accents); kinds of quotation marks and of dashes; texts with
    and without quotation marks, brackets, Markdown's `*` and `_`, and a sentence's closing punctuation at the ends.
    Different are: accents and none; digits with a superscript and without; signs, full stops and currencies before a
    number; a percent sign after it; punctuation inside.
    """
    text = _POWER.sub(lambda match: "^" + match[0].translate(_SUPERSCRIPTS), text.translate(_INVISIBLE))
    text = unicodedata.normalize("NFKC", text.translate(_ONE_SIGN))
    text = unicodedata.normalize("NFKC", text.casefold()).translate(_ONE_SIGN)
    return " ".join(text.split()).lstrip(_BEFORE).rstrip(_AFTER)


def is_at_start(wanted: str, text: str) -> bool:
    """Returns whether a normalised text begins with the wanted one as whole words."""
    return text.startswith(wanted) and _is_whole(wanted, text, 0)


def is_at_end(wanted: str, text: str) -> bool:
    """Returns whether a normalised text ends with the wanted one as whole words."""
    return text.endswith(wanted) and _is_whole(wanted, text, len(text) - len(wanted))


def is_anywhere(wanted: str, text: str) -> bool:
    """Returns whether a normalised text contains the wanted one as whole words."""
    at = text.find(wanted)
    while at >= 0 and not _is_whole(wanted, text, at):
        at = text.find(wanted, at + 1)
    return at >= 0


def _is_whole(wanted: str, text: str, at: int) -> bool:
    """Returns whether the wanted text at this place is no part of a longer word or number: 3 is not in 13, 3.5, 1,300
    or -3."""
    # No regular expression is made of the wanted text: to compile one for each row costs more than the rest of a run.
    before, after = text[max(0, at - 2) : at], text[at + len(wanted) : at + len(wanted) + 2]
    if before and _is_in_word(before[-1]) and not _UNSPACED.match(wanted[0]):
        return False
    if after and _is_in_word(after[0]) and not _UNSPACED.match(wanted[-1]):
        return False
    if wanted[0].isdigit() and (before[-1:] in ("-", ".") or (before[-1:] == "," and before[0].isdigit())):
        return False
    return not (wanted[-1].isdigit() and len(after) == 2 and after[0] in ".," and after[1].isdigit())


def _is_in_word(sign: str) -> bool:
    return (sign.isalnum() or sign == "_") and _UNSPACED.match(sign) is None
