"""The tables of agreement: of people with readings and with each other, of judges with each other, for pages, files
and terminals.

Owns their columns and notes. Computes no figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from ....engine.pairs import Pair
from ....metrics.statistics.agreement import Agreement
from ....metrics.statistics.stratified_agreement import StratifiedAgreement
from ....report.table import MODEL, Cell, Column, Kind, Table
from .judging.panel import ALL_MODELS, JudgeBias, JudgePair, Panel, PanelAgreement
from .labelling.comparison import FEW, FEW_LABELS, AgreementFigures, LabelComparison, note_on

Row = tuple[Cell, ...]
_Reading = TypeVar("_Reading")


def _table(
    runs: Mapping[str, _Reading],
    name: str,
    title: str,
    note: str,
    columns: Sequence[Column],
    rows_of: Callable[[_Reading], Iterable[Row]],
    *,
    is_long: bool = False,
) -> Table:
    """Returns a table of all runs' rows, with a column for the run if runs have names."""
    rows = tuple((run, *row) for run, reading in runs.items() for row in rows_of(reading))
    if any(runs):
        return Table(name, title, note, (Column("run", "Run"), *columns), rows, is_long)
    return Table(name, title, note, tuple(columns), tuple(row[1:] for row in rows), is_long)


def _with_interval(name: str, title: str, kind: Kind) -> tuple[Column, Column, Column]:
    """Returns the columns of a figure and of the ends of its interval."""
    return Column(name, title, kind), Column(f"{name}_low", "From", kind), Column(f"{name}_high", "To", kind)


def _agreed(agreement: Agreement | StratifiedAgreement) -> Row:
    """Returns the cells of a share and of kappa, each with its interval; None where there is none."""
    share, kappa = agreement.share_interval or (None, None), agreement.kappa_interval or (None, None)
    return agreement.share, *share, agreement.kappa, *kappa


_AGREEMENT = (*_with_interval("share", "Agree", "share"), *_with_interval("kappa", "Kappa", "correlation"))
_KAPPA_INTERVAL = (
    "“From” and “To” are the ends of a 95% interval: the exact one, put on kappa’s scale for kappa. It "
    "assumes independent answers. "
)

# People

_RATER, _READING = Column("rater", "Rater"), Column("reading", "Compared with")
_NOTE = Column("note", "Note")
_FIGURES = (
    Column("labelled", "Labelled", "count"),
    *_AGREEMENT,
    Column("answers", "Answers of the run", "count"),
    Column("answers_left_out", "Of these left out", "count"),
    *_with_interval("run_share", "Agree, in the run", "share"),
    *_with_interval("run_kappa", "Kappa, in the run", "correlation"),
)
_OF_LABEL = (
    Column("label", "Label"),
    Column("rater_labels", "The person's", "count"),
    *_with_interval("reading_too", "Reading says so too", "share"),
    Column("reading_labels", "The reading's", "count"),
    *_with_interval("rater_too", "Person says so too", "share"),
    *_with_interval("kappa", "Kappa", "correlation"),
)
_CERTAINTY = (
    Column("certainty", "Person's certainty", "rate"),
    Column("labelled", "Labelled", "count"),
    Column("confidence", "Judge's mean confidence", "rate"),
)
_WEIGHTS = (
    "The sample of labelled answers is even over labels, so it has more rare labels than the run. “Agree” and “Kappa” "
    "count the labelled answers as they are; the columns “in the run” weight each by the number of answers that it "
    "stands for: those of its model, temperature and label. Answers of a label and model without any labelled answer "
    "are left out."
)
_INTERVALS = f"{_KAPPA_INTERVAL}With fewer than {FEW_LABELS} labelled answers the note says “{FEW}”."


