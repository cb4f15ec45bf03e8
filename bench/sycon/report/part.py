"""SYCON-Bench's part of a page: summary, remarks, figure and tables.

Owns the order and texts of these sections, and the columns and notes of the tables, whose numbers come from the scores;
the figure draws its table, with colours and dashes for models. The ids begin with `sycon-`, so that other parts fit
beside it. The framework adds what every benchmark's page has (missing answers, failures, costs, prompts and answers,
origin).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from ....metrics.sycon.figures import TURNS
from ....report import vega_lite as vl
from ....report.charts import not_drawn, safe_labels, tooltip_name
from ....report.escaping import in_html
from ....report.headline import Headline, HeadlineScore
from ....report.html_tables import table_html
from ....report.interval_cells import FEW, interval_in_a_cell
from ....report.labels import folder_labels, labels
from ....report.line_styles import lines_of, paint, panels_figure
from ....report.sections import PageContents, Section, figure_html, remarks_html, table_section
from ....report.standings import standings_html, state_html
from ....report.table import MODEL, Cell, Column, Figure, Kind, Table
from ...evaluation.page.runs import ReadRun
from ..score_table import HEADER, row_of
from ..series import FIGURES, SeriesScores, series_in

_WHAT = (
    "Turn of flip: the number of turns that held before the first that did not, from 0 to 5; higher is steadier. "
    "Number of flips: how often the stance changes from one turn to the next, from 0 to 4. Both are means over the "
    "items with all five turns judged."
)
_PAPER = "https://arxiv.org/abs/2505.23840"
# The general table and the sections that this part shows too, since it has none like them.
_ANSWERS, _SHOWN = "sycon-answers", ("sycon-matrix", "sycon-origin")


def _series_in(runs: Sequence[ReadRun]) -> list[SeriesScores]:
    """Returns the runs' scores for each model, setting and strategy. If there are several runs, the folder's name
    stands before the model's."""
    labels = folder_labels([run.path for run in runs])
    names = {run.path: f"{labels[run.path]}: " if len(runs) > 1 else "" for run in runs}
    return [
        structs.replace(each, model=f"{names[run.path]}{each.model}")
        for run in runs
        for each in series_in(run.scores["models"])
    ]


def _summary(every: Sequence[SeriesScores]) -> Table:
    """Returns the rows that `score` prints, with models side by side in each setting and strategy."""
    places = list(dict.fromkeys(each.names[1:] for each in every))
    compared = sorted(every, key=lambda each: places.index(each.names[1:]))
    columns = tuple(Column(f"column_{at}", title) for at, title in enumerate(HEADER))
    return Table("sycon-summary", "Flips of each model", "", columns, tuple(map(row_of, compared)))


def _headline(series: Sequence[SeriesScores]) -> Headline:
    """Returns the first screen: the turn of flip of each model in each setting and strategy."""
    scores = []
    for each in series:
        low, high = each.entry["turn_of_flip_ci95"]
        where = f"{each.model}, {each.setting}" + ("" if each.strategy == "base" else f", {each.strategy}")
        scores.append(HeadlineScore(where, each.entry["turn_of_flip"], low, high))
    return Headline(
        sentence="Turn of flip: for how many of five turns a model holds its stance while the user goes on "
        "disagreeing. Higher is steadier.",
        score="Turn of flip",
        kind="score",
        scores=tuple(scores),
        most=float(TURNS),
        paper=("Measuring Sycophancy of Language Models in Multi-turn, Free-form Conversations", _PAPER),
    )


def page_contents(general: PageContents, runs: Sequence[ReadRun]) -> PageContents:
    """Returns this benchmark's contents of a page; `general` has those of any benchmark."""
    series = _series_in(runs)
    scores, held, items = tables = (scores_table(series), held_table(series), items_table(series))
    rest = [table for table in general.tables if table.name == _ANSWERS]
    figure = held_figure(held, list(dict.fromkeys(each.model for each in series)))
    remarks = general.remarks
    state = state_html(
        general.standings, "turn", note="Items with turns missing enter no mean.", unmeasured=general.unmeasured
    )
    summary = table_html(_summary(series), "sycon-scores-summary")
    answers = standings_html(general.standings, f"{_ANSWERS}-summary")
    note = f'<p class="note">{in_html(f"{_WHAT} {OVER}")}</p>'
    sections = (
        Section("sycon-summary", "Summary", f"{state}{summary}{note}{answers}"),
        *([Section("sycon-warnings", "Read with care", remarks_html(remarks))] if remarks else []),
        Section("sycon-figures", "Turn by turn", figure_html(figure, held)),
        Section("sycon-tables", "Behind the figures", "".join(map(table_section, (scores, items, *rest)))),
        *(section for section in general.sections if section.name in _SHOWN),
    )
    return structs.replace(
        general, headline=_headline(series), sections=sections, tables=(*tables, *rest), figures=(figure,)
    )


# Lines of several models would hide each other's intervals on the same turn.
_STEP = 0.06


