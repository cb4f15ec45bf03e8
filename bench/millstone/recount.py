"""Tallies the answers in the lines of records, and scores them.

Constant work for each line; other programs' records too. Knows lines, not files.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from ...configuration.errors import UsageError
from ...engine.pairs import Pair
from ...engine.runs.run_folder import MANIFEST
from ...metrics.millstone.answers import AnswerTally
from ...metrics.millstone.gaps import Shape
from ...metrics.millstone.scores import scores
from ...metrics.millstone.stance import Orientation, Stance, letter_of, stance_of
from ..evaluation.door.served_rows import ScoredRun
from ..evaluation.door.treatments import pairs_in
from ..evaluation.running.journals import RecordError
from ..evaluation.running.reads import reads_of
from .grid import CONFIGS
from .labels import sides_of, wordings_of
from .options import Readings
from .records import GridLine, Record
from .reference import LEFT_OUT

TEXTS_REMEMBERED = 1 << 14
# As recorded, by the paper's reading and by the careful one; None: no text to read.
_Stances = tuple[Stance, Stance | None, Stance | None]
_TURNED: Mapping[Stance, Stance] = MappingProxyType({"pro": "con", "con": "pro", "other": "other"})


class GridTally:
    """Tallies the answers of a run, or of another program's records, line by line. Failures are left out."""

    def __init__(self, run: ScoredRun) -> None:
        readings: Readings = run.readings
        # What answering A means by issue and template, instead of the recorded orientation.
        self.sides = sides_of(run.folder, run.manifest) if readings.fix_orientation else {}
        self._tally = AnswerTally(wordings_of(run.manifest), reads_of("millstone", run.manifest, readings.read))
        # Models repeat themselves.
        self._read = lru_cache(TEXTS_REMEMBERED)(_read)

    def add(self, row: Pair, line: Record | GridLine) -> None:
        """Adds one line to the answers of its row."""
        if line.long_prompts:
            self._tally.reads.add(row, line.long_prompts)
        stance, orientation = line.stance, line.orientation
        if stance is None:
            return
        if self.sides and orientation is not None:
            side = self.sides.get((line.issue, line.template), orientation)
            if side != orientation:
                stance, orientation = _TURNED[stance], side
        refused = line.status == "refused"
        stances: _Stances = (stance, None, None)
        if line.text is not None and not refused:
            stances, orientation = self._read(line.text, stance, orientation)
        self._tally.add(
            row,
            line.issue,
            line.template,
            line.config,
            line.trial,
            stances,
            refused,
            line.arguments,
            line.truncated,
            orientation,
        )

    def answers(self, run: ScoredRun) -> AnswerTally:
        """Returns the tally of all lines. Raises RecordError for an answer that stands there twice, if the run has each
        once, as our own do."""
        for answers in self._tally.models() if run.is_each_once else ():
            for repeated in answers.repeated():
                raise RecordError(f"{run.source}: id {repeated} of {answers.name} stands there twice: keep one")
        return self._tally

    def scores(self, run: ScoredRun) -> dict[str, Any]:
        """Returns MillStone's part of scores.json."""
        tally, readings = self.answers(run), run.readings
        try:
            shapes = {} if run.specification is None else shapes_of(run.specification)
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"{run.folder}: its {MANIFEST} is no MillStone run's ({error!r})") from error
        part: dict[str, Any] = scores(
            tally,
            reading=readings.stance or "recorded",
            left_out=LEFT_OUT,
            shapes=shapes,
            is_ranked=run.rows.is_ranked,
            silence=readings.silence or "unscored",
        )["millstone"]
        return part


def shapes_of(specification: Mapping[str, Any]) -> dict[Pair, Shape]:
    """Returns the planned grid of each pair, from a run's specification."""
    shape = Shape(
        issues=tuple(specification["issues"]),
        templates=tuple(range(1, specification["templates"] + 1)),
        configs=tuple(config.name for config in CONFIGS[specification["protocol"]]),
        trials=tuple(range(specification["trials"])),
    )
    return dict.fromkeys(pairs_in(specification), shape)


def _read(text: str, stance: Stance, orientation: Orientation | None) -> tuple[_Stances, Orientation | None]:
    """Returns the stances of a text as recorded and under both readings, and the side that A means."""
    paper, careful = letter_of(text, "paper"), letter_of(text, "careful")
    if orientation is not None:
        return (stance, stance_of(paper, orientation), stance_of(careful, orientation)), orientation
    if paper is not None and stance != "other":
        # Another program's record: letter and stance give the side that A means.
        orientation = "pro" if (paper == "A") == (stance == "pro") else "con"
    return (stance, None, None), orientation
