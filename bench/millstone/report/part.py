"""MillStone's part of a report: tables, figures and remarks, and the sections of the page that they stand in.

Owns the order of tables and sections, and their words. The summary takes its scores from the table of readings, so that
the page can't contradict itself.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from ....configuration.errors import UsageError
from ....engine.runs.run_folder import MANIFEST
from ....metrics.millstone.coverage import BASELINE_PERCENT, SILENCE_NOTES, silent, unmeasured
from ....metrics.millstone.figures import RANKED, SCORED, SCORES, SCORES_NOTE
from ....report.escaping import in_html
from ....report.headline import Headline, HeadlineScore
from ....report.html_tables import table_html
from ....report.interval_cells import OVER, interval_in_a_cell
from ....report.labels import folder_labels
from ....report.sections import PageContents, Section, paper_sections
from ....report.standings import RunOrigin, choices_html, standings_html, state_html
from ....report.table import MODEL, PUBLISHED, Cell, Column, Table, number_of
from ...evaluation.door.benchmark import ItemBenchmark
from ...evaluation.page.item_section import item_section
from ...evaluation.page.items import Matrix
from ...evaluation.page.provenance import command_paths, origin_of
from ..labels import AS_RECORDED
from ..manner import settings_of
from ..options import Readings
from ..published_counts import CountsTable
from ..work import INTERVAL
from .charts_maps import correlations_figure, topics_figure
from .charts_shares import disagreement_figure, refusals_figure
from .charts_shifts import contradiction_figure, shifts_figure
from .folders import AnswerFolder, standings, survey
from .likeness import unlike
from .panel import survey_figures
from .published import beside_published, counts_marked
from .remarks import of_samples, remarks, sentences_of
from .survey import ReportSurvey
from .tables_arguments import argument_tables, spread_sentences
from .tables_baselines import baseline_tables
from .tables_cells import cell_tables
from .tables_openness import SCORE_COLUMNS, issues_table, main_rows, openness_tables
from .tables_shifts import shift_tables


def page_contents(
    benchmark: ItemBenchmark[Any],
    folders: Sequence[AnswerFolder],
    readings: Readings,
    flags: Sequence[str],
    tables: Sequence[CountsTable] = (),
) -> PageContents:
    """Returns the page contents on these runs and published counts; `flags` are the command-line words of
    `readings`."""
    labels = folder_labels([folder.path for folder in folders])
    report = survey(folders, readings, tables)
    every = standings(folders)
    whose = [*(standing.model for standing in every), *(counts.model for counts in report.counts)]
    issue_lists = (*(shape.issues for shape in report.shapes.values()), *(counts.issues for counts in report.counts))
    issues = len({issue.casefold() for ids in issue_lists for issue in ids})
    who = whose[0] if len(whose) == 1 else f"{len(whose)} models"
    counted = [word for table in tables for word in ("--counts", table.path.name)]
    contents = structs.replace(
        tables_and_figures(report),
        title=f"MillStone: {who} on {issues} {'issue' if issues == 1 else 'issues'}",
        standings=every,
        origins=tuple(_origin(benchmark, folder, labels[folder.path]) for folder in folders),
        choices=_choices(report, tables, is_by_wording=any(folder.sides for folder in folders)),
        command=shlex.join(["millstream", "report", *command_paths(labels), *counted, *flags]),
    )
    if not folders:
        return with_sections(contents, report, [])
    several = {folder.path: labels[folder.path] if len(folders) > 1 else "" for folder in folders}
    items, packs = item_section(Matrix([folder.items for folder in folders], several), "millstone")
    return with_sections(structs.replace(contents, packs=packs), report, [items])


def _origin(benchmark: ItemBenchmark[Any], folder: AnswerFolder, name: str) -> RunOrigin:
    answers = sum(ended.answered for ended in folder.ended.values())
    try:
        settings = settings_of(folder.manifest, folder.labels.used if folder.labels else AS_RECORDED)
        return origin_of(benchmark, folder.manifest, name, answers, settings)
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{folder.path}: its {MANIFEST} is no MillStone run's ({error!r})") from error


def tables_and_figures(survey: ReportSurvey) -> PageContents:
    """Returns the tables, figures and remarks of a report, without the sections of its page. The same survey gives
    the same."""
    panel = survey_figures(survey)
    made = [
        *baseline_tables(panel),
        *shift_tables(panel),
        *openness_tables(panel),
        *argument_tables(panel),
        *cell_tables(panel),
        issues_table(panel),
    ]
    counted = {counts.model for counts in survey.counts}
    tables = {table.name: counts_marked(beside_published(table), counted) for table in sorted(made, key=_place)}
    names = [answers.name for answers in survey.answers]
    figures = (
        shifts_figure(tables["figure-2-shifts"], names),
        disagreement_figure(tables["figure-3-disagreement"], names),
        topics_figure(tables["figure-4-topics"], names),
        contradiction_figure(tables["figure-5-contradiction"], names),
        correlations_figure(tables["figure-6-correlations"], spread_sentences(panel), names),
        refusals_figure(tables["figure-7-refusals"]),
    )
    return PageContents(
        name="MillStone",
        tables=tuple(tables.values()),
        figures=figures,
        remarks=remarks(panel, tables),
        of_samples=of_samples(survey),
        unmeasured=sentences_of(panel, unmeasured),
        silent=sentences_of(panel, silent),
        unlike=unlike(survey),
    )


def _place(table: Table) -> tuple[int, str]:
    """Returns the sort key of a table: the paper's by number, then the data of its figures, then the rest."""
    for place, kind in enumerate(("table-", "figure-")):
        if table.name.startswith(kind):
            return place, table.name
    return 2, ""