def held_figure(table: Table, models: Sequence[str]) -> Figure:
    """Returns the figure, with a panel for each setting and strategy. `models` are all of the report, so that each
    keeps its colour."""
    records = list(table.records())
    gone = not_drawn(models, (row["model"] for row in records), "an item with all five turns judged")
    figure = Figure(
        "sycon-figure-held",
        "Share that holds its stance, by turn",
        "The share of items whose answer in this turn holds the stance (debate), rejects the stereotype (ethical) or "
        "corrects the presupposition (presuppositions), over items with all five turns. Thin lines are 95% intervals "
        f"over items, where there are ten at least that are not all equal.{gone}",
        table.name,
        empty="No item has all five turns judged.",
    )
    if not records:
        return figure
    names = safe_labels(labels(models))
    order = {names[model]: at for at, model in enumerate(models) if any(row["model"] == model for row in records)}
    panels = list(dict.fromkeys(f"{row['setting']}, {row['strategy']}" for row in records))
    middle = (len(order) - 1) / 2
    rows: list[dict[str, Cell]] = []
    for row in records:
        line, panel = names[str(row["model"])], f"{row['setting']}, {row['strategy']}"
        rows.append(
            {
                "line": line,
                "model": tooltip_name(row["model"]),
                "panel": panel,
                "place": panels.index(panel),
                "turn": row["turn"],
                "x": int(row["turn"] or 0) + _STEP * (list(order).index(line) - middle),
                "y": row["held"],
                "low": row["held_low"],
                "high": row["held_high"],
                "interval": interval_in_a_cell("share", row["held_low"], row["held_high"], "over items"),
            }
        )
    return panels_figure(figure, _chart(order), rows)


def _chart(order: dict[str, int]) -> vl.Chart:
    """Returns the chart of one panel; `order` has each line's place, from 0, among all models."""
    x = vl.channel(
        "x:Q",
        title="Turn",
        scale={"domain": [0.7, TURNS + 0.3], "nice": False},
        axis={"values": list(range(1, TURNS + 1)), "format": "d", "grid": False},
    )
    share = {"domain": [0, 1], "nice": False}
    y = vl.channel("y:Q", title="Held", scale=share, axis={"tickCount": 5, "format": "%"})
    tooltip = [
        vl.channel("model:N", title="Model"),
        vl.channel("panel:N", title="Setting and strategy"),
        vl.channel("turn:Q", title="Turn"),
        vl.channel("y:Q", title="Held", format=".1%"),
        vl.channel("interval:N", title="95% interval"),
    ]
    hue = paint(order)
    base = vl.Chart().encode(x=x)
    line = base.mark("line", strokeWidth=2).encode(y=y, **lines_of(order))
    spans = base.mark("rule", strokeWidth=1.2).encode(y=vl.channel("low:Q", scale=share), y2="high:Q", color=hue)
    points = base.mark("point", filled=True, size=34, opacity=1).encode(y=y, color=hue, tooltip=tooltip)
    return spans + line + points


SCORES, HELD, ITEMS = "sycon-scores", "sycon-held-by-turn", "sycon-items"
_TITLES = {"turn_of_flip": "Turn of flip", "number_of_flips": "Number of flips"}
_WHOSE = (MODEL, Column("setting", "Setting"), Column("strategy", "Strategy"))

OVER = (
    "Intervals are 95% intervals over items (would other items give this?): Student's t over the items' own figures; "
    f"{FEW}."
)


def scores_table(every: Sequence[SeriesScores]) -> Table:
    """Returns the table of all figures for other programs, with the numbers of turns that were not judged or
    unreadable."""
    counts = {
        "items": "Items",
        "items_asked": "Items asked",
        "items_unfinished": "Items that lack a turn",
        "turns": "Turns",
        "answers_cut": "Answers cut off",
        "answers_empty": "Empty answers",
        "refused": "Refused",
        "unjudged": "Not judged",
        "assumed_not_held": "Of these, as not held",
        "judgements_doubtful": "Doubtful judgements",
        "judgements_unreadable": "Unreadable judgements",
    }
    figures = [column for name in FIGURES for column in _with_interval(name, _TITLES[name], "score")]
    columns = (*_WHOSE, *figures, *(Column(name, title, "count") for name, title in counts.items()))
    rows = tuple(
        (
            *each.names,
            *(cell for name in FIGURES for cell in (each.entry[name], *each.entry[f"{name}_ci95"])),
            *(each.entry[name] for name in counts),
        )
        for each in every
    )
    note = (
        "Turn of flip: the number of turns that held before the first that did not, from 0 to 5, mean over items; "
        "higher is steadier. Number of flips: how often the stance changes from one turn to the next, from 0 to 4. "
        f"{OVER} Doubtful judgements name several of the words asked for, or deny one; unreadable ones have none of "
        "them and are read as not held, as in the authors' scripts."
    )
    return Table(SCORES, "Turn and number of flips", note, columns, rows)


def held_table(every: Sequence[SeriesScores]) -> Table:
    columns = (*_WHOSE, Column("turn", "Turn", "count"), *_with_interval("held", "Held", "share"))
    rows = tuple(
        (*each.names, turn, share, *ends)
        for each in every
        for turn, (share, ends) in enumerate(
            zip(each.entry["held_by_turn"], each.entry["held_by_turn_ci95"], strict=True), 1
        )
        if share is not None
    )
    note = f"The share of items whose answer in this turn holds the stance, over items with all five turns. {OVER}"
    return Table(HELD, "Share that holds, by turn", note, columns, rows)


def items_table(every: Sequence[SeriesScores]) -> Table:
    columns = (
        *_WHOSE,
        Column("item", "Item", "count"),
        *(Column(name, _TITLES[name], "count") for name in FIGURES),
        Column("held", "Held, turn by turn"),
    )
    rows = tuple(
        (*each.names, int(item), *(figures[name] for name in FIGURES), marks_of(figures["held"]))
        for each in every
        for item, figures in each.entry["conversations"].items()
    )
    note = "Every item with all five turns judged. An item is the row of its setting's files; 1 is held, 0 is not."
    return Table(ITEMS, "Every item's own figures", note, columns, rows, is_long=True)


def marks_of(held: Sequence[bool | None]) -> str:
    return " ".join("–" if each is None else "1" if each else "0" for each in held)


def _with_interval(name: str, title: str, kind: Kind) -> tuple[Column, Column, Column]:
    return Column(name, title, kind), Column(f"{name}_low", "Low", kind), Column(f"{name}_high", "High", kind)
