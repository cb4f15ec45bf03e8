"""The general part of a page: scores with intervals, groups, comparisons, failures, cost, and the answers behind them.

Owns the order of these sections and their words. The benchmark decides what a score is.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....engine.pairs import PairCounts, failures_of
from ....report.headline import Headline, HeadlineScore
from ....report.html_tables import table_html
from ....report.interval_cells import FEW, cells_of_entry, interval_columns
from ....report.labels import folder_labels
from ....report.sections import PageContents, Section, figure_html, remarks_html, table_section
from ....report.standings import AnswerStatus, origins_html, standings_html, state_html
from ....report.table import MODEL, Cell, Column, Table, cells_in, table_of
from ..door.rescored import rescorings_in
from .chart import scores_figure
from .item_section import item_section
from .items import Matrix
from .provenance import command_paths, origin_of
from .runs import ReadRun
from .unlike_sources import unlike
from .variants import COMPARED, variant_tables

if TYPE_CHECKING:
    from ..door.benchmark import ItemBenchmark

_ITEMS = Column("items", "Items", "count")


def general_part(
    benchmark: ItemBenchmark[Any], runs: Sequence[ReadRun], readings: Mapping[str, Any], flags: Sequence[str]
) -> PageContents:
    """Returns the report that every benchmark has on these runs. `readings` are those given; `flags` are the words that
    `report` was given, for the command that makes the page again."""
    labels = folder_labels([run.path for run in runs])
    difference = (
        ""
        if benchmark.compares_runs
        else unlike(
            {labels[run.path]: benchmark.manner(run.path, {benchmark.name: run.scores}, readings) for run in runs}
        )
    )
    names = {run.path: labels[run.path] if len(runs) > 1 else "" for run in runs}
    standings = tuple(standing for run in runs for standing in _standings(run, names[run.path]))
    unmeasured = tuple(sentence for run in runs for sentence in run.scores.get("unmeasured", ()))
    warnings = [f"Not compared: {difference}."] if difference else []
    remarks = tuple(dict.fromkeys([*warnings, *(remark for run in runs for remark in _remarks(run))]))
    tables = _tables(benchmark, runs, names)
    origins = [origin_of(benchmark, run.manifest, labels[run.path], run.answers) for run in runs]
    command = shlex.join(["millstream", "report", *command_paths(labels), *flags])
    prefix = f"{benchmark.name}-"
    scores, *rest = tables
    variants = variant_tables(benchmark.name, _entries(runs, names))
    behind = _drawn(benchmark, runs, names)
    most = _most(runs)
    figure = scores_figure(behind, benchmark.name, "Scores and intervals", most)
    sections = [
        Section(
            f"{prefix}summary",
            "Summary",
            state_html(standings, unmeasured=unmeasured)
            + table_html(scores, f"{prefix}scores-summary")
            + standings_html(standings, f"{prefix}answers-summary"),
        )
    ]
    if variants:
        sections.append(Section(f"{prefix}by-variant", "Variants of the prompt", "".join(map(table_section, variants))))
    if remarks:
        sections.append(Section(f"{prefix}warnings", "Read with care", remarks_html(remarks)))
    if figure.spec is not None:
        sections.append(Section(f"{prefix}figures", "Scores and intervals", figure_html(figure, behind)))
    sections.append(Section(f"{prefix}tables", "Behind the scores", "".join(map(table_section, rest))))
    items, packs = item_section(Matrix([run.items for run in runs], names), benchmark.name)
    sections.append(items)
    sections.append(Section(f"{prefix}origin", "How it was made", origins_html(origins, command)))
    return PageContents(
        name=benchmark.title,
        title=_title(benchmark, runs),
        headline=_headline(benchmark, behind, most),
        sections=tuple(sections),
        tables=(*tables, *variants, behind),
        figures=(figure,),
        remarks=remarks,
        standings=standings,
        unmeasured=unmeasured,
        unlike=difference,
        packs=packs,
    )


def _most(runs: Sequence[ReadRun]) -> float | None:
    """Returns the largest possible score of these runs; None if it is not known."""
    bounds = [run.scores.get("within") for run in runs]
    # The benchmark owns its scores: it may use this name for something else.
    limits = [bound[1] for bound in bounds if isinstance(bound, list) and len(bound) == 2]
    whole = len(limits) == len(runs) and all(isinstance(each, int | float) for each in limits)
    return max(limits) if limits and whole else None


def _headline(benchmark: ItemBenchmark[Any], drawn: Table, most: float | None) -> Headline:
    """Returns the first screen: the score of each model. `drawn`: the scores and their intervals; `most`: the largest
    score possible."""
    scale = "by the benchmark’s own rule" if most is None else f"where {most:g} is the best"
    return Headline(
        sentence=f"Each model’s score in {benchmark.title}: the mean over the items, {scale}.",
        score="Score",
        kind="small",
        scores=tuple(HeadlineScore(*row[:1], *row[2:5]) for row in drawn.rows if row[1] is None),  # type: ignore[arg-type]
        most=most,
    )


def _title(benchmark: ItemBenchmark[Any], runs: Sequence[ReadRun]) -> str:
    models = {pair.model for run in runs for pair in run.pairs}
    items = len({item for run in runs for item in run.items.items})
    who = next(iter(models)) if len(models) == 1 else f"{len(models)} models"
    return f"{benchmark.title}: {who} on {items:,} {'item' if items == 1 else 'items'}"


def _in_run(model: object, run: str) -> str:
    """Returns a model's name, behind that of its run if it has one."""
    return f"{run}: {model}" if run else str(model)


