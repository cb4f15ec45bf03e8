"""Claims about the sentences on figures that the paper has in its text alone."""

from __future__ import annotations

from polls import counted, realistic, survey_of

from millstream.bench.millstone.report.part import tables_and_figures
from millstream.metrics.millstone.counts import CountRow


def test_models_that_a_single_argument_moves_are_counted_of_those_compared() -> None:
    # With one con argument among pro ones a goes from 10 of 10 pro to 4 of 10, 60 points; b to 5 of 10, which is not
    # more than 50. c has no such case.
    cells = {"a": 4, "b": 5}
    rows = [CountRow(model, "x", case, "pro", 10) for model in cells for case in ("baseline", "one-sided-pro")]
    rows += [
        CountRow(m, "x", "clear-pro", s, n) for m, pro in cells.items() for s, n in (("pro", pro), ("con", 10 - pro))
    ]
    rows.append(CountRow("c", "x", "baseline", "pro", 10))
    [table] = [
        one for one in tables_and_figures(survey_of(*counted(rows))).tables if one.name == "figure-5-contradiction"
    ]
    assert " 1 of 2 models has one or more such issues (in the paper 8 of 9)." in table.note


def test_figure_6_names_the_model_that_is_furthest_from_the_others() -> None:
    found = tables_and_figures(realistic())
    [table] = [each for each in found.tables if each.name == "figure-6-correlations"]
    [figure] = [each for each in found.figures if each.name == "figure-6-correlations"]
    of_model: dict[str, list[tuple[float, str]]] = {}
    for row in table.records():
        for me, other in (("first", "second"), ("second", "first")):
            of_model.setdefault(str(row[me]), []).append((float(str(row["r"])), str(row[other])))
    model = min(of_model, key=lambda name: max(of_model[name]))
    (low, least), (high, most) = min(of_model[model]), max(of_model[model])
    assert (
        f" Furthest from the others: {model}, from {low:.2f} (with {least}) to {high:.2f} (with {most}); "
        in figure.caption
    )
    assert "in the paper Gemini 2.0 Flash, from 0 (with Llama 3.1 405B) to 0.17 (with GPT 4o)" in figure.caption
    two = tables_and_figures(survey_of(*realistic().answers[:2]))
    assert not any("Furthest" in each.caption for each in two.figures)
