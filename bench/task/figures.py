"""Figures over all answers of a model, as a task declares them: F1, AUROC, calibration error, pass@k, own functions.

Owns how a figure is declared and which scores and labels it reads; the formulas are in `metrics/`. A function is run
only where the task's own program is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, ClassVar, TypeAlias

import numpy as np
from msgspec import Struct, structs

from ...engine.near_names import nearest
from ...metrics.statistics.intervals import Interval, Values
from ...metrics.task import figures as formulas
from ...metrics.task.trials import ModelAnswers, ReadingRules
from .rows import TaskError, shown
from .scorers import Scorer, number_of, place_of
from .source import source_of

FigureFunction: TypeAlias = Callable[[Sequence[Any]], Any]
_RIGHT = 0.5


class Answers(Struct, frozen=True):
    """One model's answers as figures read them: `columns` of scores, and the answers' labels beside the true ones.

    main: the name of the main score.
    scorer: the scorer of the main score; None: not known.
    records: the answers; empty where no figure needs them.
    """

    columns: ModelAnswers
    rules: ReadingRules
    main: str
    scorer: Any
    records: Sequence[Any] = ()

    def score(self, name: str | None) -> Values:
        """Returns the scores of this name (None: the main ones), NaN where an answer has none. Raises TaskError if no
        answer has a score of this name."""
        if name in self.columns.parts:
            return self.columns.column(name)
        if name in (None, self.main):
            return self.columns.column()
        names = list(dict.fromkeys([self.main, *self.columns.parts]))
        raise TaskError(f"no score is called {shown(name)}{nearest(str(name), names)}: they are {', '.join(names)}")

    def is_right(self, name: str | None) -> Values:
        """Returns 1 for the answers whose score of this name is at least 0.5, 0 for others; NaN for one without a
        score, unless the readings count it as 0. Raises TaskError for a score that reaches above 1."""
        scores = self.score(name)
        # On a scale from 1 to 5, say, every answer would be right.
        if np.nanmax(scores, initial=0) > 1:
            raise TaskError(
                f"the score {name or self.main} reaches {np.nanmax(scores):g}, and from 0.5 an answer is right: name "
                "as `right` a score from 0 to 1"
            )
        if self.rules.unreadable == "zero":
            scores = np.nan_to_num(scores)
        return np.where(np.isnan(scores), np.nan, scores >= _RIGHT)

    @property
    def item(self) -> formulas.Places:
        return np.asarray(self.columns.item)


class Figure(Struct, frozen=True):
    """A figure over all answers of a model. `name`: that of the function that makes it."""

    name: ClassVar[str]

    def check(self, scorer: Any, trials: int) -> None:
        """Raises TaskError if the task's main scorer or trials don't allow this figure."""

    @abstractmethod
    def of(self, answers: Answers) -> Interval | None:
        """Returns the figure with its interval; None if it is not defined for these answers."""

    def describe(self) -> dict[str, Any]:
        """Returns what decides the figure, for the manifest."""
        return {"figure": self.name, **structs.asdict(self)}


class F1(Figure, frozen=True):
    """The mean F1 over the labels, or that of one label: see `f1`."""

    name: ClassVar[str] = "f1"
    positive: str | None = None

    def check(self, scorer: Any, trials: int) -> None:
        if not isinstance(scorer, Scorer) or not scorer.has_labels:
            raise TaskError(
                "f1: expected a main scorer that reads one label in an answer: choice, match of the whole answer, or "
                "regex with an expected text"
            )

    def of(self, answers: Answers) -> Interval | None:
        self.check(answers.scorer, answers.columns.trials)
        names: dict[str, int] = {}
        truth, predicted, items = [], [], []
        for item, record in zip(answers.columns.item, answers.records, strict=True):
            if record.score is None and answers.rules.unreadable != "zero":
                continue
            right, read = answers.scorer.labels(record.reply(), record.read, record.as_row())
            truth.append(names.setdefault(right, len(names)))
            # The answer that counts as right gives the true label, in whatever words.
            predicted.append(right if record.score == 1 else read if record.score is not None else None)
            items.append(item)
        places = [formulas.NO_LABEL if label is None else names.get(label, formulas.NO_LABEL) for label in predicted]
        positive = None
        if self.positive is not None:
            positive = names.get(answers.scorer.label(self.positive))
            if positive is None:
                raise TaskError(f"no row has the label {shown(self.positive)}: they are {', '.join(sorted(names))}")
        columns = np.array([places, truth, items], dtype=np.int64)
        return formulas.f1(columns[0], columns[1], columns[2], len(names), positive)


class Auroc(Figure, frozen=True):
    """How well a score tells right answers from wrong ones: see `auroc`."""

    name: ClassVar[str] = "auroc"
    score: str
    right: str | None = None

    def of(self, answers: Answers) -> Interval | None:
        return formulas.auroc(*_both(answers, self.score, self.right))


class CalibrationError(Figure, frozen=True):
    """How far stated confidences are from the shares of right answers: see `calibration_error`."""

    name: ClassVar[str] = "calibration_error"
    confidence: str
    right: str | None = None
    bins: int = 10

    def of(self, answers: Answers) -> Interval | None:
        confidence, is_right, item = _both(answers, self.confidence, self.right)
        if len(confidence) and not 0 <= confidence.min() <= confidence.max() <= 1:
            raise TaskError(f"{self.confidence} is not from 0 to 1 everywhere")
        return formulas.calibration_error(confidence, is_right, item, self.bins)


class PassAt(Figure, frozen=True):
    """The probability that one of k trials is right: see `pass_at`."""

    name: ClassVar[str] = "pass_at"
    k: int
    right: str | None = None

    def check(self, scorer: Any, trials: int) -> None:
        if self.k > trials:
            raise TaskError(f"pass_at({self.k}): expected at least as many trials, got {trials}")

    def of(self, answers: Answers) -> Interval | None:
        is_right = answers.is_right(self.right)
        kept = ~np.isnan(is_right)
        return formulas.pass_at(self.k, is_right[kept] == 1, answers.item[kept])


class OwnFigure(Figure, frozen=True):
    """A user's function of all records of a model. None: it is in the task's own program."""

    name: ClassVar[str] = "function"
    function: FigureFunction | None
    described: Mapping[str, Any] = {}
    note: ClassVar[str] = "no interval: none was simulated for a function"

    def of(self, answers: Answers) -> Interval | None:
        if self.function is None:
            raise TaskError("its function is in the task's own file: `millstream score DIR --task FILE` computes it")
        try:
            value = self.function(answers.records)
        except (Exception, SystemExit) as error:  # a user's function: the scores are printed all the same
            raise TaskError(f"its function raised {type(error).__name__}{place_of(error)}: {error}") from error
        number = number_of(value)
        if isinstance(number, str):
            raise TaskError(f"its function {number}")
        return Interval(number, None, None, len(answers.columns.items), note=self.note, of=formulas.OF)

    def describe(self) -> dict[str, Any]:
        return dict(self.described) if self.function is None else {"figure": self.name, **source_of(self.function)}

    @property
    def described_as(self) -> str:
        """The function's fingerprint, by which its figure in `scores.json` is known again."""
        return str(self.describe().get("sha256"))