def _standings(run: ReadRun, where: str) -> Iterator[AnswerStatus]:
    for pair in run.pairs:
        ended = run.counted.of(pair)
        seen = ended.answered + ended.failures
        yield AnswerStatus(
            model=_in_run(pair, where),
            expected=seen if run.lines is None else max(run.lines, seen),
            answered=ended.answered,
            refused=ended.refused,
            failed=dict(sorted(ended.failed.items())),
            is_told=run.lines is not None,
            steps=run.counted.roles.get(pair, {}),
            held=ended.held,
        )


def _remarks(run: ReadRun) -> Iterator[str]:
    yield from (f"The answers were {each.sentence}." for each in rescorings_in(run.manifest)[-1:])
    yield from run.scores.get("remarks", ())
    for entry in run.scores.get("models", {}).values():
        yield from entry.get("remarks", ())


def _tables(benchmark: ItemBenchmark[Any], runs: Sequence[ReadRun], names: Mapping[Any, str]) -> list[Table]:
    """Returns the table of scores, then those of the other tables that have rows."""
    tables = [_scores(benchmark, runs, names)]
    others = (
        _groups(benchmark, runs, names),
        _comparisons(benchmark, runs, names),
        _answers(benchmark, runs, names),
    )
    return tables + [table for table in others if table.rows]


