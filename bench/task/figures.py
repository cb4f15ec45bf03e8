"""Figures over all answers of a model, as a task declares them: F1, AUROC, calibration error, pass@k, own functions.

Owns how a figure is declared, which scores and labels it reads, and its entry in `scores.json`; the formulas are in
`metrics/`. A function is run only where the task's own program is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from inspect import signature
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct

from ...engine.near_names import nearest
from ...metrics.statistics.intervals import Interval, Values, interval_entry
from ...metrics.task import figures as formulas
from ...metrics.task.trials import ModelAnswers, ReadingRules
from .rows import TaskError, shown
from .scorers import Scorer, error_text, number_of
from .source import source_of

FigureFunction: TypeAlias = Callable[[Sequence[Any]], Any]
_FUNCTION, _F1 = "function", "f1"
_RIGHT = 0.5
_UNDEFINED = "no figure: it is not defined for these answers"


class Answers(Struct, frozen=True):
    """One model's answers as figures read them.

    columns: their scores.
    rules: whether answers without a score are left out or count as 0.
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

    def both(self, score: str, right: str | None) -> tuple[Values, Any, formulas.Places]:
        """Returns a score, whether the answer is right, and its item, of all answers that have both."""
        scores, is_right = self.score(score), self.is_right(right)
        kept = ~(np.isnan(scores) | np.isnan(is_right))
        return scores[kept], is_right[kept] == 1, np.asarray(self.columns.item)[kept]


class Figure(Struct, frozen=True):
    """A figure over all answers of a model.

    name: of what makes it, or "function".
    options: those of its maker; of a function its name and fingerprint.
    formula: gives the figure with its interval; None if it is not defined for these answers.
    """

    name: str
    options: Mapping[str, Any]
    formula: Callable[[Answers], Interval | None]

    @property
    def needs_records(self) -> bool:
        return self.name in (_FUNCTION, _F1)

    def check(self, scorer: Any, trials: int) -> None:
        """Raises TaskError if the task's main scorer or trials don't allow this figure."""
        if self.name == _F1 and not (isinstance(scorer, Scorer) and scorer.has_labels):
            raise TaskError(
                "f1: expected a main scorer that reads one label in an answer: choice, match of the whole answer, or "
                "regex with an expected text"
            )
        if self.options.get("k", 0) > trials:
            raise TaskError(f"pass_at({self.options['k']}): expected at least as many trials, got {trials}")

    def describe(self) -> dict[str, Any]:
        """Returns what decides the figure, for the manifest."""
        return {"figure": self.name, **self.options}


AnyFigure: TypeAlias = Figure | FigureFunction


def f1(positive: str | None = None) -> Figure:
    """Returns the figure F1: the mean over the labels (macro), or that of the label `positive` (binary).

    The labels are those of the main scorer: what `choice` reads, the whole answer of `match`, what `regex` finds. An
    answer without a score is left out, or counts against its true label where answers without a score count as 0.
    """
    return Figure(_F1, {"positive": positive}, lambda answers: _f1(answers, positive))


def auroc(score: str, right: str | None = None) -> Figure:
    """Returns the figure AUROC: how often a right answer has a higher score than a wrong one, ties counting half.

    score: the name of the score that should tell right from wrong, such as a confidence.
    right: the name of the score that is at least 0.5 where the answer is right; None: the main one.
    """
    options = {"score": score, "right": right}
    return Figure("auroc", options, lambda answers: formulas.auroc(*answers.both(score, right)))


def calibration_error(confidence: str, right: str | None = None, bins: int = 10) -> Figure:
    """Returns the expected calibration error: the mean distance, over bins of equal width, between confidence and share
    of right answers. It has no interval.

    confidence: the name of a score from 0 to 1.
    right: the name of the score that is at least 0.5 where the answer is right; None: the main one.
    bins: how many bins.
    """
    if not isinstance(bins, int) or not 2 <= bins <= 1_000:
        raise TaskError(f"calibration_error: bins: expected a whole number from 2 to 1,000, got {shown(bins)}")

    def formula(answers: Answers) -> Interval | None:
        values, is_right, item = answers.both(confidence, right)
        if len(values) and not 0 <= values.min() <= values.max() <= 1:
            raise TaskError(f"{confidence} is not from 0 to 1 everywhere")
        return formulas.calibration_error(values, is_right, item, bins)

    return Figure("calibration_error", {"confidence": confidence, "right": right, "bins": bins}, formula)


def pass_at(k: int, right: str | None = None) -> Figure:
    """Returns the figure pass@k: the probability that one of k trials is right, estimated from all trials of a row; of
    a prompt with variants from the trials in each, of which it is the mean.

    right: the name of the score that is at least 0.5 where the answer is right; None: the main one.
    """
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise TaskError(f"pass_at: expected a whole number from 1, got {shown(k)}")

    def formula(answers: Answers) -> Interval | None:
        is_right, item = answers.is_right(right), np.asarray(answers.columns.item)
        kept, variants = ~np.isnan(is_right), len(answers.columns.variants)
        cell = item * variants + np.asarray(answers.columns.variant) if variants else item
        return formulas.pass_at(k, is_right[kept] == 1, item[kept], cell[kept])

    return Figure("pass_at", {"k": k, "right": right}, formula)


