"""The section of a report on the judges of kept answers, and its tables: for every benchmark whose answers are judged.

Owns their columns and words. Computes no figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ....engine.runs.pairs import Pair
from ....report.escaping import in_html
from ....report.sections import PageContents, Section, remarks_html, table_section
from ....report.table import Cell, Column, Table
from ..judging.panel import JudgeScore, Panel
from ..judging.panel_figures import JudgeBias, JudgePair, PanelAgreement, PanelFigures, figures_of
from ..judging.panel_text import again_text, unread_texts

_ALPHA = (
    "Krippendorff’s alpha of all judges: 1 if they always agree, 0 if as often as by chance, below 0 if less often. It "
    "is over the answers with two verdicts or more (“Of these compared”), and has no interval here. "
)
_VOTES = (
    "“Majority” counts the compared answers with a label that more judges give than any other, “Ties” the others; "
    "the run’s own judge has one vote. "
)
_UNREAD = "A reply that could not be read is no verdict."
_LABEL_PAIRS = (
    "“Agree” is the share to which both give the same label. “From” and “To” are the ends of a 95% interval: the exact "
    "one, put on kappa’s scale for kappa. It takes answers as independent. "
)
_GRADE_PAIRS = "The mean difference is the first judge’s grade minus the second’s; it has no interval here. "
_LABEL_BIAS = (
    "A judge’s share of each label, minus the mean of the other judges’ shares, in percentage points: above 0, it "
    "gives the label more often than they do. "
)
_GRADE_BIAS = "A judge’s mean grade, minus the mean of the other judges’ mean grades: above 0, it grades higher. "
_SCORES = (
    "The scores under each judge, by the run’s own readings, over the answers that all judges were asked about "
    "(“Answers”), so that all are over the same ones. “Scored” is the number of conversations or items that a score is "
    "over; “From” and “To” are the ends of its 95% interval, where it has one. "
)
_MAJORITY_OF_LABELS = "Under “majority” an answer has the label with the most votes; in a tie it has no verdict."
_MAJORITY_OF_GRADES = "Under “majority” an answer has the mean of the judges’ grades."

_Rows = list[tuple[str, tuple[Cell, ...]]]


class JudgedRun(Struct, frozen=True):
    """The judges of one run folder's answers."""

    name: str
    """The folder's name; empty if the report has one run."""
    panel: Panel
    """Their verdicts and scores."""


class _Part(NamedTuple):
    """One run's panel with its figures."""

    name: str
    panel: Panel
    figures: PanelFigures


def with_panels(contents: PageContents, prefix: str, runs: Sequence[JudgedRun]) -> PageContents:
    """Returns a benchmark's part of the report with the section on the judges, before its last section. `prefix` is the
    beginning of names; `runs` are those that have judgements. Without any, the part stays as it is."""
    if not runs:
        return contents
    parts = [_Part(run.name, run.panel, figures_of(run.panel)) for run in runs]
    # An empty table is written too, in place of a file from a time when there were rows.
    tables = _tables(prefix, parts) if any(len(part.panel.judges) > 1 for part in parts) else []
    told = "".join(f"<p>{in_html(_named(part, _judges(part.panel)))}</p>" for part in parts)
    remarks = [_named(part, remark) for part in parts for remark in _remarks(part)]
    body = told + (remarks_html(remarks) if remarks else "") + "".join(map(table_section, tables))
    section = Section(f"{prefix}-judges", "Judges", body)
    *before, last = contents.sections
    return replace(contents, sections=(*before, section, last), tables=(*contents.tables, *tables))


def _judges(panel: Panel) -> str:
    if len(panel.judges) < 2:
        return f"No judge but the run’s own, {panel.own}, has judged these answers: there is nothing to compare."
    others = ", ".join(panel.judges[1:])
    return (
        f"The run’s own judge is {panel.own}. The same answers were judged anew by {others}. All scores outside this "
        f"section are those of {panel.own} alone."
    )


def _remarks(part: _Part) -> Iterator[str]:
    if again := again_text(part.panel):
        yield f"{again}."
    if len(part.panel.judges) < 2:
        return
    for unread in unread_texts(part.figures):
        yield f"{unread}."
    if not part.figures.biases:
        yield "No answer has a verdict of every judge: there is no bias to show."
    if not part.panel.scores_of:
        yield "No answer was judged by all judges: scores under them can’t be compared."


def _named(part: _Part, sentence: str) -> str:
    return f"{part.name}: {sentence}" if part.name else sentence