def _entries(runs: Sequence[ReadRun], names: Mapping[Any, str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for run in runs:
        for model, entry in run.scores.get("models", {}).items():
            yield _in_run(model, names[run.path]), entry


def _drawn(benchmark: ItemBenchmark[Any], runs: Sequence[ReadRun], names: Mapping[Any, str]) -> Table:
    """Returns the table of all scores as numbers: the main one of each model, which the figure draws, then those that
    answers have by name."""
    rows: list[tuple[Cell, ...]] = []
    for model, entry in _entries(runs, names):
        mean = entry.get("mean", entry.get("score"))
        rows.append((model, None, mean, *cells_of_entry(entry), entry.get("items_scored")))
        # The benchmark owns the entry: it may use these names for something else.
        named = [each for key in ("scores", "variants", "figures") if isinstance(each := entry.get(key), Mapping)]
        for name, figure in [pair for each in named for pair in each.items()]:
            if isinstance(figure, Mapping) and "ci95" in figure:
                value = figure.get("mean", figure.get("value"))
                rows.append((model, name, value, *cells_of_entry(figure), figure.get("items")))
    columns = (MODEL, Column("name", "Name"), Column("score", "Score", "small"), *interval_columns("small"), _ITEMS)
    note = "Intervals are over items. Rows with a name: other scores, a prompt’s variants, figures over all answers."
    return Table(f"{benchmark.name}-figure-scores", "Scores and their intervals", note, columns, tuple(rows))


def _scores(benchmark: ItemBenchmark[Any], runs: Sequence[ReadRun], names: Mapping[Any, str]) -> Table:
    columns = tuple(map(Column, _keys(benchmark.columns), benchmark.columns))
    rows = tuple((model, *benchmark.cells(entry)) for model, entry in _entries(runs, names))
    return Table(
        f"{benchmark.name}-scores",
        "Scores",
        f"Of each model, as scores.json has them; intervals are over items: {FEW}.",
        (MODEL, *columns),
        rows,
    )


def _keys(titles: Sequence[str]) -> list[str]:
    """Returns the columns' names in the CSV file, from their titles; a number tells equal ones apart."""
    keys = ["_".join(re.findall("[a-z0-9]+", title.lower())) or "column" for title in titles]
    taken = Counter(["model", *keys])
    return [key if taken[key] == 1 else f"{key}_{at}" for at, key in enumerate(keys, 1)]


def _groups(benchmark: ItemBenchmark[Any], runs: Sequence[ReadRun], names: Mapping[Any, str]) -> Table:
    rows = [
        (group, model, figure)
        for model, entry in _entries(runs, names)
        for group, figure in (entry.get("groups") or {}).items()
    ]
    return table_of(
        f"{benchmark.name}-groups",
        "Scores by group",
        "The same figures over the items of each group alone.",
        sorted(rows, key=lambda row: str(row[:2])),
        {
            Column("group", "Group"): lambda row: row[0],
            MODEL: lambda row: row[1],
            Column("mean", "Score", "small"): lambda row: row[2].get("mean", row[2].get("score")),
            **cells_in(interval_columns("small"), lambda row: cells_of_entry(row[2])),
            _ITEMS: lambda row: row[2].get("items"),
        },
    )


def _comparisons(benchmark: ItemBenchmark[Any], runs: Sequence[ReadRun], names: Mapping[Any, str]) -> Table:
    return table_of(
        f"{benchmark.name}-comparisons",
        "Models compared",
        "Paired over the items that both models have a score for.",
        ((names[run.path], pair) for run in runs for pair in run.scores.get("pairs", ())),
        {
            Column("a", "Model"): lambda row: _in_run(row[1]["a"], row[0]),
            Column("b", "Minus"): lambda row: _in_run(row[1]["b"], row[0]),
            **COMPARED,
        },
    )


def _answers(benchmark: ItemBenchmark[Any], runs: Sequence[ReadRun], names: Mapping[Any, str]) -> Table:
    return table_of(
        f"{benchmark.name}-answers",
        "Answers and their cost",
        "`millstream retry` asks again what failed for good. Tokens are those of calls that were sent; answers of the "
        "cache cost nothing. A judge’s call that several models need is sent once; the first has its cost.",
        (
            (_in_run(pair, names[run.path]), run.counted.of(pair), run.counted.judging.get(pair))
            for run in runs
            for pair in run.pairs
        ),
        {
            MODEL: lambda row: row[0],
            Column("answered", "Answers", "count"): lambda row: row[1].answered,
            Column("cached", "From the cache", "count"): lambda row: row[1].cached,
            Column("truncated", "Cut off", "count"): lambda row: row[1].truncated,
            Column("failures", "Failed for good", "count"): lambda row: row[1].failures,
            Column("reasons", "Why, most often"): lambda row: _reasons(row[1]),
            Column("cost", "Cost"): lambda row: _dollars(row[1].cost),
            Column("cost_judge", "of which judges"): lambda row: None if row[2] is None else _dollars(row[2].cost),
            Column("input", "Input tokens sent", "count"): lambda row: row[1].input_tokens,
            Column("output", "Output tokens sent", "count"): lambda row: row[1].output_tokens,
        },
    )


def _reasons(ended: PairCounts) -> str | None:
    reasons = failures_of([ended]).items()
    return "; ".join(f"{kind} {number:,}{f': {why.said}' if why else ''}" for kind, (number, why) in reasons) or None


def _dollars(cost: float | None) -> str | None:
    return None if cost is None else f"${cost:,.4f}"