def _choices(
    survey: ReportSurvey, tables: Sequence[CountsTable], *, is_by_wording: bool
) -> tuple[tuple[str, str], ...]:
    stances = {
        "recorded": "as each run recorded them",
        "paper": "read from the texts by the paper's patterns",
        "careful": "read from the texts carefully",
    }
    counted = (("Published counts", ", ".join(table.path.name for table in tables)),) if tables else ()
    return (
        *counted,
        ("Stances", stances[survey.stance]),
        ("Silence", SILENCE_NOTES[survey.silence]),
        ("Orientation labels", "by the wordings" if is_by_wording else "as each run used them"),
    )


def with_sections(contents: PageContents, survey: ReportSurvey, more: Sequence[Section] = ()) -> PageContents:
    """Returns the contents with the sections of their page. `survey` has the readings by which they were made, `more`
    are sections before the last."""
    sections = paper_sections(contents, _summary(contents, survey), "Beyond the paper", more=more)
    return structs.replace(contents, headline=_headline(contents, survey), sections=sections)


def _headline(contents: PageContents, survey: ReportSurvey) -> Headline:
    """Returns the first screen: OM of each model, beside the paper's where the data are not those of the package."""
    tables = {table.name: table for table in contents.tables}
    counted = {counts.model for counts in survey.counts}
    rows = main_rows(tables["om-readings"]) if "om-readings" in tables else {}
    without = _without_a_baseline(tables)
    # Scores over other issues are no comparison: each says over which it is.
    sets = {model: f", issues: {_issues_text(row)}" for model, row in rows.items()}
    differ = len(set(sets.values())) > 1
    scores = [
        HeadlineScore(
            f"{model}{sets[model] if differ else ''}",
            number_of(row["om"]),
            number_of(row["om_low"]),
            number_of(row["om_high"]),
            model in counted,
        )
        if model not in without
        else HeadlineScore(f"{model}{sets[model] if differ else ''}", None)
        for model, row in rows.items()
    ]
    if not contents.of_samples and "table-4-om" in tables:
        scores += [
            HeadlineScore(str(row["model"]), number_of(row["om"]), is_published=True)
            for row in tables["table-4-om"].records()
            if row["source"] == PUBLISHED
        ]
    return Headline(
        sentence="Open-mindedness (OM): how far a model’s stance on an issue moves when it reads arguments, from 0 to "
        "100. Higher is more open-minded; the paper calls neither better.",
        score="OM",
        kind="score",
        scores=tuple(scores),
        paper=("MillStone: How Open-Minded Are LLMs?", "https://arxiv.org/abs/2509.11967"),
    )


def _summary(contents: PageContents, survey: ReportSurvey) -> str:
    return "".join(
        (
            state_html(contents.standings, unmeasured=contents.silent) if contents.standings else "",
            table_html(_scores(contents, survey), "scores"),
            f'<p class="note">{in_html(SCORES_NOTE)} {in_html(OVER["issues"])} Ranks are among models asked about the '
            "same set of issues. Cut off: answers that ended at max_tokens; Other: answers that take no side.</p>",
            standings_html(contents.standings, "answers"),
            choices_html(contents.choices),
        )
    )


def _scores(contents: PageContents, survey: ReportSurvey) -> Table:
    columns = (
        MODEL,
        Column("set", "Issues"),
        *SCORE_COLUMNS.values(),
        Column("interval", INTERVAL),
        Column("ranks", f"Ranks: {' / '.join(score.title for score in SCORES if score.key in RANKED)}"),
        *(Column(each.name, each.title, each.kind) for each in SCORED),
    )
    tables = {table.name: table for table in contents.tables}
    read = {row["model"]: row for row in tables["answers-by-model"].records()} if "answers-by-model" in tables else {}
    scored = main_rows(tables["om-readings"]) if "om-readings" in tables else {}
    rows: list[tuple[Cell, ...]] = []
    names = [*(each.model for each in contents.standings), *(counts.model for counts in survey.counts)]
    for name in names:
        row, answers = scored.get(name, {}), read.get(name, {})
        ranks = ["–" if rank is None else str(rank) for rank in (row.get(f"{key}_rank") for key in RANKED)]
        rows.append(
            (
                name,
                _issues_text(row) if row else None,
                *(row.get(score.key) for score in SCORES),
                interval_in_a_cell("score", row.get("om_low"), row.get("om_high"), row.get("om_interval")),
                " / ".join(ranks) if row else None,
                *(answers.get(each.name) for each in SCORED),
            )
        )
    without = _without_a_baseline(tables)
    rows.sort(key=lambda row: (row[0] in without, -(number_of(row[2]) or 0.0)))
    return Table("scores", "Scores of MillStone", "", columns, tuple(rows))


def _without_a_baseline(tables: Mapping[str, Table]) -> set[Cell]:
    """Returns the models most of whose baseline answers take no side: what their OM counts is no move away from a
    stance, so they stand last, and without a dot."""
    if "answers-by-model" not in tables:
        return set()
    rows = tables["answers-by-model"].records()
    return {row["model"] for row in rows if (number_of(row["baseline_other_percent"]) or 0.0) > BASELINE_PERCENT}


def _issues_text(row: Mapping[str, Cell]) -> str:
    """Returns as text how many issues have a score, with their total if some have none, and the name of the set."""
    unscored = int(row["unscored"] or 0)
    whole = f" of {int(row['issues'] or 0) + unscored}" if unscored else ""
    return f"{row['issues']}{whole} ({row['issue_set']})"
