"""Tables of single arguments: the data of figure 6, and the effect of the arguments' order.

Owns their columns and words. `arguments` computes effects, correlations and families.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....metrics.millstone.arguments import LastArgument
from ....report.interval_cells import interval_cells, interval_columns
from ....report.table import Cell, Column, Table
from .panel import SIDES, SurveyFigures
from .published import beside_published

_MODEL = Column("model", "Model")


def argument_tables(panel: SurveyFigures) -> Iterator[Table]:
    is_relative = panel.survey.readings.arguments == "change"
    yield from _correlations(panel, is_relative)
    yield _effects(panel, is_relative)
    yield _order(panel)


def _correlations(panel: SurveyFigures, is_relative: bool) -> Iterator[Table]:
    found, families, middle = panel.correlations, panel.families, panel.medians
    effect = "its pro share minus that of the same template's baseline" if is_relative else "the pro share"
    yield Table(
        "figure-6-correlations",
        "Figure 6, data: do the same arguments move two models?",
        f"Pearson's correlation of the effects of single arguments, over the arguments that both models were shown. An "
        f"argument's effect is {effect} of the prompts that contain it. Low and high are the ends of a 95% interval "
        "over issues, by Student's t on Fisher's z with whole issues left out in turn. Models are of one "
        "family if their names differ by size, variant or date alone.",
        (
            Column("first", "Model"),
            Column("second", "And"),
            Column("r", "Correlation", "correlation"),
            *interval_columns("correlation"),
            Column("shared", "Arguments shared", "count"),
            Column("same_family", "Same family"),
            Column("same_model", "Same model"),
        ),
        tuple(
            (
                found.models[first],
                found.models[second],
                each.r,
                *interval_cells(each, "correlation"),
                each.rows,
                families[first] == families[second],
                panel.models[first].answers.model == panel.models[second].answers.model,
            )
            for (first, second), each in found.pairs.items()
        ),
    )
    yield beside_published(
        "figure-6-medians",
        "Median correlations within and between families",
        "Over pairs of models whose correlation is defined. A model beside itself, at another temperature or in "
        "another run, is no pair: it counts neither within a family nor between two.",
        (
            Column("pairs", "Pairs"),
            Column("number", "Number of pairs", "count"),
            Column("median", "Median correlation", "correlation"),
        ),
        (
            ("within a family", middle.pairs_within, middle.within),
            ("between families", middle.pairs_between, middle.between),
        ),
    )


def _effects(panel: SurveyFigures, is_relative: bool) -> Table:
    column = Column("effect", "Pro share minus baseline", "points") if is_relative else Column("pro", "Pro", "percent")
    return Table(
        "figure-6-arguments",
        "Single arguments",
        "A model and an argument a row: how many answered prompts contain it, and what it does to the pro share.",
        (_MODEL, Column("issue", "Issue"), Column("argument", "Argument"), Column("shown", "Answers", "count"), column),
        tuple(
            (model.name, *argument, int(shown), 100 * float(share))
            for model in panel.models
            for argument, shown, share in zip(
                model.effects.arguments, model.effects.shown, model.effects.shares, strict=True
            )
        ),
        is_long=True,
    )


def _order(panel: SurveyFigures) -> Table:
    return Table(
        "order-effects",
        "The last argument",
        "In balanced cases: the share of answers on the side of the last argument shown, the share that would be if "
        "order did nothing (stance and last side independent within each issue), and what it is beyond that, in "
        f"percentage points. {panel.interval_note}",
        (
            _MODEL,
            Column("side", "Last argument's side"),
            Column("answers", "Answers", "count"),
            Column("agree", "Agree", "percent"),
            Column("base_rate", "Base rate", "percent"),
            Column("excess", "Beyond it", "points"),
            *interval_columns("points"),
        ),
        tuple(
            _order_row(model.name, side, model.last_argument)
            for model in panel.models
            if model.last_argument.answers
            for side in ("either", *SIDES)
        ),
    )


def _order_row(model: str, side: str, every: LastArgument) -> tuple[Cell, ...]:
    found = every.by_side.get(side, every)
    ends = interval_cells(every.interval if found is every else None, "points", 100)
    numbers = (found.rate, found.base_rate, found.excess)
    return (model, side, found.answers, *(None if number is None else 100 * number for number in numbers), *ends)
