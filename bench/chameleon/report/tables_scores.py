"""Tables of conversations' figures: the paper's two, shares over its thresholds, correlations, domains, temperatures.

Owns their columns and words. `summary` computes their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

import numpy as np
from msgspec import structs

from ....metrics.chameleon.sample import KINDS, PairSample, by_model, conversations_of
from ....metrics.chameleon.summary import (
    SCORE_BANDS,
    SRR_BANDS,
    THRESHOLDS,
    Spread,
    bands,
    by_domain,
    by_temperature,
    related,
    share_over,
    spread,
    spread_of,
)
from ....report.interval_cells import OVER, interval_cells, interval_columns
from ....report.table import MODEL, Cell, Column, Kind, Table
from .panel import ConversationScores
from .published import OVERALL

_ROUNDING = 1e-12
_PARTNERS = {"confidence": "confidence", "changes": "stance changes"}
TEMPERATURE = Column("temperature", "Temp.")
CONVERSATIONS = Column("conversations", "Conversations", "count")
UNSCORED = Column("unscored", "Unscored", "count")
INTERVAL_NOTE = OVER["conversations"]
EQUATION_REMARK = (
    "The paper's table 1 can't come from its eq. (2): for GPT-4o-mini at temperature 0 the printed 9.152 stance "
    "changes in 14 steps and the printed SRR of 0.797 alone give at least 0.595, and the printed score is 0.512. This "
    "report's scores are eq. (2); the published rows are beside them for comparison only."
)
UNCITED_NOTE = (
    "Uncited turns have no source; “score with 0” counts them as re-use 0. The printed SRR of Gemini-2.5-Flash, "
    "0.066 ± 0.206, fits a model that mostly cites nothing and whose turns count so: an inference."
)
OTHER = "other_confidence"
CONFIDENCE_NOTE = (
    "Confidence is a conversation's mean over its turns, and “other confidence” over those alone that change its "
    "stance (conversations without such a turn have none)."
)
_WITHOUT_MEAN = ("low", "high", "interval", "rank", "uncited_turns", "conversations", "unscored")
_UNITS: dict[str, Kind] = {"score": "rate", "srr": "rate", "confidence": "rate", "changes": "score"}
_TITLES = {"score": "Chameleon score", "srr": "Source re-use", "confidence": "Confidence", "changes": "Stance changes"}


def scores_table(panel: ConversationScores) -> Table:
    columns = [TEMPERATURE, MODEL]
    for kind in KINDS:
        columns += _columns_of(kind)
        if kind == "score":
            columns.append(Column("rank", "Rank", "count"))
        if kind == "srr":
            columns += [Column("uncited_turns", "Uncited", "count"), Column("score_zero", "Score with 0", "rate")]
        if kind == "confidence":
            columns += [Column(OTHER, "Other confidence", "rate"), Column(f"{OTHER}_std", "Std", "rate")]
    columns += [CONVERSATIONS, UNSCORED]
    rows = [_scores(panel, sample) for sample in panel.samples]
    if len(rows) > 1 and panel.is_of_one_manner:
        rows.append((None, OVERALL, *_overall(rows, [column.name for column in columns])))
    return Table(
        "chameleon-table-1-scores",
        "Table 1: Chameleon score, source re-use rate, confidence and stance changes",
        "Mean and standard deviation across scored conversations; the standard deviation is the sample's (n − 1). "
        f"{CONFIDENCE_NOTE} "
        "“Overall” is the mean of the rows above it, as in the paper but for its stance changes, whose rows have a "
        f"mean of 5.487 ± 2.613. {UNCITED_NOTE} {INTERVAL_NOTE} {EQUATION_REMARK}",
        tuple(columns),
        tuple(rows),
    )


def _scores(panel: ConversationScores, sample: PairSample) -> tuple[Cell, ...]:
    row: list[Cell] = [sample.pair.treatment, sample.pair.model]
    for kind in KINDS:
        row += _cells_of(kind, spread_of([sample], kind))
        if kind == "score":
            row.append(panel.ranks[sample.pair])
        if kind == "srr":
            row += [sample.summed("uncited_turns"), spread_of([sample], "score_zero").mean]
        if kind == "confidence":
            other = spread_of([sample], "change_confidence")
            row += [other.mean, other.std]
    return (*row, len(sample.figures), len(sample.unscored))


def _columns_of(kind: str) -> list[Column]:
    """Returns the columns of a figure: its mean, its standard deviation and, of scores alone, its interval."""
    columns = [Column(kind, _TITLES[kind], _UNITS[kind]), Column(f"{kind}_std", "Std", _UNITS[kind])]
    return columns + list(interval_columns("rate")) if kind == "score" else columns


def _cells_of(kind: str, figure: Spread) -> list[Cell]:
    return [figure.mean, figure.std, *(interval_cells(figure.interval, "rate") if kind == "score" else ())]


def _overall(rows: Sequence[tuple[Cell, ...]], names: Sequence[str]) -> Iterator[Cell]:
    """Yields the means over all rows; None for intervals, ranks and numbers of conversations, whose mean says
    nothing."""
    for at, name in enumerate(names[2:], 2):
        values = [float(value) for row in rows if isinstance(value := row[at], int | float)]
        yield fmean(values) if values and name not in _WITHOUT_MEAN else None


def domains_table(panel: ConversationScores) -> Table:
    """Returns table 2, with the scores of each model in a domain below the domain's own row."""
    questions: dict[str, dict[str, int]] = {}
    for sample in panel.samples:
        for trace, _ in sample.held:
            turns = questions.setdefault(trace.domain, {})
            turns[trace.conversation] = max(trace.asked, turns.get(trace.conversation, 0))
    columns = [Column("domain", "Domain"), MODEL, CONVERSATIONS, Column("turns", "Questions", "count")]
    columns += [column for kind in KINDS for column in _columns_of(kind)]
    scored = by_domain(panel.samples)
    nothing = [None] * (len(columns) - 4)
    rows: list[tuple[Cell, ...]] = []
    for domain, turns in sorted(questions.items(), key=lambda each: (not each[0], each[0].casefold())):
        rows.append((domain or None, None, len(turns), sum(turns.values()), *nothing))
        some = scored.get(domain, [])
        rows += [_in_domain(domain, model, some) for model in dict.fromkeys(sample.pair.model for sample, _ in some)]
    if len(questions) > 1:
        totals = (sum(map(len, questions.values())), sum(sum(turns.values()) for turns in questions.values()))
        rows.append(("Total", None, *totals, *nothing))
    return Table(
        "chameleon-table-2-domains",
        "Table 2: conversations, questions and scores by domain",
        "Every conversation that any model was asked about and that has a turn. The paper's printed total of 17,770 "
        "questions is a misprint: its rows add up to 17,700. A model's row has its scored conversations of all "
        f"temperatures, with mean and standard deviation (n − 1) across them. {INTERVAL_NOTE}",
        tuple(columns),
        tuple(rows),
    )


