"""SYCON-Bench's part of a page: summary, remarks, figure, tables and conversations.

Owns the order and texts of these sections; their ids begin with `sycon-`, so that other parts fit beside it. The
framework adds what every benchmark's page has (missing answers, failures, costs, origin).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, structs

from ....metrics.naming import row_names
from ....metrics.sycon.figures import TURNS
from ....report.escaping import in_html
from ....report.headline import Headline, HeadlineScore
from ....report.html_tables import table_html
from ....report.labels import folder_labels
from ....report.sections import PageContents, Section, figure_html, remarks_html, table_section
from ....report.standings import standings_html, state_html
from ...evaluation.door.item import line_ids
from ...evaluation.page.runs import ReadRun, records_of
from ..records import Record, item_id
from .chart import held_figure
from .reading import STYLE, Conversations, Item, ReadTurn, items_to_read, reading_html
from .tables import OVER, SeriesScores, held_table, items_table, scores_table, series_in, summary_table

_WHAT = (
    "Turn of flip: the number of turns that held before the first that did not, from 0 to 5; higher is steadier. "
    "Number of flips: how often the stance changes from one turn to the next, from 0 to 4. Both are means over the "
    "items with all five turns judged."
)
_PAPER = "https://arxiv.org/abs/2505.23840"
# The general table and the section that this part shows too, since it has none like them.
_ANSWERS, _ORIGIN = "sycon-answers", "sycon-origin"


class NamedRun(Struct, frozen=True):
    """A run of a report, with a label that distinguishes it from the others."""

    run: ReadRun
    """The run read from its folder."""
    label: str
    """Prefix of the names of its models; empty if the report is of one run."""

    def series(self) -> list[SeriesScores]:
        """Returns the run's scores for each model, setting and strategy, under the models' names in the report."""
        return [structs.replace(each, model=self.named(each.model)) for each in series_in(self.run.scores["models"])]

    def named(self, model: str) -> str:
        """Returns a model's name in the report."""
        return f"{self.label}: {model}" if self.label else model

    def conversations(self, item: Item) -> Conversations:
        """Returns the turns of an item, by model. Other programs' records name items only in their turns' ids."""
        name = item_id(*item)
        records: list[Record] = [
            record for each in (name, *line_ids(name, TURNS)) for record in records_of(self.run, each, Record)
        ]
        by_model: dict[str, list[ReadTurn]] = {}
        names = row_names(self.run.pairs)
        for record in sorted(records, key=lambda record: record.id):
            model = self.named(names[record.pair])
            number = int(record.id.rpartition("/")[2])
            turn = ReadTurn(number, record.question, record.text or "", record.judgement, record.held)
            by_model.setdefault(model, []).append(turn)
        return dict(sorted(by_model.items()))


def named_runs(runs: Sequence[ReadRun]) -> list[NamedRun]:
    """Returns the runs, each with its folder's name as label if there are several, else with an empty label."""
    labels = folder_labels([run.path for run in runs])
    return [NamedRun(run, labels[run.path] if len(runs) > 1 else "") for run in runs]


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
    every = named_runs(runs)
    series = [each for run in every for each in run.series()]
    scores, held, items = tables = (scores_table(series), held_table(series), items_table(series))
    rest = [table for table in general.tables if table.name == _ANSWERS]
    figure = held_figure(held, list(dict.fromkeys(each.model for each in series)))
    remarks = general.remarks

    def read(item: Item) -> Conversations:
        return {model: turns for run in every for model, turns in run.conversations(item).items()}

    state = state_html(
        general.standings, "turn", note="Items with turns missing enter no mean.", unmeasured=general.unmeasured
    )
    summary = table_html(summary_table(series), "sycon-scores-summary")
    answers = standings_html(general.standings, f"{_ANSWERS}-summary")
    note = f'<p class="note">{in_html(f"{_WHAT} {OVER}")}</p>'
    sections = (
        Section("sycon-summary", "Summary", f"{state}{summary}{note}{answers}"),
        *([Section("sycon-warnings", "Read with care", remarks_html(remarks))] if remarks else []),
        Section("sycon-figures", "Turn by turn", figure_html(figure, held)),
        Section("sycon-tables", "Behind the figures", "".join(map(table_section, (scores, items, *rest)))),
        Section("sycon-conversations", "Conversations to read", reading_html(items_to_read(series), read)),
        *(section for section in general.sections if section.name == _ORIGIN),
    )
    return structs.replace(
        general, headline=_headline(series), sections=sections, tables=(*tables, *rest), figures=(figure,), style=STYLE
    )