def label_tables(prefix: str, runs: Mapping[str, LabelComparison]) -> list[Table]:
    """Returns the tables of people's labels in some runs, by the runs' names; a single run has none."""
    return [
        _table(
            runs,
            f"{prefix}-agreement",
            "People and readings",
            f"How often a person's label is that of the judge or of another reading. {_WEIGHTS} {_INTERVALS}",
            (_RATER, _READING, MODEL, *_FIGURES, Column("uncovered", "Not covered", "count"), _NOTE),
            _readings,
        ),
        _table(
            runs,
            f"{prefix}-by-label",
            "Agreement by label",
            "Of the answers that the person gives a label, the share that the reading gives it too, and the reverse; "
            "kappa is that of this label against all others. All shares and kappas are in the run: weighted by the "
            f"number of answers that each labelled one stands for. {_INTERVALS}",
            (_RATER, _READING, MODEL, *_OF_LABEL, _NOTE),
            _labels,
        ),
        _table(
            runs,
            f"{prefix}-raters",
            "People among themselves",
            f"How often two people give one answer the same label. {_WEIGHTS} {_INTERVALS}",
            (Column("first", "Rater"), Column("second", "And"), *_FIGURES, _NOTE),
            lambda compared: (
                (pair.first, pair.second, *_figures(pair.figures), note_on(pair.figures.labelled.count))
                for pair in compared.pairs
            ),
        ),
        _table(
            runs,
            f"{prefix}-certainty",
            "Certainty of people and confidence of the judge",
            "The judge's mean confidence in its stance, by how certain the person was. Of the labelled answers as they "
            "are; no interval is given.",
            (_RATER, *_CERTAINTY, _NOTE),
            lambda compared: (
                (rater, *row, note_on(row.labelled))
                for rater, comparison in compared.raters.items()
                for row in comparison.certainties
            ),
        ),
    ]


def _every(compared: LabelComparison) -> Iterator[tuple[str, str, str, AgreementFigures, int | None]]:
    """Yields rater, reading, model and figures; for all models together also the answers that the reading lacks."""
    for rater, labels in compared.raters.items():
        for reading, of in labels.readings.items():
            yield rater, reading, ALL_MODELS, of.whole, of.uncovered
            if len(of.models) > 1:
                for model, figures in of.models.items():
                    yield rater, reading, model, figures, None


def _readings(compared: LabelComparison) -> Iterator[Row]:
    for rater, reading, model, figures, uncovered in _every(compared):
        yield rater, reading, model, *_figures(figures), uncovered, note_on(figures.labelled.count)


def _labels(compared: LabelComparison) -> Iterator[Row]:
    for rater, reading, model, figures, _ in _every(compared):
        for label, of in figures.labels.items():
            sides = (
                cell
                for side in (of.first, of.second)
                for cell in (side.count, side.share, *(side.interval or (None, None)))
            )
            note = note_on(min(of.first.count, of.second.count))
            yield rater, reading, model, label, *sides, *_agreed(of.whole)[3:], note


def _figures(figures: AgreementFigures) -> Row:
    plain, run = figures.labelled, figures.in_run
    return (
        plain.count,
        *_agreed(plain),
        run.population,
        run.population - run.covered,
        *_agreed(run),
    )


# Judges

_ALPHA = (
    "Krippendorff’s alpha of all judges: 1 if they always agree, 0 if as often as by chance, below 0 if less often. It "
    "is over the answers with two verdicts or more (“Of these compared”), and has no interval here. "
)
_VOTES = (
    "“Majority” counts the compared answers with a label that more judges give than any other, “Ties” the others; "
    "the run’s own judge has one vote. "
)
_UNREAD = "A reply that could not be read is no verdict."
_LABEL_PAIRS = f"“Agree” is the share to which both give the same label. {_KAPPA_INTERVAL}"
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
_ANSWERS = Column("answers", "Answers", "count")
_ALL_JUDGES = (
    MODEL,
    _ANSWERS,
    Column("compared", "Of these compared", "count"),
    Column("by_all", "With all verdicts", "count"),
    Column("alpha", "Alpha", "correlation"),
    Column("majority", "Majority", "count"),
    Column("ties", "Ties", "count"),
    Column("note", "Note"),
)
_PAIR = (Column("first", "Judge"), Column("second", "And"), _ANSWERS)
_DIFFERENCE = (Column("difference", "Mean difference", "amount"),)
_BIAS = (Column("judge", "Judge"), Column("label", "Label"), _ANSWERS)
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
    MODEL,
    Column("score", "Score"),
    Column("judge", "Judge"),
    Column("value", "Value", "amount"),
    Column("low", "From", "amount"),
    Column("high", "To", "amount"),
    Column("scored", "Scored", "count"),
    _ANSWERS,
)


