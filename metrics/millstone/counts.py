"""Counts: from answers, or from a published table, to the array of counts of each model.

Owns the dimensions that are counted: issues, cases, stances, and (from answers) templates. Reads text and
values, never a file; knows no score.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ..read_in_part import ReadInPart
from .answers import EXCHANGED, SIDES, TEMPLATES, AnswerReading, AnswerRows
from .openness import CASES, STANCES, Counts, Flags

_CELLS = len(CASES) * len(STANCES)
# The apostrophe that a report's tables put before texts that a spreadsheet would read as formulas.
_PROTECTION = re.compile(r"^'(?=[=+\-@\t\n＝＋－＠])")
_COLUMNS = ("issue", "issue_stance", "count", "case", "model")
# The authors' names for the cases, and ours.
_CASE_NAMES = MappingProxyType(
    dict(zip(("neither", "pro", "con", "75pro", "75con", "all"), CASES, strict=True)) | {case: case for case in CASES}
)


@dataclass(frozen=True)
class ModelCounts:
    """One model's numbers of answers: `pooled[issue, case, stance]`, issues in the order of `issues`.

    `of_templates[issue, template, case, stance]` are the same before pooling. `refused[issue, case]` are the refusals
    among the Other, `cut[issue, case]` the answers that ended at max_tokens, `cut_or_other[issue, case]` the answers
    that are either or both. `by_template[issue, template, stance]` are the baseline's answers and `sides[issue,
    template]` what A means there (an index into SIDES; 2 without an answer), both by the wordings; templates are at
    their numbers. All are None if only totals were published. `disagreements` counts answers that the two
    stance readings read differently, None if not compared. `scored` marks the issues that have a score in spite of
    silence, None for all.
    """

    model: str
    issues: tuple[str, ...]
    pooled: Counts
    of_templates: Counts | None = None
    refused: Counts | None = None
    disagreements: int | None = None
    cut: Counts | None = None
    cut_or_other: Counts | None = None
    scored: Flags | None = None
    by_template: Counts | None = None
    sides: Counts | None = None
    reads: ReadInPart | None = None

    def __repr__(self) -> str:
        return f"<ModelCounts {self.model} [Issues: {len(self.issues)}, Answers: {int(self.pooled.sum())}]>"


class CountRow(NamedTuple):
    """One line of a published table."""

    model: str
    issue: str
    case: str
    stance: str
    answers: int


def rows_of_csv(text: str) -> list[CountRow]:
    """Returns the lines of a table with the columns issue, issue_stance, count, case, model, in any order. Raises
    ValueError, which names the line."""
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    missing = [column for column in _COLUMNS if column not in (reader.fieldnames or ())]
    if missing:
        raise ValueError(f"counts lack the column {', '.join(missing)}: the first line must name {', '.join(_COLUMNS)}")
    rows = []
    for line in reader:
        here = f"counts, line {reader.line_num}"
        if any(line[column] is None for column in _COLUMNS):
            raise ValueError(f"{here}: too few values; each line needs {', '.join(_COLUMNS)}")
        case = _CASE_NAMES.get(line["case"])
        if case is None:
            raise ValueError(f"{here}: case {line['case']!r} is unknown; allowed are {', '.join(_CASE_NAMES)}")
        if line["issue_stance"] not in STANCES:
            raise ValueError(f"{here}: stance {line['issue_stance']!r} is unknown; allowed are {', '.join(STANCES)}")
        # isdecimal alone accepts digits of other scripts, which int() would read silently.
        if not (line["count"].isascii() and line["count"].isdecimal()):
            raise ValueError(f"{here}: count {line['count']!r} must be a whole number >= 0")
        model, issue = (_PROTECTION.sub("", line[column]) for column in ("model", "issue"))
        rows.append(CountRow(model, issue, case, line["issue_stance"], int(line["count"])))
    return rows


def counts_of_rows(rows: Iterable[CountRow]) -> list[ModelCounts]:
    """Returns a table's counts by model, in order of name. A missing cell is 0; a repeated one raises ValueError."""
    cells: dict[str, dict[str, dict[int, int]]] = {}
    for row in rows:
        of_issue = cells.setdefault(row.model, {}).setdefault(row.issue, {})
        at = CASES.index(row.case) * len(STANCES) + STANCES.index(row.stance)
        if at in of_issue:
            raise ValueError(
                f"counts of {row.model}, {row.issue}, {row.case}, {row.stance} stand there twice "
                f"({of_issue[at]} and {row.answers}): leave one line of the two out"
            )
        of_issue[at] = row.answers
    models = []
    for model, of_model in sorted(cells.items()):
        issues = tuple(sorted(of_model))
        pooled = [[of_model[issue].get(at, 0) for at in range(_CELLS)] for issue in issues]
        shape = (len(issues), len(CASES), len(STANCES))
        models.append(ModelCounts(model, issues, np.array(pooled, dtype=np.int64).reshape(shape)))
    return models


def only_issues(counts: ModelCounts, issues: Iterable[str]) -> ModelCounts:
    """Returns published counts, which have totals alone, on those of their issues that are among these."""
    wanted = set(issues)
    at = [place for place, issue in enumerate(counts.issues) if issue in wanted]
    return ModelCounts(counts.model, tuple(counts.issues[place] for place in at), counts.pooled[at])


def counts_of(answers: AnswerRows, reading: AnswerReading = "recorded") -> ModelCounts:
    """Returns a model's counts by one reading of stances."""
    templates, template = np.unique(answers.template, return_inverse=True)
    shape = (len(answers.issues), len(templates), len(CASES), len(STANCES))
    places = np.ravel_multi_index((answers.issue, template, answers.case, answers.stances[reading]), shape)
    of_templates = np.bincount(places, minlength=int(np.prod(shape))).reshape(shape)
    case = np.ravel_multi_index((answers.issue, answers.case), (shape[0], len(CASES)))

    def number(rows: Flags) -> Counts:
        numbers: Counts = np.bincount(case[rows], minlength=shape[0] * len(CASES)).reshape(shape[0], len(CASES))
        return numbers

    read = answers.stances[reading]
    is_other, is_baseline = read == STANCES.index("other"), answers.case == 0
    worded = np.where(answers.side == answers.wording, read, EXCHANGED[read])
    by_template = np.zeros((len(answers.issues), TEMPLATES[-1] + 1, len(STANCES)), dtype=np.int64)
    np.add.at(by_template, tuple(each[is_baseline] for each in (answers.issue, answers.template, worded)), 1)
    sides = np.full(by_template.shape[:2], SIDES.index(None))
    is_known = is_baseline & (answers.wording != SIDES.index(None))
    sides[answers.issue[is_known], answers.template[is_known]] = answers.wording[is_known]
    return ModelCounts(
        model=answers.name,
        issues=answers.issues,
        pooled=of_templates.sum(axis=1),
        of_templates=of_templates,
        refused=number(answers.refused),
        disagreements=answers.disagreements(),
        cut=number(answers.cut),
        cut_or_other=number(answers.cut | is_other),
        by_template=by_template,
        sides=sides,
        reads=answers.reads,
    )
