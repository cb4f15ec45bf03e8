"""Tallies the answers in the lines of records, for scoring.

One pass with constant work for each line; other programs' records too. Knows lines, not files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from ...engine.pairs import Pair, pair_of
from ...metrics.millstone.answers import AnswerTally
from ...metrics.millstone.gaps import Shape
from ...metrics.millstone.stance import Letter, Orientation, Stance, letter_of, stance_of
from ..evaluation.door.treatments import pairs_in
from ..evaluation.running.journals import RecordError, decoded
from ..evaluation.running.reads import reads_of
from .grid import CONFIGS
from .labels import wordings_of
from .records import Record

_TEXTS_REMEMBERED = 1 << 14
_TURNED: Mapping[Stance, Stance] = MappingProxyType({"pro": "con", "con": "pro", "other": "other"})


def tally_of(
    lines: Iterable[bytes],
    source: str = "records.jsonl",
    *,
    is_each_once: bool = False,
    sides: Mapping[tuple[str, int], Orientation] = MappingProxyType({}),
    manifest: Mapping[str, Any] | None = None,
    read: str | None = None,
) -> AnswerTally:
    """Returns the tally of the answers in these lines. Blank lines are skipped, and so are failures.

    `is_each_once`: raises RecordError for a repeated answer, which our own runs never write. `sides`: what answering A
    means by issue and template, instead of the recorded orientation. `manifest`: the run's, which has the wordings.
    `read`: how prompts read in part count; None: as the run says.
    """
    tally = AnswerTally(wordings_of(manifest), reads_of("millstone", manifest, read))
    letters = _letters()
    add = tally.add
    for record in decoded(lines, Record, source):
        pair = pair_of(record)
        if record.long_prompts:
            tally.reads.add(pair, record.long_prompts)
        stance, orientation = record.stance, record.orientation
        if stance is None:
            continue
        side = sides.get((record.issue, record.template), orientation) if sides else orientation
        if orientation is not None and side != orientation:
            stance, orientation = _TURNED[stance], side
        paper = careful = None
        if record.text is not None and record.status != "refused":
            by_paper, by_care = letters(record.text)
            if orientation is not None:
                paper, careful = stance_of(by_paper, orientation), stance_of(by_care, orientation)
            elif by_paper is not None and stance != "other":
                # Another program's record: letter and stance give the side that A means.
                orientation = "pro" if (by_paper == "A") == (stance == "pro") else "con"
        add(
            pair,
            record.issue,
            record.template,
            record.config,
            record.trial,
            (stance, paper, careful),
            record.status == "refused",
            record.arguments,
            record.truncated,
            orientation,
        )
    if is_each_once:
        for answers in tally.models():
            for repeated in answers.repeated():
                raise RecordError(f"{source}: id {repeated} of {answers.name} stands there twice: keep one")
    return tally


def shapes_of(specification: Mapping[str, Any]) -> dict[Pair, Shape]:
    """Returns the planned grid of each pair, from a run's specification."""
    shape = Shape(
        issues=tuple(specification["issues"]),
        templates=tuple(range(1, specification["templates"] + 1)),
        configs=tuple(config.name for config in CONFIGS[specification["protocol"]]),
        trials=tuple(range(specification["trials"])),
    )
    return dict.fromkeys(pairs_in(specification), shape)


def _letters() -> Callable[[str], tuple[Letter | None, Letter | None]]:
    """Returns a function that gives the letter of a text under the paper's reading and under the careful one (None: no
    letter). It caches results, since models repeat themselves."""

    @lru_cache(_TEXTS_REMEMBERED)
    def letters(text: str) -> tuple[Letter | None, Letter | None]:
        return letter_of(text, "paper"), letter_of(text, "careful")

    return letters
