"""Tables of single arguments: the data of figure 6, and the effect of the arguments' order.

Owns their columns and words. `arguments` computes effects, correlations and families.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ....metrics.millstone.arguments import (
    Correlations,
    Effects,
    LastArgument,
    argument_effects,
    correlations,
    family_of,
    last_argument,
    medians,
)
from ....report.interval_cells import interval_cells, interval_columns
from ....report.table import Cell, Column, Table
from .likeness import is_of_same_manner
from .panel import SIDES, SurveyScores
from .published import beside_published

_MODEL = Column("model", "Model")


def argument_tables(panel: SurveyScores, seed: int) -> Iterator[Table]:
    is_relative = panel.survey.readings.arguments == "change"
    effects = [argument_effects(answers, panel.survey.stance, is_relative) for answers in panel.heard_answers]
    found = _of_comparable(panel, correlations(effects))
    yield from _correlations(found, [answers.model for answers in panel.answers], is_relative)
    yield _effects(effects, is_relative)
    yield _order(panel, seed)


def _of_comparable(panel: SurveyScores, found: Correlations) -> Correlations:
    """Returns the correlations without pairs of models that were asked differently: these may have seen other
    arguments."""

    def is_alike(first: int, second: int) -> bool:
        return is_of_same_manner(panel.survey, found.models[first], found.models[second])

    return replace(found, pairs={pair: each for pair, each in found.pairs.items() if is_alike(*pair)})


def _correlations(found: Correlations, models: Sequence[str], is_relative: bool) -> Iterator[Table]:
    """Yields the tables of correlations and of their medians. `models` has the model of each row; several rows may have
    the same."""
    families = [family_of(model) for model in models]
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
                models[first] == models[second],
            )
            for (first, second), each in found.pairs.items()
        ),
    )
    middle = medians(found, families, models)
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


def _effects(effects: Sequence[Effects], is_relative: bool) -> Table:
    column = Column("effect", "Pro share minus baseline", "points") if is_relative else Column("pro", "Pro", "percent")
    return Table(
        "figure-6-arguments",
        "Single arguments",
        "A model and an argument a row: how many answered prompts contain it, and what it does to the pro share.",
        (_MODEL, Column("issue", "Issue"), Column("argument", "Argument"), Column("shown", "Answers", "count"), column),
        tuple(
            (one.model, *argument, int(shown), 100 * float(share))
            for one in effects
            for argument, shown, share in zip(one.arguments, one.shown, one.shares, strict=True)
        ),
        is_long=True,
    )


def _order(panel: SurveyScores, seed: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for answers in panel.heard_answers:
        found = last_argument(answers, panel.survey.stance, panel.survey.over, seed)
        if found.answers:
            rows += [_order_row(answers.name, side, found) for side in ("either", *SIDES)]
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
        tuple(rows),
    )


def _order_row(model: str, side: str, every: LastArgument) -> tuple[Cell, ...]:
    found = every.by_side.get(side, every)
    ends = interval_cells(every.interval if found is every else None, "points", 100)
    numbers = (found.rate, found.base_rate, found.excess)
    return (model, side, found.answers, *(None if number is None else 100 * number for number in numbers), *ends)