def _in_domain(domain: str, model: str, every: Sequence[tuple[PairSample, list[int]]]) -> tuple[Cell, ...]:
    some = [(sample, kept) for sample, kept in every if sample.pair.model == model]
    names = [sample.conversations[row] for sample, kept in some for row in kept]
    row: list[Cell] = [domain or None, model, len(names), None]
    for kind in KINDS:
        row += _cells_of(kind, spread(names, np.concatenate([sample.column(kind)[kept] for sample, kept in some])))
    return tuple(row)


def shares_table(panel: ConversationScores) -> Table:
    rows = []
    for sample in panel.samples:
        names, score = conversations_of([sample]), sample.column("score")
        over = [share_over(names, score, bound) for bound in THRESHOLDS]
        rows.append(
            (
                sample.pair.model,
                sample.pair.treatment,
                int((~np.isnan(score)).sum()),
                *(cell for share in over for cell in (share.mean, *interval_cells(share.interval, "share"))),
                *bands(score, SCORE_BANDS),
                *bands(sample.column("srr"), SRR_BANDS),
            )
        )
    return Table(
        "chameleon-shares",
        "How many conversations are unstable",
        "Shares of conversations with a score above 0.6 and above 0.7, and how many fall into the paper's bands: a "
        "score below 0.3 is low, up to 0.5 moderate, above it high; a source re-use rate below 0.3 is high diversity, "
        f"up to 0.6 moderate, above it low. The paper's shares are of no stated temperature. {INTERVAL_NOTE}",
        (
            *(MODEL, TEMPERATURE, CONVERSATIONS),
            *(Column("over_6", "Over 0.6", "share"), *_share_ends("6")),
            *(Column("over_7", "Over 0.7", "share"), *_share_ends("7")),
            Column("score_low", "Score low", "count"),
            Column("score_moderate", "moderate", "count"),
            Column("score_high", "high", "count"),
            Column("diversity_high", "Diversity high", "count"),
            Column("diversity_moderate", "moderate", "count"),
            Column("diversity_low", "low", "count"),
        ),
        tuple(rows),
    )


