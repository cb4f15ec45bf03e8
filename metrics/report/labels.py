"""Names as a picture can bear them: one line, no control characters, cut, and still each its own.

Owns what becomes of a model's or an issue's name on an axis. Tables keep the name itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_SLUG = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
# Controls, signs that turn the direction of writing or show nothing, half a pair, separators of lines.
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_LONGEST = 300


def plain(text: str, longest: int = _LONGEST) -> str:
    """The text on one line, what can't be seen replaced by a mark that can, cut in the middle of what is too long."""
    if len(text) > longest:
        text = text[: longest - longest // 3 - 1] + "…" + text[-(longest // 3) :]
    shown = "".join(_seen(sign) for sign in text)
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


def _spoken(slug: str) -> str:
    words = slug.replace("-", " ")
    return words[:1].upper() + words[1:]


def _seen(sign: str) -> str:
    if sign in "\t\n\r":
        return " "
    return "\ufffd" if unicodedata.category(sign) in _UNSEEN else sign
