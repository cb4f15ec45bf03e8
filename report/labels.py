"""Names shortened for pictures and sentences: one line, no control characters, and still different from each other.

Owns how a model's or an issue's name is shown on an axis or in a sentence, and how wide it may get. Tables keep the
name itself.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

_Key = TypeVar("_Key", bound=Hashable)

_SLUG = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
# Categories of control characters, marks of text direction, invisible characters, surrogates, and separators of lines.
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_LONGEST = 300
_LONGEST_IN_SENTENCE, _NAMED = 60, 3
# Parts of the font's size, from the widest of the usual fonts for screens (DejaVu Sans and Verdana).
_THIN, _BROAD = frozenset("fijlrtIJ .,:;'`|!/\\()[]{}-"), frozenset("mwMWQO@%&…—+=<>~")
_PARTS_THIN, _PARTS_LETTER, _PARTS_CAPITAL, _PARTS_BROAD = 0.41, 0.64, 0.79, 1.0


def one_line(text: str, longest: int = _LONGEST) -> str:
    """Returns the text on one line, with invisible characters replaced by a visible mark, and a text of more than
    `longest` characters cut in its middle."""
    if len(text) > longest:
        text = text[: longest - longest // 3 - 1] + "…" + text[-(longest // 3) :]
    # A printable text has nothing invisible, and nearly every text is printable.
    visible = text if text.isprintable() else "".join(map(_seen, text))
    return " ".join(visible.split()) or "(empty)"


def labels(names: Iterable[str], longest: int = 28) -> dict[str, str]:
    """Returns a label for each name; names that would look the same after cutting to `longest` characters are numbered
    from 2."""
    label_of: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        if name in label_of:
            continue
        label = cut = one_line(name, longest)
        number = 2
        while label in taken:
            label = f"{cut} ({number})"
            number += 1
        taken.add(label)
        label_of[name] = label
    return label_of


def issue_labels(issues: Iterable[str], longest: int = 34) -> dict[str, str]:
    """Returns a label for each issue: its id with spaces in place of the hyphens between its words."""
    every = list(dict.fromkeys(issues))
    spoken = [_spoken(issue) if _SLUG.fullmatch(issue) else issue for issue in every]
    # Ids that differ in their hyphens or first letters alone stay as they are.
    if len(set(spoken)) < len(spoken):
        spoken = every
    label_of = labels(spoken, longest)
    return {issue: label_of[word] for issue, word in zip(every, spoken, strict=True)}


def named_list(names: Sequence[str]) -> str:
    """Returns names joined for a sentence: the first three, and the number of the others."""
    texts = [one_line(name, _LONGEST_IN_SENTENCE) for name in names[:_NAMED]]
    if len(names) > len(texts):
        return f"{', '.join(texts)} and {len(names) - len(texts)} more"
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def width_of(label: str, size: int) -> int:
    """Returns how many pixels wide a label can get in the widest usual font, at this font size."""
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


def folder_labels(paths: Sequence[Path]) -> dict[Path, str]:
    """Returns a label for each folder: the shortest end of its path that differs from the others'."""
    for depth in range(1, max((len(path.parts) for path in paths), default=0)):
        labels = {path: Path(*path.parts[-depth:]).as_posix() for path in paths}
        if len(set(labels.values())) == len(labels):
            return labels
    return {path: str(path) for path in paths}


def told_apart(names: Mapping[_Key, str], runs: Mapping[_Key, str], twice: Container[str]) -> dict[_Key, str]:
    """Returns names of which no two are the same: those in `twice` have their run's label behind them."""
    unique = {key: name for key, name in names.items() if name not in twice}
    taken = set(unique.values())
    for key, name in names.items():
        if name in twice:
            label, number = f"{name} ({runs[key]})", 2
            while label in taken:  # a model may be called what another one is with its run
                label, number = f"{name} ({runs[key]}) #{number}", number + 1
            taken.add(label)
            unique[key] = label
    return unique
