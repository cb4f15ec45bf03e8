"""Figures 3 and 7: shares of pro, con and Other as stacked bars, side by side.

Owns these two charts, and how many bars a picture holds before it is cut. Their numbers are their tables'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ....report import vega_lite as vl
from ....report.charts import drawn_figure, label_width, not_drawn, safe_labels, tooltip_name
from ....report.colours import colour
from ....report.labels import issue_labels, labels, one_line
from ....report.table import PUBLISHED, Cell, Figure, Table

_STANCES = {"pro": "Pro", "con": "Con", "other": "Other"}
_CASES = {"baseline": "Baseline", "balanced": "Balanced arguments"}
_MOST_REFUSED = 40
_BAR = 17
_PANEL, _SPACING = 215, 18
# A panel's title must not reach into the next one, even in a wider font than the one it was cut for.
_TITLE_LONGEST, _TITLE_WIDTH = 28, 190


def disagreement_figure(table: Table, names: Sequence[str] = ()) -> Figure:
    """Returns figure 3, the baseline stances on the most disputed issues. `names` are the models of the whole
    report."""
    records = list(table.records())
    gone = not_drawn(names, (row["model"] for row in records), "baseline answers on these issues")
    figure = Figure(
        "figure-3-disagreement",
        "Figure 3: baseline stances where the models disagree most",
        "Shares of pro, con and Other among each model's baseline answers, on the issues with the largest difference "
        "between two models, the largest first. A model without a bar has no baseline answers "
        f"there.{gone}",
        table.name,
        empty="A disagreement takes the baselines of two models on the same issue.",
    )
    if not records:
        return figure
    models = safe_labels(labels((str(row["model"]) for row in records), 24))
    issues = safe_labels(issue_labels((str(row["issue"]) for row in records), _TITLE_LONGEST))
    places = {issue: place for place, issue in enumerate(issues)}
    shared: list[dict[str, Cell]] = [
        {
            "bar": models[str(row["model"])],
            "panel": issues[str(row["issue"])],
            "panel_place": places[str(row["issue"])],
            "model": tooltip_name(row["model"]),
            "issue": tooltip_name(row["issue"]),
            "answers": row["answers"],
            **{stance: row[stance] for stance in _STANCES},
        }
        for row in records
    ]
    rows = _stacked(shared)
    bars, panels = list(models.values()), list(issues.values())
    tooltip = [
        vl.channel("issue:N", title="Issue"),
        vl.channel("model:N", title="Model"),
        vl.channel("answers:Q", title="Baseline answers"),
    ]
    # Sorted by a number and not by a list of names, which would put the names into expressions.
    facet = vl.channel("panel:N", sort={"field": "panel_place", "op": "min"}, title=None, header=_header())
    chart = _stack(bars, tooltip)
    chart = chart.facet(facet, columns=2).properties(spacing=_SPACING)
    return drawn_figure(figure, chart, rows, min_width=_min_width(bars, min(len(panels), 2)))


def refusals_figure(table: Table) -> Figure:
    """Returns figure 7, the issues on which a model takes no side."""
    records = [row for row in table.records() if row["source"] != PUBLISHED]
    pairs = list(dict.fromkeys((str(row["model"]), str(row["issue"])) for row in records))
    drawn_pairs = pairs[:_MOST_REFUSED]
    models = list(dict.fromkeys(model for model, _ in pairs))
    whose = f" All are {one_line(models[0], 60)}'s." if len(models) == 1 else ""
    cut = f" Drawn are {len(drawn_pairs)} of {len(pairs)}: the table has all." if len(pairs) > len(drawn_pairs) else ""
    figure = Figure(
        "figure-7-refusals",
        "Figure 7: issues on which a model takes no side",
        "Issues with more than 30% Other among a model's baseline answers, and what becomes of them with balanced "
        f"arguments.{whose}{cut}",
        table.name,
        empty="No model has an issue with more than 30% Other among its baseline answers.",
    )
    if not pairs:
        return figure
    names = safe_labels(_pair_labels(drawn_pairs))
    rows = _stacked(
        {
            "bar": names[pair],
            "panel": _CASES[str(row["case"])],
            "model": tooltip_name(row["model"]),
            "issue": tooltip_name(row["issue"]),
            **{stance: row[stance] for stance in _STANCES},
        }
        for row in records
        if (pair := (str(row["model"]), str(row["issue"]))) in names and row["other"] is not None
    )
    tooltip = [
        vl.channel("issue:N", title="Issue"),
        vl.channel("model:N", title="Model"),
        vl.channel("panel:N", title="Case"),
    ]
    column = vl.channel("panel:N", sort=list(_CASES.values()), title=None, header=_header())
    bars = list(names.values())
    chart = _stack(bars, tooltip).facet({"column": column}).properties(spacing=_SPACING)
    return drawn_figure(figure, chart, rows, min_width=_min_width(bars, 2))


def _min_width(bars: Sequence[str], panels: int) -> int:
    return (label_width(bars) + panels * (_PANEL + _SPACING)) * 3 // 4


def _stacked(shares: Iterable[Mapping[str, Cell]]) -> list[dict[str, Cell]]:
    """Returns a row for each of the three stances of each bar; a missing share has none."""
    return [
        {key: value for key, value in row.items() if key not in _STANCES}
        | {"stance": title, "place": place, "share": row[stance]}
        for row in shares
        for place, (stance, title) in enumerate(_STANCES.items())
        if row[stance] is not None
    ]


def _stack(bars: Sequence[str], tooltip: list[vl.Channel]) -> vl.Chart:
    titles = list(_STANCES.values())
    axis = {"values": [0, 50, 100], "labelExpr": "datum.value + '%'", "labelFlush": True}
    return (
        vl.Chart()
        .mark("bar")
        .encode(
            y=vl.channel(
                "bar:N",
                title=None,
                scale={"domain": list(bars), "paddingInner": 0.25},
                axis={"minExtent": label_width(bars)},
            ),
            x=vl.channel("share:Q", stack="zero", title=None, axis=axis, scale={"domain": [0, 100], "nice": False}),
            color=vl.channel(
                "stance:N",
                title=None,
                sort=titles,
                scale={"domain": titles, "range": [colour(stance) for stance in _STANCES]},
            ),
            order=vl.channel("place:Q"),
            tooltip=[
                *tooltip,
                vl.channel("stance:N", title="Stance"),
                vl.channel("share:Q", title="Share, %", format=".1f"),
            ],
        )
        .properties(width=_PANEL, height=len(bars) * _BAR)
    )


def _header() -> vl.Channel:
    return {"labelOrient": "top", "labelAnchor": "start", "labelPadding": 6, "labelLimit": _TITLE_WIDTH}


def _pair_labels(pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Returns a label for each bar: its issue, with its model if there are several."""
    models = labels((model for model, _ in pairs), 20)
    issues = issue_labels((issue for _, issue in pairs), 30)
    if len(models) == 1:
        return {pair: issues[pair[1]] for pair in pairs}
    return {(model, issue): f"{issues[issue]} · {models[model]}" for model, issue in pairs}
