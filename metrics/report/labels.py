"""Names as a picture can bear them: one line, no control characters, cut, and still each its own.

Owns what becomes of a model's or an issue's name on an axis or in a sentence, and how wide it may get. Tables keep the
name itself.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence

_SLUG = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
# Controls, signs that turn the direction of writing or show nothing, half a pair, separators of lines.
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_LONGEST = 300
_LONGEST_IN_SENTENCE, _NAMED = 60, 3
# Parts of the font's size, from the widest of the usual fonts for screens (DejaVu Sans and Verdana).
_THIN, _BROAD = frozenset("fijlrtIJ .,:;'`|!/\\()[]{}-"), frozenset("mwMWQO@%&…—+=<>~")
_PARTS_THIN, _PARTS_LETTER, _PARTS_CAPITAL, _PARTS_BROAD = 0.41, 0.64, 0.79, 1.0


def plain(text: str, longest: int = _LONGEST) -> str:
    """The text on one line, what can't be seen replaced by a mark that can, cut in the middle of what is too long."""
    if len(text) > longest:
        text = text[: longest - longest // 3 - 1] + "…" + text[-(longest // 3) :]
    # What is printable has nothing unseen; nearly every text is.
    shown = text if text.isprintable() else "".join(map(_seen, text))
    return " ".join(shown.split()) or "(empty)"


def labels(names: Iterable[str], longest: int = 28) -> dict[str, str]:
    """A label for each name; two names that look the same once they are cut are numbered, so that none is drawn as
    another."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        if name in found:
            continue
        label = cut = plain(name, longest)
        number = 2
        while label in taken:
            label = f"{cut} ({number})"
            number += 1
        taken.add(label)
        found[name] = label
    return found


def issue_labels(issues: Iterable[str], longest: int = 34) -> dict[str, str]:
    """The same for issues, whose ids are words joined by hyphens."""
    every = list(dict.fromkeys(issues))
    spoken = [_spoken(issue) if _SLUG.fullmatch(issue) else issue for issue in every]
    # Ids that differ in their hyphens or first letters alone stay as they are.
    if len(set(spoken)) < len(spoken):
        spoken = every
    shown = labels(spoken, longest)
    return {issue: shown[word] for issue, word in zip(every, spoken, strict=True)}


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: the first few, and how many more."""
    shown = [plain(name, _LONGEST_IN_SENTENCE) for name in names[:_NAMED]]
    if len(names) > len(shown):
        return f"{', '.join(shown)} and {len(names) - len(shown)} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def width_of(label: str, size: int) -> int:
    """At least how many pixels to keep for a label: nobody knows the font that it will be drawn with."""
    return math.ceil(size * sum(map(_parts, label)))


def _parts(sign: str) -> float:
    if sign in _THIN:
        return _PARTS_THIN
    if sign in _BROAD or (not sign.isascii() and unicodedata.east_asian_width(sign) in "WF"):
        return _PARTS_BROAD
    return _PARTS_CAPITAL if sign.isupper() or not sign.isascii() else _PARTS_LETTER


def _spoken(slug: str) -> str:
    words = slug.replace("-", " ")
    return words[:1].upper() + words[1:]


def _seen(sign: str) -> str:
    if sign in "\t\n\r":
        return " "
    return "\ufffd" if unicodedata.category(sign) in _UNSEEN else sign
