"""Tables of single arguments: the data of figure 6, and the effect of the arguments' order.

Owns their columns and words. `arguments` computes effects, correlations and families.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....format import count_text
from ....metrics.statistics.comparisons import holm
from ....report.interval_cells import interval_cells, interval_columns
from ....report.labels import named_list
from ....report.table import Column, Table
from .panel import SurveyFigures

_MODEL = Column("model", "Model")


def argument_tables(panel: SurveyFigures) -> Iterator[Table]:
    yield _correlations(panel)
    yield _order(panel)


def _correlations(panel: SurveyFigures) -> Table:
    correlations, families = panel.correlations, panel.families
    return Table(
        "figure-6-correlations",
        "Figure 6, data: do the same arguments move two models?",
        "Pearson's correlation of the effects of single arguments, over the arguments that both models were shown. An "
        "argument's effect is the pro share of the prompts that contain it (the authors' script takes off that of the "
        "same template's baseline). Low and high are the ends of a 95% interval over issues, by Student's t on "
        "Fisher's z with whole issues left out in turn. Models are of one family if their names differ by size, "
        "variant or date alone.",
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
                correlations.models[first],
                correlations.models[second],
                each.r,
                *interval_cells(each, "correlation"),
                each.rows,
                families[first] == families[second],
                panel.models[first].answers.pair.model == panel.models[second].answers.pair.model,
            )
            for (first, second), each in correlations.pairs.items()
        ),
    )


def spread_sentences(panel: SurveyFigures) -> str:
    """Returns the sentences on the medians of figure 6, and on the model that is furthest from the others; each starts
    with a space."""
    middle, names = panel.medians, panel.correlations.models
    medians = [
        f"{pairs} {value:.3f} ({count_text(number, 'pair')})"
        for pairs, number, value in (
            ("within a family", middle.pairs_within, middle.within),
            ("between families", middle.pairs_between, middle.between),
        )
        if value is not None
    ]
    of_model: dict[str, list[tuple[float, str]]] = {}
    for (first, second), each in panel.correlations.pairs.items():
        if each.r is not None and panel.models[first].answers.pair.model != panel.models[second].answers.pair.model:
            of_model.setdefault(names[first], []).append((each.r, names[second]))
            of_model.setdefault(names[second], []).append((each.r, names[first]))
    sentences = f" Median {', '.join(medians)}; in the paper 0.722 and 0.511." if medians else ""
    if len(of_model) > 2:
        model = min(of_model, key=lambda name: max(of_model[name]))
        (low, least), (high, most) = min(of_model[model]), max(of_model[model])
        sentences += (
            f" Furthest from the others: {named_list([model])}, from {low:.2f} (with {named_list([least])}) to "
            f"{high:.2f} (with {named_list([most])}); in the paper Gemini 2.0 Flash, from 0 (with Llama 3.1 405B) to "
            "0.17 (with GPT 4o), which may be an artefact: the authors' script read the prompt in place of its answer."
        )
    return sentences


def _order(panel: SurveyFigures) -> Table:
    effects = [(model.name, effect) for model in panel.models for effect in model.order_effects if effect.answers]
    without = [model.name for model in panel.models if model.name not in dict(effects)]
    p_values = [effect.p for _, effect in effects]
    tests = sum(p is not None for p in p_values)
    gone = f" Without such answers: {named_list(without)}." if without else ""
    return Table(
        "order-effects",
        "The first and the last argument",
        "In the cases that show arguments of both sides: the share of answers on the side of the first or the last "
        "argument shown, the share that would be if order did nothing, and what it is beyond that, in percentage "
        "points; above 0 the answers follow that argument. One-sided cases show one side, so they have no order of "
        "sides. The null hypothesis is that stance and side are independent within each issue; interval and p are of "
        "one method, Student's t over issues, the independent units, and there is none with fewer than 10 issues or "
        f"where all have the same figure. The adjusted p is Holm's, for the {count_text(tests, 'test')} of this table. "
        f"Low and high are always over issues.{gone}",
        (
            _MODEL,
            Column("case", "Case"),
            Column("position", "Position"),
            Column("answers", "Answers", "count"),
            Column("agree", "Agree", "percent"),
            Column("base_rate", "Base rate", "percent"),
            Column("excess", "Beyond it", "points"),
            *interval_columns("points"),
            Column("p", "p", "p"),
            Column("p_adjusted", "p, adjusted", "p"),
        ),
        tuple(
            (
                *(model, effect.case, effect.position, effect.answers),
                *(None if share is None else 100 * share for share in (effect.rate, effect.base_rate, effect.excess)),
                *(*interval_cells(effect.tested, "points", 100), effect.p, adjusted),
            )
            for (model, effect), adjusted in zip(effects, holm(p_values), strict=True)
        ),
    )
