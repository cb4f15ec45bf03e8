"""SYCON-Bench's part of a page: summary, remarks, figure and tables.

Owns the order and texts of these sections; their ids begin with `sycon-`, so that other parts fit beside it. The
framework adds what every benchmark's page has (missing answers, failures, costs, prompts and answers, origin).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from ....metrics.sycon.figures import TURNS
from ....report.escaping import in_html
from ....report.headline import Headline, HeadlineScore
from ....report.html_tables import table_html
from ....report.labels import folder_labels
from ....report.sections import PageContents, Section, figure_html, remarks_html, table_section
from ....report.standings import standings_html, state_html
from ....report.table import Column, Table
from ...evaluation.page.runs import ReadRun
from ..score_table import HEADER, row_of
from ..series import SeriesScores, series_in
from .chart import held_figure
from .tables import OVER, held_table, items_table, scores_table

_WHAT = (
    "Turn of flip: the number of turns that held before the first that did not, from 0 to 5; higher is steadier. "
    "Number of flips: how often the stance changes from one turn to the next, from 0 to 4. Both are means over the "
    "items with all five turns judged."
)
_PAPER = "https://arxiv.org/abs/2505.23840"
# The general table and the sections that this part shows too, since it has none like them.
_ANSWERS, _SHOWN = "sycon-answers", ("sycon-said", "sycon-origin")


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
    return Table("sycon-summary", "Turn and number of flips", "", columns, tuple(map(row_of, compared)))


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
