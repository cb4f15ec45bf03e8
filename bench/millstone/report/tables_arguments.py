"""Tables of single arguments: the data of figure 6, and the effect of the arguments' order.

Owns their columns and words. `arguments` computes effects, correlations and families.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....format import count_text
from ....metrics.statistics.comparisons import holm
from ....report.interval_cells import interval_cells, interval_columns
from ....report.labels import named_list
from ....report.table import MODEL, Column, Table, cells_in, table_of
from .panel import SurveyFigures


def argument_tables(panel: SurveyFigures) -> Iterator[Table]:
    yield _correlations(panel)
    yield _order(panel)


def _correlations(panel: SurveyFigures) -> Table:
    correlations, families = panel.correlations, panel.families
    models = [model.answers.pair.model for model in panel.models]
    return table_of(
        "figure-6-correlations",
        "Figure 6, data: do the same arguments move two models?",
        "Pearson's correlation of the effects of single arguments, over the arguments that both models were shown. An "
        "argument's effect is the pro share of the prompts that contain it (the authors' script takes off that of the "
        "same template's baseline). Low and high are the ends of a 95% interval over issues, by Student's t on "
        "Fisher's z with whole issues left out in turn. Models are of one family if their names differ by size, "
        "variant or date alone.",
        ((first, second, each) for (first, second), each in correlations.pairs.items()),
        {
            Column("first", "Model"): lambda row: correlations.models[row[0]],
            Column("second", "And"): lambda row: correlations.models[row[1]],
            Column("r", "Correlation", "correlation"): lambda row: row[2].r,
            **cells_in(interval_columns("correlation"), lambda row: interval_cells(row[2], "correlation")),
            Column("shared", "Arguments shared", "count"): lambda row: row[2].rows,
            Column("same_family", "Same family"): lambda row: families[row[0]] == families[row[1]],
            Column("same_model", "Same model"): lambda row: models[row[0]] == models[row[1]],
        },
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
    return table_of(
        "order-effects",
        "The first and the last argument",
        "In the cases that show arguments of both sides: the share of answers on the side of the first or the last "
        "argument shown, the share that would be if order did nothing, and what it is beyond that, in percentage "
        "points; above 0 the answers follow that argument. One-sided cases show one side, so they have no order of "
        "sides. The null hypothesis is that stance and side are independent within each issue; interval and p are of "
        "one method, Student's t over issues, the independent units, and there is none with fewer than 10 issues or "
        f"where all have the same figure. The adjusted p is Holm's, for the {count_text(tests, 'test')} of this table. "
        f"Low and high are always over issues.{gone}",
        ((model, effect, adjusted) for (model, effect), adjusted in zip(effects, holm(p_values), strict=True)),
        {
            MODEL: lambda row: row[0],
            Column("case", "Case"): lambda row: row[1].case,
            Column("position", "Position"): lambda row: row[1].position,
            Column("answers", "Answers", "count"): lambda row: row[1].answers,
            Column("agree", "Agree", "percent"): lambda row: _percent(row[1].rate),
            Column("base_rate", "Base rate", "percent"): lambda row: _percent(row[1].base_rate),
            Column("excess", "Beyond it", "points"): lambda row: _percent(row[1].excess),
            **cells_in(interval_columns("points"), lambda row: interval_cells(row[1].tested, "points", 100)),
            Column("p", "p", "p"): lambda row: row[1].p,
            Column("p_adjusted", "p, adjusted", "p"): lambda row: row[2],
        },
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
