"""Chooses what the explorer shows: the most frequent answers of every model, issue and case, and sample prompts.

Owns which answers are chosen, and how many fit on a page. The choice depends on the run alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ....engine.folder_file import open_to_read
from ....metrics.millstone.answers import AnswerReading, AnswerRows
from ....metrics.millstone.counts import counts_of
from ....metrics.millstone.openness import CASES, CONFIGS
from ....report.escaping import visible
from ..grid import Grid
from ..texts import LONGEST, Excerpt, TextReader, Texts
from .explorer import Explorer, ExplorerCell, ExplorerModel, ShownAnswer
from .scripts import PROMPT_BUDGET, TRIAL, Scripts

# The levels of detail: answers shown of each cell, and the characters of each. The first level whose texts fit the
# budget is used.
LEVELS = ((5, LONGEST), (3, LONGEST), (2, 200), (1, 120), (1, 60))
# Characters before compression. Measured: a million of prose take about half a megabyte of a page.
TEXT_BUDGET = 4_000_000


class ModelSample(Struct, frozen=True):
    """One model's answers, and where their texts are found. `grid` holds every issue of the run's data set (None: its
    prompts can't be shown; `why` says why)."""

    answers: AnswerRows
    texts: Texts
    grid: Grid | None = None
    why: str = ""


class _EqualAnswers(Struct, frozen=True):
    """Groups of equal answers of a model, as columns: the cell, the rank in it (0: the most frequent), how many there
    are, and the row of the first."""

    cell: NDArray[np.int64]
    rank: NDArray[np.int64]
    times: NDArray[np.int64]
    row: NDArray[np.int64]


def explorer(
    models: Sequence[ModelSample],
    reading: AnswerReading = "recorded",
    text_budget: int = TEXT_BUDGET,
    prompt_budget: int = PROMPT_BUDGET,
) -> Explorer:
    """Returns the explorer's contents for all models of a report, cut until the texts fit into both budgets
    (characters)."""
    wanted = {issue for model in models for issue in model.answers.issues}
    scripts = Scripts([model.grid for model in models if model.grid is not None], wanted, prompt_budget)
    with ExitStack() as opened:
        readers: dict[Path, TextReader] = {}
        for path in dict.fromkeys(model.texts.path for model in models):
            readers[path] = TextReader(opened.enter_context(open_to_read(path)))
        for number, longest in LEVELS:
            pool = _AnswerTexts(longest)
            made = [_model(model, reading, number, pool, readers[model.texts.path], scripts) for model in models]
            if pool.size <= text_budget:
                break
    remarks = scripts.remarks()
    if (number, longest) != LEVELS[0]:
        remarks.append(f"To keep the page small, at most {number} answers are shown, each cut to {longest} characters.")
    return Explorer(
        tuple(sorted(wanted, key=lambda issue: (issue.casefold(), issue))),
        tuple(made),
        tuple(pool.texts),
        tuple(scripts.of_grids),
        tuple(remarks),
    )


class _AnswerTexts:
    """The texts of the explorer, each stored once and cut to `longest` characters."""

    def __init__(self, longest: int) -> None:
        self.texts: dict[str, int] = {}
        self.size = 0
        self._longest = longest

    def answer_of(self, stance: int, excerpt: Excerpt, times: int = 1) -> ShownAnswer:
        text, chars = excerpt.cut(self._longest)
        place = self.texts.get(text)
        if place is None:
            place = self.texts[text] = len(self.texts)
            self.size += len(text)
        return ShownAnswer(stance, place, chars, times)


def _model(
    model: ModelSample, reading: AnswerReading, number: int, pool: _AnswerTexts, reader: TextReader, scripts: Scripts
) -> ExplorerModel:
    answers, texts = model.answers, model.texts
    stances = answers.stances[reading]

    def answer_of(row: int, times: int = 1) -> ShownAnswer:
        return pool.answer_of(int(stances[row]), reader.excerpt(int(texts.marks[row]), int(texts.offsets[row])), times)

    groups = _groups(answers, stances, texts)
    cells = len(answers.issues) * len(CASES)
    different = np.bincount(groups.cell, minlength=cells)
    most: list[list[ShownAnswer]] = [[] for _ in range(cells)]
    for at in np.flatnonzero(groups.rank < number).tolist():
        most[groups.cell[at]].append(answer_of(int(groups.row[at]), int(groups.times[at])))
    rows = _sample_rows(answers)
    script, why = (None, model.why) if model.grid is None else (scripts.place_of(model.grid), "")
    if script is not None and any(
        scripts.names_others(script, prompt_id, _names(answers, row)) for prompt_id, row in rows.items()
    ):
        script, why = None, "the records name other arguments than this version of the program puts into its prompts"
    counts = counts_of(answers, reading)
    refused = np.zeros(counts.pooled.shape[:2]) if counts.refused is None else counts.refused
    by_issue = {}
    for at, issue in enumerate(answers.issues):
        of_issue = scripts.of(script, issue)
        by_issue[issue] = tuple(
            ExplorerCell(
                counts=tuple(counts.pooled[at, case].tolist()),
                refused=int(refused[at, case]),
                different=int(different[at * len(CASES) + case]),
                said=tuple(most[at * len(CASES) + case]),
                own=tuple(answer_of(rows[prompt.id]) if prompt.id in rows else None for prompt in of_issue[case]),
            )
            for case in range(len(CASES))
        )
    return ExplorerModel(answers.name, by_issue, script, why)


def _groups(answers: AnswerRows, stances: NDArray[np.uint8], texts: Texts) -> _EqualAnswers:
    cell = answers.issue.astype(np.int64) * len(CASES) + answers.case
    order = np.lexsort((stances, texts.marks, cell))
    columns = [column[order] for column in (cell, texts.marks, stances)]
    is_new = np.ones(len(order), dtype=np.bool_)
    is_new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    starts = np.flatnonzero(is_new)
    times = np.diff(np.append(starts, len(order)))
    # lexsort is stable, so the first row of a group is its earliest; marks differ between processes and decide nothing.
    row, of_cell = order[starts], cell[order[starts]]
    by_rank = np.lexsort((row, -times, of_cell))
    row, of_cell, times = row[by_rank], of_cell[by_rank], times[by_rank]
    first = np.searchsorted(of_cell, of_cell)
    return _EqualAnswers(of_cell, np.arange(len(of_cell)) - first, times, row)


def _sample_rows(answers: AnswerRows) -> dict[str, int]:
    """Returns the row of each answer to a sample prompt, by the prompt's id."""
    rows = {}
    for row in np.flatnonzero(answers.trial == TRIAL).tolist():
        issue, config = answers.issues[answers.issue[row]], CONFIGS[answers.config[row]]
        rows[visible(f"{issue}/{answers.template[row]}/{config}/{TRIAL}")] = row
    return rows


def _names(answers: AnswerRows, row: int) -> tuple[str, ...]:
    """Returns the ids of the arguments in the record of an answer."""
    lists, place = answers.lists, answers.shown[row]
    return tuple(lists.arguments[at][1] for at in lists.members[lists.starts[place] : lists.starts[place + 1]])