def _f1(answers: Answers, positive: str | None) -> Interval | None:
    scorer, names, columns = answers.scorer, dict[Any, int](), []
    for item, record in zip(answers.columns.item, answers.records, strict=True):
        if record.score is None and answers.rules.unreadable != "zero":
            continue
        wanted = scorer.wanted(record.as_row())
        right = wanted if isinstance(wanted, str) else wanted[0]
        read = scorer.label(record.reply().text if record.read is None else record.read)
        # The answer that counts as right gives the true label, in whatever words.
        predicted = right if record.score == 1 else read if record.score is not None else None
        columns.append((predicted, names.setdefault(right, len(names)), item))
    chosen = None if positive is None else names.get(scorer.label(positive))
    if chosen is None and positive is not None:
        raise TaskError(f"no row has the label {shown(positive)}: they are {', '.join(sorted(names))}")
    places = [(names.get(predicted, formulas.NO_LABEL), truth, item) for predicted, truth, item in columns]
    read, truth, items = np.array(places, dtype=np.int64).reshape(-1, 3).T
    return formulas.f1(read, truth, items, len(names), chosen)


def _own(described: Mapping[str, Any], function: FigureFunction | None = None) -> Figure:
    """Returns a figure by a user's function of all records; None: it is in the task's own program."""

    def formula(answers: Answers) -> Interval:
        if function is None:
            raise TaskError("its function is in the task's own file: `millstream score DIR --task FILE` computes it")
        try:
            number = number_of(function(answers.records))
        except (Exception, SystemExit) as error:  # a user's function: the scores are printed all the same
            raise TaskError(f"its function raised {error_text(error)}") from error
        if isinstance(number, str):
            raise TaskError(f"its function {number}")
        note = "no interval: none was simulated for a function"
        return Interval(number, None, None, len(answers.columns.items), note=note, of=formulas.OF)

    return Figure(_FUNCTION, described, formula)


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
        made[name] = figure if isinstance(figure, Figure) else _own(source_of(figure), figure)
    return made


def figures_from(described: Mapping[str, Mapping[str, Any]]) -> dict[str, Figure]:
    """Returns the figures that a manifest describes; a function is missing."""
    made: dict[str, Figure] = {}
    for name, table in described.items():
        options = {key: value for key, value in table.items() if key != "figure"}
        maker = _MAKERS.get(table.get("figure", ""))
        if table.get("figure") == _FUNCTION:
            made[name] = _own(options)
        elif maker is None or not options.keys() <= signature(maker).parameters.keys():
            raise TaskError(f"figures: {name}: expected one of {', '.join(_MAKERS)} with its options, got {table}")
        else:
            made[name] = maker(**options)
    return made


def figure_entries(figures: Mapping[str, Figure], answers: Answers) -> dict[str, Any]:
    """Returns a model's figures for `scores.json`, by name."""
    entries = {}
    for name, figure in figures.items():
        value, why = None, _UNDEFINED
        try:
            if answers.columns.is_worthless():
                raise TaskError("half of the answers have no score, or more")
            figure.check(answers.scorer, answers.columns.trials)
            value = figure.formula(answers)
        except TaskError as error:
            why = f"no figure: {error}"
        entry = {"value": None if value is None else value.mean, **interval_entry(value, formulas.OF)}
        entries[name] = entry | {formulas.OF: 0 if value is None else value.clusters}
        if value is None:
            entries[name]["ci95_note"] = why
    return entries


def functions_in(specification: Mapping[str, Any] | None) -> list[str]:
    """Returns the names of a run's figures that are functions."""
    figures = (specification or {}).get("figures", {})
    return [name for name, each in figures.items() if each["figure"] == _FUNCTION]


def with_kept(part: Mapping[str, Any], kept: Any, task: str, names: Sequence[str]) -> None:
    """Puts the figures of these names, which are functions and not run here, into a task's part of `scores.json` as the
    run's own program wrote them: `kept` is the file."""
    for model, entry in part["models"].items():
        for name in names:
            with suppress(KeyError, TypeError, AttributeError):  # a file that lacks it, or is another's
                before = kept[task]["models"][model]["figures"][name]
                if before.keys() == entry["figures"][name].keys():
                    entry["figures"][name] = before


def uncomputed(part: Mapping[str, Any]) -> Iterator[str]:
    """Yields a sentence for each figure that could not be computed for a model that has scores."""
    for model, entry in part["models"].items():
        for name, figure in entry.get("figures", {}).items():
            if figure["value"] is None and figure["ci95_note"] != _UNDEFINED and entry["mean"] is not None:
                yield f"{model}: {name}: {figure['ci95_note']}"
