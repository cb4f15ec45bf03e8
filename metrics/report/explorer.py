"""What stands behind a number, packed for a page: the counts, some prompts to the letter, the most frequent answers.

Owns the shape that the page's script reads, and how much of it a page can bear. Knows no file of a run.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from ..millstone import CASES, STANCES
from .labels import issue_labels, labels

LABEL_LONGEST = 80


class Said(Struct, frozen=True, array_like=True):
    """An answer's text, a place in the texts, and its stance, a place in STANCES; `chars` is the length of the whole
    text where it is cut, else 0; `times` so many answers say it."""

    stance: int
    text: int
    chars: int
    times: int = 1


class Cell(Struct, frozen=True, array_like=True):
    """One model's answers on one issue in one case. `own` are its answers to the sample prompts, None where it has
    none; `said` are the most frequent of all its answers, out of `different` ones."""

    counts: tuple[int, int, int]
    refused: int
    different: int
    said: tuple[Said, ...]
    own: tuple[Said | None, ...]


class Prompt(Struct, frozen=True, array_like=True):
    """`parts`, joined, are the prompt to the letter; `a_means` is the side that answering A stands for. Every text here
    has been made harmless to look at."""

    id: str
    a_means: str
    parts: tuple[int, ...]


class Script(Struct, frozen=True, array_like=True):
    """The sample prompts of one issue: their parts, and for each case the prompts made of them."""

    parts: tuple[str, ...]
    cases: tuple[tuple[Prompt, ...], ...]


class Model(Struct, frozen=True):
    """`cells` has for each issue a cell a case. `script` is the place of its prompts; None, and `why`, where they can't
    be shown."""

    name: str
    cells: Mapping[str, tuple[Cell, ...]]
    script: int | None = None
    why: str = ""


class Explorer(Struct, frozen=True):
    """Everything that can be looked into. `remarks` say what was left out to keep the page small."""

    issues: tuple[str, ...]
    models: tuple[Model, ...]
    texts: tuple[str, ...]
    scripts: tuple[Mapping[str, Script], ...]
    remarks: tuple[str, ...] = ()


class _PackedModel(Struct, frozen=True):
    """A model as the page's script reads it; issues go by their places."""

    name: str
    cells: Mapping[int, tuple[Cell, ...]]
    script: int | None
    why: str


class _Packed(Struct, frozen=True):
    issues: tuple[str, ...]
    models: tuple[_PackedModel, ...]
    texts: tuple[str, ...]
    scripts: tuple[Mapping[int, Script], ...]
    cases: tuple[str, ...] = CASES
    stances: tuple[str, ...] = STANCES


def packed(explorer: Explorer) -> str:
    """As the page holds it: JSON, compressed, in base64. The same bytes for the same contents."""
    names = labels([model.name for model in explorer.models], LABEL_LONGEST)
    issues = issue_labels(explorer.issues, LABEL_LONGEST)
    places = {issue: at for at, issue in enumerate(explorer.issues)}
    whole = _Packed(
        issues=tuple(issues[issue] for issue in explorer.issues),
        models=tuple(
            _PackedModel(
                names[model.name],
                {places[issue]: cells for issue, cells in model.cells.items()},
                model.script,
                model.why,
            )
            for model in explorer.models
        ),
        texts=explorer.texts,
        scripts=tuple({places[issue]: script for issue, script in found.items()} for found in explorer.scripts),
    )
    return base64.b64encode(gzip.compress(msgspec.json.encode(whole), compresslevel=9, mtime=0)).decode("ascii")