AnyFigure: TypeAlias = Figure | FigureFunction


def f1(positive: str | None = None) -> F1:
    """Returns the figure F1: the mean over the labels (macro), or that of the label `positive` (binary).

    The labels are those of the main scorer: what `choice` reads, the whole answer of `match`, what `regex` finds. An
    answer without a score is left out, or counts against its true label where answers without a score count as 0.
    """
    return F1(positive)


def auroc(score: str, right: str | None = None) -> Auroc:
    """Returns the figure AUROC: how often a right answer has a higher score than a wrong one, ties counting half.

    score: the name of the score that should tell right from wrong, such as a confidence.
    right: the name of the score that is at least 0.5 where the answer is right; None: the main one.
    """
    return Auroc(score, right)


def calibration_error(confidence: str, right: str | None = None, bins: int = 10) -> CalibrationError:
    """Returns the expected calibration error: the mean distance, over bins of equal width, between confidence and share
    of right answers. It has no interval.

    confidence: the name of a score from 0 to 1.
    right: the name of the score that is at least 0.5 where the answer is right; None: the main one.
    bins: how many bins.
    """
    if not isinstance(bins, int) or not 2 <= bins <= 1_000:
        raise TaskError(f"calibration_error: bins: expected a whole number from 2 to 1,000, got {shown(bins)}")
    return CalibrationError(confidence, right, bins)


def pass_at(k: int, right: str | None = None) -> PassAt:
    """Returns the figure pass@k: the probability that one of k trials is right, estimated from all trials of a row.

    right: the name of the score that is at least 0.5 where the answer is right; None: the main one.
    """
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise TaskError(f"pass_at: expected a whole number from 1, got {shown(k)}")
    return PassAt(k, right)


_MAKERS: Mapping[str, Callable[..., Figure]] = {each.__name__: each for each in (f1, auroc, calibration_error, pass_at)}


def figures_of(named: Mapping[str, Any]) -> dict[str, Figure]:
    """Returns a task's figures by name. Raises TaskError for what is no figure and no function."""
    if not isinstance(named, Mapping):
        raise TaskError(f"figures: expected names with figures, as {{'f1': ms.f1()}}, got {shown(named)}")
    made: dict[str, Figure] = {}
    for name, figure in named.items():
        if not isinstance(name, str) or not name.strip():
            raise TaskError(f"figures: expected a text as name, got {shown(name)}")
        if not isinstance(figure, Figure) and not callable(figure):
            raise TaskError(f"figures: {name}: expected a figure, as ms.f1(), or a function, got {shown(figure)}")
        made[name] = figure if isinstance(figure, Figure) else OwnFigure(figure)
    return made


def figures_from(described: Mapping[str, Mapping[str, Any]]) -> dict[str, Figure]:
    """Returns the figures that a manifest describes; a function is missing."""
    made: dict[str, Figure] = {}
    for name, table in described.items():
        options = {key: value for key, value in table.items() if key != "figure"}
        maker = _MAKERS.get(table.get("figure", ""))
        if table.get("figure") == "function":
            made[name] = OwnFigure(None, table)
        elif maker is None or not options.keys() <= signature(maker).parameters.keys():
            raise TaskError(f"figures: {name}: expected one of {', '.join(_MAKERS)} with its options, got {table}")
        else:
            made[name] = maker(**options)
    return made


def _both(answers: Answers, score: str, right: str | None) -> tuple[Values, Any, formulas.Places]:
    """Returns a score, whether the answer is right, and its item, of all answers that have both."""
    scores, is_right = answers.score(score), answers.is_right(right)
    kept = ~(np.isnan(scores) | np.isnan(is_right))
    return scores[kept], is_right[kept] == 1, answers.item[kept]
