"""Answers as columns: a million records in a few bytes each.

Owns how answers are gathered one at a time and presented to numpy: one row for each answer, with a small number for
every name. Knows the configurations, stances and readings, but no file and no score.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...engine.pairs import Pair
from ..naming import row_names
from ..read_in_part import ReadInPart, RunReads
from .openness import CASES, CONFIGS, STANCES, case_of

TEMPLATES = range(1, 7)
# `recorded`: the stance that stands in the record, read as the run was told to. The others are read from the text.
AnswerReading = Literal["recorded", "paper", "careful"]

# What answering A means: an index into this is one into STANCES too; None: the record doesn't say.
SIDES = ("pro", "con", None)

_COLUMNS = ("issue", "template", "config", "trial", "refused", "cut", "shown", "side", "wording")
_UNKNOWN = len(STANCES)  # no text to read: the recorded stance stands in
_CODES = MappingProxyType(
    {
        (recorded, paper, careful, refused, cut): r | p << 2 | c << 4 | refused << 6 | cut << 7
        for r, recorded in enumerate(STANCES)
        for p, paper in enumerate((*STANCES, None))
        for c, careful in enumerate((*STANCES, None))
        for refused in (False, True)
        for cut in (False, True)
    }
)


@dataclass(frozen=True)
class ArgumentLists:
    """The argument lists of prompts: list `n` is `members[starts[n]:starts[n + 1]]`, in the order shown. A member is an
    index into `arguments`, which holds pairs of issue and argument id."""

    arguments: tuple[tuple[str, str], ...]
    starts: NDArray[np.int64]
    members: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"<ArgumentLists [Lists: {len(self.starts) - 1}, Arguments: {len(self.arguments)}]>"


@dataclass(frozen=True)
class AnswerRows:
    """One pair's answers, a row each, in the order they were read.

    `issue` is an index into `issues`, `config` one into `CONFIGS`, `shown` the number of a list in `lists`; `stances`
    holds, for each reading, an index into `STANCES`. `cut` marks the answers that ended at max_tokens. `side` is an
    index into `SIDES`: what answering A means as the stances are read; `wording`: what it means by the wording.
    `reads`: how many prompts the server read in part.
    """

    name: str
    pair: Pair
    issues: tuple[str, ...]
    issue: NDArray[np.int32]
    template: NDArray[np.int32]
    config: NDArray[np.int32]
    trial: NDArray[np.int32]
    stances: Mapping[AnswerReading, NDArray[np.uint8]]
    refused: NDArray[np.bool_]
    cut: NDArray[np.bool_]
    shown: NDArray[np.int32]
    side: NDArray[np.int32]
    wording: NDArray[np.int32]
    lists: ArgumentLists
    reads: ReadInPart | None = None

    def __repr__(self) -> str:
        return f"<AnswerRows {self.name} [Issues: {len(self.issues)}, Answers: {len(self)}]>"

    def __len__(self) -> int:
        return len(self.issue)

    @property
    def case(self) -> NDArray[np.int32]:
        """The index in `CASES` of each answer's case."""
        return _CASE_OF_PLACE[self.config]

    def at(self, rows: NDArray[np.bool_]) -> AnswerRows:
        """Returns the selected answers; `issues` is unchanged, even if some have no answer left."""
        columns = {name: getattr(self, name)[rows] for name in _COLUMNS}
        stances = {reading: stances[rows] for reading, stances in self.stances.items()}
        return replace(self, stances=stances, **columns)

    def disagreements(self) -> int:
        """Returns the number of answers that the two readings of their text understand differently."""
        return int((self.stances["paper"] != self.stances["careful"]).sum())

    def repeated(self) -> Iterator[str]:
        """Yields each id (issue/template/configuration/trial) that occurs more than once."""
        trials = int(self.trial.max(initial=0)) + 1
        cell = (self.issue.astype(np.int64) * (TEMPLATES[-1] + 1) + self.template) * len(CONFIGS) + self.config
        cells, first, times = np.unique(cell * trials + self.trial, return_index=True, return_counts=True)
        for row in first[times > 1] if len(cells) < len(self) else ():
            name = self.issues[self.issue[row]]
            yield f"{name}/{self.template[row]}/{CONFIGS[self.config[row]]}/{self.trial[row]}"