def judge_tables(prefix: str, runs: Mapping[str, Panel]) -> list[Table]:
    """Returns the tables of the judges of some runs, by the runs' names; a single run has none."""
    kinds = [bool(panel.labels) for panel in runs.values() if len(panel.judges) > 1]
    # Runs of one benchmark may differ: some tasks have grades with names, some numbers on a scale.
    by_label, by_grade = True in kinds, False in kinds
    return [
        _table(
            runs,
            f"{prefix}-agreement",
            "Agreement of the judges",
            f"{_ALPHA}{_VOTES if by_label else ''}{_UNREAD}",
            _ALL_JUDGES,
            lambda panel: (_alpha(agreement, panel) for agreement in panel.agreement),
        ),
        _table(
            runs,
            f"{prefix}-pairs",
            "Each two judges",
            "Two judges each, over the answers with a verdict of both (“Answers”). "
            f"{_LABEL_PAIRS if by_label else ''}{_GRADE_PAIRS if by_grade else ''}{_UNREAD}",
            (*_PAIR, *(_AGREEMENT if by_label else ()), *(_DIFFERENCE if by_grade else ())),
            lambda panel: (_pair(pair, by_label, by_grade) for pair in panel.pairs),
        ),
        _table(
            runs,
            f"{prefix}-bias",
            "Each judge’s bias",
            f"{_LABEL_BIAS if by_label else ''}{_GRADE_BIAS if by_grade else ''}Over the answers with a verdict of "
            f"every judge (“Answers”); no interval is given.",
            (*_BIAS, *(_LABEL_SHARES if by_label else ()), *(_MEAN_GRADES if by_grade else ())),
            lambda panel: (_bias(bias, panel, by_label, by_grade) for bias in panel.biases),
        ),
        _table(
            runs,
            f"{prefix}-scores",
            "Scores under each judge",
            f"{_SCORES}{_MAJORITY_OF_LABELS if by_label else ''}{' ' if by_label and by_grade else ''}"
            f"{_MAJORITY_OF_GRADES if by_grade else ''}",
            _SCORE,
            lambda panel: _scores(panel) if len(panel.judges) > 1 else (),
            is_long=True,
        ),
    ]


def _alpha(agreement: PanelAgreement, panel: Panel) -> Row:
    votes = (agreement.majority, agreement.ties) if panel.labels else (None, None)
    alpha = agreement.alpha
    return agreement.model, agreement.answers, alpha.units, agreement.by_all, alpha.value, *votes, alpha.note


def _pair(pair: JudgePair, by_label: bool, by_grade: bool) -> Row:
    named = (None,) * len(_AGREEMENT) if pair.labels is None else _agreed(pair.labels)
    graded = (pair.difference,) if by_grade else ()
    return pair.first, pair.second, pair.answers, *(named if by_label else ()), *graded


def _bias(bias: JudgeBias, panel: Panel, by_label: bool, by_grade: bool) -> Row:
    nothing: Row = (None,) * 3
    named = (bias.own, bias.others, 100 * bias.bias) if panel.labels else nothing
    graded = nothing if panel.labels else (bias.own, bias.others, bias.bias)
    label = bias.label or None
    return bias.judge, label, bias.answers, *(named if by_label else ()), *(graded if by_grade else ())


def _scores(panel: Panel) -> Iterator[Row]:
    """Yields the rows of each model and score, one for each judge, the majority last; none if no answer was judged by
    all."""
    if not panel.scores_of:
        return
    answers: dict[Pair, int] = {}
    for answer in panel.answers:
        pair = answer.key.pair
        answers[pair] = answers.get(pair, 0) + (len(answer.verdicts) == len(panel.judges))
    for pair, name, scores in panel.score_rows():
        for judge, score in scores.items():
            cells: Row = (None,) * 4 if score is None else (score.value, score.low, score.high, score.n)
            yield str(pair), name, judge, *cells, answers.get(pair, 0)


def judges_text(panel: Panel) -> str:
    """Returns the sentence that names the judges."""
    if len(panel.judges) < 2:
        return f"No judge but the run’s own, {panel.own}, has judged these answers: there is nothing to compare."
    others = ", ".join(panel.judges[1:])
    return f"The run’s own judge is {panel.own}. The same answers were judged anew by {others}."


def remarks_on(panel: Panel) -> Iterator[str]:
    """Yields what a reader of a panel's figures must know."""
    if panel.asked_again:
        yield f"{panel.again_text}."
    if len(panel.judges) < 2:
        return
    for replies in panel.replies:
        if replies.unread:
            yield f"{replies.unread_text}."
    if not panel.biases:
        yield "No answer has a verdict of every judge: there is no bias to show."
    if not panel.scores_of:
        yield "No answer was judged by all judges: scores under them can’t be compared."