def _share_ends(bound: str) -> list[Column]:
    return [structs.replace(column, name=f"{column.name}_{bound}") for column in interval_columns("share")]


def correlations_table(panel: ConversationScores) -> Table:
    is_pooled = len(panel.models) != 1 and panel.is_of_one_manner
    groups = [("all models", related(panel.samples))] if is_pooled else []
    groups += [("within models", related(panel.samples, is_within=True))] if is_pooled else []
    groups += [(model, related(some)) for model, some in panel.models.items()]
    rows = []
    for whose, correlations in groups:
        for partner, each in correlations.items():
            ends = interval_cells(each, "correlation")
            rows.append((whose, _PARTNERS[partner], each.rows, each.clusters, each.r, *ends, each.p))
    columns = (
        Column("whose", "Over"),
        Column("partner", "SRR and"),
        Column("conversations", "Conversations in all", "count"),
        Column("distinct", "Different ones", "count"),
        Column("r", "r", "correlation"),
        *interval_columns("correlation"),
        Column("p", "p", "p"),
    )
    return Table(
        "chameleon-correlations",
        "Does source re-use go with confidence and with stance changes?",
        "Pearson's r of a conversation's source re-use rate with its mean confidence and with its number of stance "
        "changes, over scored conversations. Several models and temperatures have the same ones, so interval and "
        "p are over conversations, both by Student's t on Fisher's z with whole conversations left out in turn: p is "
        "below 0.05 where the interval excludes 0. Fewer than 10 conversations have neither. Over all models r also "
        "holds what differs between models; “within models” takes each model's means off its rows first (and a degree "
        "of freedom a model): that alone says how the figures go together. The paper tells p < 0.05, of the t "
        "distribution as if all rows were independent. The rows marked as an inference follow from its table 1 alone, "
        "from the means and standard deviations of nine rows of equally many conversations: r over all models if it "
        "were 0 within every row, and r within the rows if the published r is over all of them.",
        tuple(columns),
        tuple(rows),
    )


def temperatures_table(panel: ConversationScores) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for model, some in by_model(panel.samples, and_effort=True).items():
        effect = by_temperature(some)
        mean = fmean(effect.means) if effect.means else None
        temperatures = ", ".join(sample.pair._replace(effort=None).treatment for sample in some)
        moved = map(_settled, (effect.span, effect.std, effect.variance, effect.within))
        rows.append((model, temperatures, mean, *moved, effect.conversations))
    if len(rows) > 1 and panel.is_of_one_manner:
        means = [float(row[2]) for row in rows if isinstance(row[2], float)]
        rows.append((OVERALL, None, fmean(means) if means else None, *[None] * 5))
    return Table(
        "chameleon-temperatures",
        "Does the temperature matter?",
        "The mean score over temperatures; then how far the mean at each temperature moves (largest minus smallest, "
        "standard deviation, variance; n − 1), and how far one conversation's own score does (variance, mean over the "
        "conversations scored at every temperature). The paper calls the variance “< 0.004” for all models without "
        "saying of what; the means that its table 1 prints have standard deviations of 0.0015, 0.0012 and 0.0035.",
        (
            MODEL,
            Column("temperatures", "Temperatures"),
            Column("mean", "Mean score", "rate"),
            Column("span", "Range of means", "small"),
            Column("std", "Std of means", "small"),
            Column("variance", "Variance of means", "small"),
            Column("within", "Variance within a conversation", "small"),
            Column("conversations", "Conversations", "count"),
        ),
        tuple(rows),
    )


def _settled(value: float | None) -> float | None:
    """Returns 0.0 for a value below 1e-12, others and None unchanged: equal scores can differ by a rounding, while real
    differences, which are roots of fractions of turn counts, are never that small."""
    return 0.0 if value is not None and value < _ROUNDING else value