class AnswerTally:
    """The answers of all models, gathered one by one: constant work and thirteen bytes for each, names stored once.
    `wordings`: what answering A means by the wording, by issue and template, where the orientation differs from it."""

    def __init__(
        self, wordings: Mapping[tuple[str, int], str] = MappingProxyType({}), reads: RunReads | None = None
    ) -> None:
        self.reads = reads or RunReads()
        self._wordings = wordings
        self._columns: dict[Pair, _AnswerColumns] = {}
        self._places: dict[tuple[str, int, str, str | None], int] = {}
        # All arguments, each one's number by issue and id, and each list's by its arguments' numbers.
        self._arguments: list[tuple[str, str]] = []
        self._numbers: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._lists: dict[tuple[int, ...], int] = {}
        # What `models` returned last, with the number of its answers.
        self._made: tuple[int, list[AnswerRows]] = (0, [])

    def __repr__(self) -> str:
        answers = sum(len(columns.place) for columns in self._columns.values())
        models = len({pair.model for pair in self._columns})
        issues = len({place[0] for place in self._places})
        return f"<AnswerTally [Models: {models}, Issues: {issues}, Answers: {answers}]>"

    def add(
        self,
        pair: Pair,
        issue: str,
        template: int,
        config: str,
        trial: int,
        stances: tuple[str, str | None, str | None],
        refused: bool = False,
        arguments: tuple[str, ...] = (),
        cut: bool = False,
        orientation: str | None = None,
    ) -> None:
        """Adds one answer, with its stance as recorded, by the paper's reading and by the careful one (None: no text to
        read), and the side that A means in all three (None: not known).

        Takes plain values and no struct, since it is called for each of a million records.
        """
        places = self._places
        place = places.setdefault((issue, template, config, orientation), len(places))
        code = _CODES[*stances, refused, cut]
        if (columns := self._columns.get(pair)) is None:
            columns = self._columns[pair] = _AnswerColumns()
        numbers, lists = self._numbers[issue], self._lists
        try:
            members = tuple(map(numbers.__getitem__, arguments))
        except KeyError:
            members = self._numbered(issue, arguments)
        list_number = lists.setdefault(members, len(lists))
        columns.place.append(place)
        columns.trial.append(trial)
        columns.code.append(code)
        columns.shown.append(list_number)

    def models(self, pairs: Iterable[Pair] = ()) -> list[AnswerRows]:
        """Returns every pair's answers, in order of name; `pairs` as in `names`."""
        count, names = sum(len(columns.place) for columns in self._columns.values()), self.names(pairs)
        if count != self._made[0]:
            places, lists = self._place_table(), self._argument_lists()
            made = [self._answers(names[pair], pair, columns, places, lists) for pair, columns in self._columns.items()]
            self._made = count, made
        return sorted((replace(rows, name=names[rows.pair]) for rows in self._made[1]), key=lambda rows: rows.name)

    def names(self, pairs: Iterable[Pair] = ()) -> dict[Pair, str]:
        """Returns each pair's name in scores. `pairs` are further ones that may have no answer yet."""
        return row_names((*self._columns, *pairs))

    def _numbered(self, issue: str, arguments: tuple[str, ...]) -> tuple[int, ...]:
        """Returns the numbers of arguments, of which some are new."""
        numbers = self._numbers[issue]
        for argument in arguments:
            if argument not in numbers:
                numbers[argument] = len(self._arguments)
                self._arguments.append((issue, argument))
        return tuple([numbers[argument] for argument in arguments])

    def _place_table(self) -> NDArray[np.int32]:
        """Returns a row for each place: its issue (an index into the sorted issues), template, configuration, and what
        A means as its stances are read and by its wording."""
        names = {issue: at for at, issue in enumerate(sorted({issue for issue, *_ in self._places}))}
        rows = []
        for issue, template, config, side in self._places:
            wording = None if side is None else self._wordings.get((issue, template), side)
            rows.append((names[issue], template, CONFIGS.index(config), SIDES.index(side), SIDES.index(wording)))
        return np.array(rows, dtype=np.int32).reshape(-1, 5)

    def _argument_lists(self) -> ArgumentLists:
        starts = np.cumsum([0, *map(len, self._lists)], dtype=np.int64)
        members = np.fromiter(chain.from_iterable(self._lists), dtype=np.int32)
        return ArgumentLists(tuple(self._arguments), starts, members)

    def _answers(
        self,
        name: str,
        pair: Pair,
        columns: _AnswerColumns,
        places: NDArray[np.int32],
        lists: ArgumentLists,
    ) -> AnswerRows:
        issue, template, config, side, wording = places[np.array(columns.place, dtype=np.int32)].T
        every = sorted({issue for issue, *_ in self._places})
        issue_indexes, issue = np.unique(issue, return_inverse=True)
        code = np.array(columns.code, dtype=np.uint8)
        recorded = code & 3
        stances = {"recorded": recorded}
        for reading, shift in (("paper", 2), ("careful", 4)):
            read = code >> shift & 3
            stances[reading] = np.where(read == _UNKNOWN, recorded, read).astype(np.uint8)
        return AnswerRows(
            name=name,
            pair=pair,
            issues=tuple(every[at] for at in issue_indexes),
            issue=issue.astype(np.int32),
            template=np.ascontiguousarray(template),
            config=np.ascontiguousarray(config),
            trial=np.array(columns.trial, dtype=np.int32),
            stances=stances,  # type: ignore[arg-type]
            refused=(code >> 6 & 1).astype(np.bool_),
            cut=(code >> 7).astype(np.bool_),
            shown=np.array(columns.shown, dtype=np.int32),
            side=np.ascontiguousarray(side),
            wording=np.ascontiguousarray(wording),
            lists=lists,
            reads=self.reads.of(pair),
        )


class _AnswerColumns:
    def __init__(self) -> None:
        self.place: array[int] = array("i")
        self.trial: array[int] = array("I")
        self.code: array[int] = array("B")
        self.shown: array[int] = array("i")


def without_issues(answers: AnswerRows, left_out: Iterable[str]) -> AnswerRows:
    """Returns the answers on all issues but those in `left_out`."""
    gone = set(left_out).intersection(answers.issues)
    if not gone:
        return answers
    kept = tuple(issue for issue in answers.issues if issue not in gone)
    moved = np.array([kept.index(issue) if issue in kept else -1 for issue in answers.issues], dtype=np.int32)
    issue = moved[answers.issue]
    rows = issue >= 0
    return replace(answers.at(rows), issues=kept, issue=issue[rows])


# Pro and con exchanged, in indexes into STANCES and into SIDES.
EXCHANGED = np.array([1, 0, 2], dtype=np.uint8)
_CASE_OF_PLACE = np.array([CASES.index(case_of(config) or "") for config in CONFIGS], dtype=np.int32)
