"""Chameleon's part of a report: tables, figures and remarks, and the sections of the page that they stand in.

Owns the order of tables and sections, and their words; HTML ids begin with `chameleon-`, so that other parts fit beside
it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from ....configuration.errors import UsageError
from ....engine.pairs import NOT_SENT
from ....engine.remarks import remark
from ....engine.runs.run_folder import MANIFEST
from ....metrics.chameleon.readings import Readings
from ....report.escaping import in_html
from ....report.headline import Headline, HeadlineScore
from ....report.html_tables import shown_value, table_html
from ....report.interval_cells import OVER, interval_in_a_cell
from ....report.labels import folder_labels
from ....report.sections import PageContents, paper_sections
from ....report.standings import RunOrigin, choices_html, samples_note, standings_html, state_html
from ....report.table import MODEL, PUBLISHED, Cell, Column, Kind, Table, number_of
from ...evaluation.door.benchmark import ItemBenchmark
from ...evaluation.page.item_section import item_section
from ...evaluation.page.items import Matrix
from ...evaluation.page.provenance import command_paths, origin_of
from ..readings import readings_of
from ..shown_items import ConversationReader
from . import tables_scores, tables_turns
from .charts import confidence_figure, reuse_figure, turns_figure
from .manner import manner, unlike
from .panel import ConversationScores, conversation_scores
from .published import OVERALL, beside_published
from .remarks import choices, of_samples, remarks
from .runs import ConversationRun

_SCORES = "chameleon-table-1-scores"
_PREFIX = "chameleon-"
# The table of scores fits a narrow window.
_STYLE = """#chameleon-scores :is(th, td) { padding-inline: 0.5rem; }
@media screen { #chameleon-scores tbody th { width: 40%; white-space: normal; } }
"""
_NO_TEMPERATURE = NOT_SENT
_PAIRS = ("model at one temperature", "pairs of a model and a temperature")


def page_contents(
    benchmark: ItemBenchmark[Any], runs: Sequence[ConversationRun], options: Mapping[str, Any], flags: Sequence[str]
) -> PageContents:
    """Returns Chameleon's part of a report on these runs. `options` are the readings that the command line sets, by
    option name; all others are those that the runs share, or the defaults if the runs differ. `flags` are the words
    that `report` was given, for the command that makes the page again."""
    labels = folder_labels([run.records.parent for run in runs])
    labelled = [structs.replace(run, label=labels[run.records.parent]) for run in runs]
    origins = []
    for run in labelled:
        try:
            settings = {} if run.manifest is None else manner(run.manifest)
            # What a run planned, a judge may have refused.
            if sent := {each for troubles in run.traces.troubles.values() for each in +troubles.judged_at}:
                texts = ("not sent" if each is None else f"{each:g}" for each in sorted(sent, key=str))
                settings["judge temperature"] = " and ".join(texts)
            origins.append(origin_of(benchmark, run.manifest, run.label, run.turns, settings))
        except (KeyError, TypeError, AttributeError) as error:
            folder = run.records.parent
            raise UsageError(f"{folder}: its {MANIFEST} is no Chameleon run's ({error!r})") from error
    readings = readings_of(options, _common(runs))
    command = shlex.join(["millstream", "report", *command_paths(labels), *flags])
    return contents(labelled, readings, origins=origins, command=command)


def _common(runs: Sequence[ConversationRun]) -> Readings:
    """Returns the readings that all runs share, else the defaults: rows side by side must be read alike."""
    readings = {run.readings for run in runs}
    if len(readings) == 1:
        return readings.pop()
    remark("these runs read their records differently: here all are read by the defaults, or as flags say")
    return Readings()


def contents(
    runs: Sequence[ConversationRun],
    readings: Readings | None = None,
    *,
    origins: Sequence[RunOrigin] = (),
    command: str = "",
) -> PageContents:
    """Returns the contents of Chameleon's part of a report; reads the records of a few conversations again, for their
    texts. `readings` None: the defaults. The same runs give the same contents."""
    made = conversation_scores(runs, readings or Readings())
    items, packs = item_section(_matrix(made), "chameleon", "The conversations")
    every = structs.replace(
        tables_and_figures(made),
        title=_title(made),
        standings=tuple(map(made.status, made.samples)),
        unmeasured=made.unmeasured,
        origins=tuple(origins),
        choices=choices(made.readings),
        command=command,
        packs=packs,
        style=_STYLE,
    )
    note = samples_note(every.of_samples)
    sections = paper_sections(every, _summary(every), "Behind the scores", note, [items], _PREFIX)
    return structs.replace(every, headline=_headline(every), sections=sections)


def tables_and_figures(conversation_scores: ConversationScores) -> PageContents:
    """Returns the tables, figures and remarks of a report, without the sections of its page."""
    made = [
        tables_scores.scores_table(conversation_scores),
        tables_scores.domains_table(conversation_scores),
        tables_turns.confidence_table(conversation_scores),
        tables_turns.reuse_table(conversation_scores),
        tables_scores.correlations_table(conversation_scores),
        tables_scores.shares_table(conversation_scores),
        tables_scores.temperatures_table(conversation_scores),
        tables_turns.turns_table(conversation_scores),
        *tables_turns.answers_tables(conversation_scores),
        tables_turns.pages_table(conversation_scores),
        tables_turns.conversations_table(conversation_scores),
    ]
    tables = {table.name: beside_published(table) for table in made}
    models = list(conversation_scores.models)
    figures = (
        confidence_figure(tables["chameleon-figure-3-confidence"], models, conversation_scores.readings.confidence),
        reuse_figure(tables["chameleon-figure-4-reuse"], models),
        turns_figure(tables["chameleon-turns"], models),
    )
    return PageContents(
        name="Chameleon",
        tables=tuple(tables.values()),
        figures=figures,
        remarks=remarks(conversation_scores),
        unlike=unlike(conversation_scores.runs),
        of_samples=of_samples(conversation_scores.runs),
    )


def _matrix(made: ConversationScores) -> Matrix:
    """Returns the conversations by models, with the figures of each."""
    for run in made.runs:
        run.items.reader = ConversationReader(made.readings)
    names = {run.items.path: run.label if len(made.runs) > 1 else "" for run in made.runs}
    matrix = Matrix([run.items for run in made.runs], names)
    figures = {}
    for sample in made.samples:
        run, pair = made.origin[sample.pair]
        figures[run.items.path, pair] = {
            trace.conversation: {
                "score": each.score,
                "Source re-use": each.srr,
                "Confidence": each.confidence,
                "Stance changes": each.changes,
                "Turns missing": trace.missing or None,
            }
            for trace, each in sample.held
        }
    matrix.measure(figures)
    return matrix


def _title(made: ConversationScores) -> str:
    models = list(made.models)
    who = models[0] if len(models) == 1 else f"{len(models)} models"
    talks = {trace.conversation for sample in made.samples for trace, _ in sample.held}
    talks |= {name for sample in made.samples for name in sample.unanswered}
    return f"Chameleon: {who} in {len(talks):,} {'conversation' if len(talks) == 1 else 'conversations'}"


def _summary(contents: PageContents) -> str:
    return "".join(
        (
            state_html(
                contents.standings,
                "turn",
                _PAIRS,
                "Conversations with turns missing enter no mean.",
                contents.unmeasured,
            ),
            table_html(_scores(contents.tables), f"{_PREFIX}scores"),
            '<p class="note">Means ± standard deviations across scored conversations. Ranks are by the mean score '
            "among the models at one temperature, the lowest first; above a tenth of its conversations unscored a "
            "model has none, nor have models whose order would be another with re-use 0 for turns without a source. "
            "The Chameleon score is eq. (2), from 0 to 1; lower is steadier: below 0.3 is low, up to 0.5 moderate, "
            "above it high. A source re-use rate below 0.3 is high diversity, above 0.6 low. "
            f"{in_html(OVER['conversations'])}</p>",
            standings_html(contents.standings, f"{_PREFIX}answers-summary"),
            choices_html(contents.choices),
        )
    )


def _headline(contents: PageContents) -> Headline:
    """Returns the first screen: the Chameleon score of each model, beside the paper's where the data are not those of
    the package."""
    [table] = [table for table in contents.tables if table.name == _SCORES]
    scores = [
        HeadlineScore(
            _pair_of(row),
            number_of(row["score"]),
            number_of(row["low"]),
            number_of(row["high"]),
            row["source"] == PUBLISHED,
        )
        for row in table.records()
        if row["model"] != OVERALL and not (row["source"] == PUBLISHED and contents.of_samples)
    ]
    return Headline(
        sentence="Chameleon score: how unstable a model’s stance is over a conversation with search, from 0 to 1. It "
        "grows with changes of stance, with the confidence in them, and with sources that are used again. Lower is "
        "steadier.",
        score="Chameleon score",
        kind="rate",
        scores=tuple(scores),
        most=1.0,
        is_low_first=True,
        paper=("The Chameleon Nature of LLMs", "https://arxiv.org/abs/2510.16712"),
    )


def _pair_of(row: Mapping[str, Cell]) -> str:
    """Returns a row's model with its temperature, if one was sent."""
    return str(row["model"] if row["temperature"] == _NO_TEMPERATURE else f"{row['model']} @ {row['temperature']}")


def _scores(tables: Sequence[Table]) -> Table:
    """Returns table 1 without published and overall rows, each mean and its deviation in one cell."""
    [table] = [table for table in tables if table.name == _SCORES]
    rows = []
    # The steadiest first, those without a score last.
    for row in sorted(table.records(), key=lambda row: (row["score"] is None, number_of(row["score"]) or 0.0)):
        if row["source"] == PUBLISHED or row["model"] == OVERALL:
            continue
        scored, unscored = int(row["conversations"] or 0), int(row["unscored"] or 0)
        interval = interval_in_a_cell("rate", row["low"], row["high"], row["interval"])
        rows.append(
            (
                *(_pair_of(row), _spread(row, "score"), interval, row["rank"], _spread(row, "srr")),
                *(row["uncited_turns"], _spread(row, "confidence"), _spread(row, "changes", "score")),
                f"{scored:,} of {scored + unscored:,}",
            )
        )
    columns = (
        *(MODEL, Column("score", "Chameleon score"), Column("interval", "95% interval")),
        *(Column("rank", "Rank", "count"), Column("srr", "Source re-use"), Column("uncited_turns", "Uncited", "count")),
        *(Column("confidence", "Confidence"), Column("changes", "Stance changes"), Column("conversations", "Scored")),
    )
    return Table(f"{_PREFIX}scores", "Scores of Chameleon", "", columns, tuple(rows))


def _spread(row: Mapping[str, Cell], name: str, kind: Kind = "rate") -> str | None:
    mean, std = row[name], row[f"{name}_std"]
    if mean is None:
        return None
    return shown_value(kind, mean) if std is None else f"{shown_value(kind, mean)}\u00a0±\u00a0{shown_value(kind, std)}"