def _tables(prefix: str, parts: Sequence[_Part]) -> list[Table]:
    where = (Column("run", "Run"),) if any(part.name for part in parts) else ()
    kinds = [bool(part.panel.labels) for part in parts if len(part.panel.judges) > 1]
    # Runs of one benchmark may differ: some tasks have grades with names, some numbers on a scale.
    by_label, by_grade = True in kinds, False in kinds

    def table(name: str, title: str, note: str, columns: Sequence[Column], rows: _Rows, *, is_long: bool) -> Table:
        placed = tuple((*((run,) if where else ()), *row) for run, row in rows)
        return Table(f"{prefix}-judges-{name}", title, note, (*where, *columns), placed, is_long)

    return [
        table(
            "agreement",
            "Agreement of the judges",
            f"{_ALPHA}{_VOTES if by_label else ''}{_UNREAD}",
            _AGREEMENT,
            [(part.name, _agreement(each, part.panel)) for part in parts for each in part.figures.agreement],
            is_long=False,
        ),
        table(
            "pairs",
            "Each two judges",
            "Two judges each, over the answers with a verdict of both (“Answers”). "
            f"{_LABEL_PAIRS if by_label else ''}{_GRADE_PAIRS if by_grade else ''}{_UNREAD}",
            (*_PAIR, *(_LABELS_OF_PAIR if by_label else ()), *(_GRADES_OF_PAIR if by_grade else ())),
            [(part.name, _pair(each, by_label, by_grade)) for part in parts for each in part.figures.pairs],
            is_long=False,
        ),
        table(
            "bias",
            "Each judge’s bias",
            f"{_LABEL_BIAS if by_label else ''}{_GRADE_BIAS if by_grade else ''}Over the answers with a verdict of "
            f"every judge (“Answers”); no interval is given.",
            (*_BIAS, *(_LABEL_SHARES if by_label else ()), *(_MEAN_GRADES if by_grade else ())),
            [
                (part.name, _bias(each, part.panel, by_label, by_grade))
                for part in parts
                for each in part.figures.biases
            ],
            is_long=False,
        ),
        table(
            "scores",
            "Scores under each judge",
            f"{_SCORES}{_MAJORITY_OF_LABELS if by_label else ''}{' ' if by_label and by_grade else ''}"
            f"{_MAJORITY_OF_GRADES if by_grade else ''}",
            _SCORE,
            [(part.name, row) for part in parts if len(part.panel.judges) > 1 for row in _scores(part.panel)],
            is_long=True,
        ),
    ]


_AGREEMENT = (
    Column("model", "Model"),
    Column("answers", "Answers", "count"),
    Column("compared", "Of these compared", "count"),
    Column("by_all", "With all verdicts", "count"),
    Column("alpha", "Alpha", "correlation"),
    Column("majority", "Majority", "count"),
    Column("ties", "Ties", "count"),
    Column("note", "Note"),
)
_PAIR = (Column("first", "Judge"), Column("second", "And"), Column("answers", "Answers", "count"))
_LABELS_OF_PAIR = (
    Column("share", "Agree", "share"),
    Column("share_low", "From", "share"),
    Column("share_high", "To", "share"),
    Column("kappa", "Kappa", "correlation"),
    Column("kappa_low", "From", "correlation"),
    Column("kappa_high", "To", "correlation"),
)
_GRADES_OF_PAIR = (Column("difference", "Mean difference", "amount"),)
_BIAS = (Column("judge", "Judge"), Column("label", "Label"), Column("answers", "Answers", "count"))
_LABEL_SHARES = (
    Column("share", "Its share", "share"),
    Column("others_share", "The others’ mean share", "share"),
    Column("bias", "Bias", "points"),
)
_MEAN_GRADES = (
    Column("grade", "Its mean grade", "amount"),
    Column("others_grade", "The others’ mean grade", "amount"),
    Column("grade_bias", "Bias of grades", "amount"),
)
_SCORE = (
    Column("model", "Model"),
    Column("score", "Score"),
    Column("judge", "Judge"),
    Column("value", "Value", "amount"),
    Column("low", "From", "amount"),
    Column("high", "To", "amount"),
    Column("scored", "Scored", "count"),
    Column("answers", "Answers", "count"),
)


def _agreement(found: PanelAgreement, panel: Panel) -> tuple[Cell, ...]:
    votes = (found.majority, found.ties) if panel.labels else (None, None)
    alpha = found.alpha
    return found.model, found.answers, alpha.units, found.by_all, alpha.value, *votes, alpha.note


def _pair(found: JudgePair, by_label: bool, by_grade: bool) -> tuple[Cell, ...]:
    labels = found.labels
    named: tuple[Cell, ...] = (None,) * len(_LABELS_OF_PAIR)
    if labels is not None:
        named = (labels.share, *_ends(labels.share_interval), labels.kappa, *_ends(labels.kappa_interval))
    graded = (found.difference,) if by_grade else ()
    return found.first, found.second, found.answers, *(named if by_label else ()), *graded


def _bias(found: JudgeBias, panel: Panel, by_label: bool, by_grade: bool) -> tuple[Cell, ...]:
    nothing: tuple[Cell, ...] = (None,) * 3
    named = (found.own, found.others, 100 * found.bias) if panel.labels else nothing
    graded = nothing if panel.labels else (found.own, found.others, found.bias)
    label = found.label or None
    return found.judge, label, found.answers, *(named if by_label else ()), *(graded if by_grade else ())


def _scores(panel: Panel) -> Iterator[tuple[Cell, ...]]:
    """Yields the rows of each model and score, one for each judge, the majority last; none if no answer was judged by
    all."""
    if not panel.scores_of:
        return
    answers: dict[Pair, int] = {}
    for answer in panel.answers:
        pair = answer.key.pair
        answers[pair] = answers.get(pair, 0) + (len(answer.verdicts) == len(panel.judges))
    for pair in dict.fromkeys(pair for own in panel.scores.values() for pair in own):
        for name in panel.score_names:
            found = {judge: own.get(pair, {}).get(name) for judge, own in panel.scores.items()}
            if any(score is not None for score in found.values()):
                for judge, score in found.items():
                    yield str(pair), name, judge, *_score(score), answers.get(pair, 0)


def _score(found: JudgeScore | None) -> tuple[Cell, ...]:
    return (None,) * 4 if found is None else (found.value, found.low, found.high, found.n)


def _ends(interval: tuple[float, float] | None) -> tuple[float | None, float | None]:
    """Returns the ends of an interval; None for both where there is none."""
    return (None, None) if interval is None else interval
