"""An issue of MillStone: its question, its six wordings and its arguments, as every other module takes them.

Texts are kept unchanged and orientations as given. Which issues are well-formed is for `checks` to decide.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct

Side = Literal["pro", "con"]
Text = Annotated[str, Meta(pattern=r"\S")]

PARAPHRASES = 6

CITATION = re.compile(r"\[([0-9]+)\]")
ISSUE_ID = re.compile(r"[^\s/,\ud800-\udfff]+")  # ids stand between slashes in records and between commas in --issues


class Paraphrase(Struct, frozen=True):
    """One neutral wording of a question. `orientation` is the side that answering A means."""

    question: Text
    orientation: Side


class Argument(Struct, frozen=True):
    """One argument. `citations` are the sources that its text cites, in order of first mention, each as (n, source)."""

    id: str
    side: Side
    text: str
    citations: tuple[tuple[str, str], ...]


class Issue(Struct, frozen=True):
    """One question with its six wordings. `arguments` holds all pro arguments, then all con arguments, in file
    order."""

    id: str
    question: str
    paraphrases: tuple[Paraphrase, ...]
    arguments: tuple[Argument, ...]

    @property
    def sides(self) -> tuple[int, int]:
        """The numbers of pro and of con arguments."""
        return self.count("pro"), self.count("con")

    def count(self, side: Side) -> int:
        return sum(argument.side == side for argument in self.arguments)
