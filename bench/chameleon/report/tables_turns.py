"""Tables behind figures 3 to 5, of single turns and their problems, and of every conversation.

Owns their columns and words. `density`, `summary` and the traces' troubles have their numbers.
"""

from __future__ import annotations

from typing import NamedTuple

from ....format import listed_counts
from ....metrics.chameleon.figures import ConversationFigures
from ....metrics.chameleon.lines import STANCES, Troubles
from ....metrics.chameleon.sample import PairSample, joined
from ....metrics.chameleon.summary import AtTurn, acknowledged, binned, by_turn, spread_of
from ....metrics.chameleon.traces import ConversationTrace
from ....metrics.statistics.density import GRID, density
from ....report.interval_cells import interval_cells, interval_columns
from ....report.standings import AnswerStatus
from ....report.table import MODEL, Cell, Cells, Column, Table, cells_in, rows_of
from .panel import ConversationScores
from .tables_scores import CONFIDENCE_NOTE, CONVERSATIONS, INTERVAL_NOTE, TEMPERATURE

EVERY_TEMPERATURE = "all"
UNSCORED_NOTE = (
    "Unscored: a conversation with fewer than two turns of a clear stance, or with more than half of its turns "
    "without one (empty, refused, unjudged or unclear), and every one of a model to which no page gave a text."
)
_STATUSES = ("ok", "blocked", "empty", "too_large", "not_text", "timeout", "disallowed", "unreachable")


class PairAnswers(NamedTuple):
    """The turns of a model at one temperature: their figures, their problems, and what became of those asked."""

    sample: PairSample
    troubles: Troubles
    status: AnswerStatus


_ANSWERED: Cells[PairAnswers] = {
    Column("complete", "Complete", "count"): lambda each: each.sample.complete,
    Column("incomplete", "Incomplete", "count"): lambda each: each.sample.incomplete,
    Column("undefined", "Undefined", "count"): lambda each: each.sample.undefined,
    Column("no_change", "No change", "count"): lambda each: sum(not one.changes for one in each.sample.figures),
    Column("expected", "Turns expected", "count"): lambda each: each.status.expected,
    Column("missing", "Turns missing", "count"): lambda each: each.sample.missing,
    Column("failed", "Turns failed", "count"): lambda each: each.status.failures,
    Column("held", "Turns held back", "count"): lambda each: each.status.held,
    Column("kinds", "Kinds of failure"): lambda each: listed_counts(each.status.failed) or None,
    Column("steps", "Failed at"): lambda each: listed_counts(each.status.steps) or None,
    **cells_in(
        (Column(f"acknowledged_{stance}", f"Acknowledged, {stance}", "share") for stance in STANCES),
        lambda each: tuple(acknowledged(each.sample)[stance]["share"] for stance in STANCES),
    ),
}
_PROBLEMS: Cells[PairAnswers] = {
    Column("turns", "Turns", "count"): lambda each: each.troubles.turns,
    Column("refused", "Refused", "count"): lambda each: each.troubles.refused,
    Column("empty", "Empty", "count"): lambda each: each.troubles.empty,
    Column("cut", "Cut", "count"): lambda each: each.troubles.cut,
    Column("unclear", "Unclear", "count"): lambda each: each.troubles.unclear,
    Column("repaired", "Repaired", "count"): lambda each: each.troubles.repaired,
    Column("unreadable", "Unreadable", "count"): lambda each: each.troubles.unreadable,
    Column("without_number", "Without the judge’s number", "count"): lambda each: each.troubles.without_number,
    Column("unjudged", "Unjudged", "count"): lambda each: sum(
        turn.confidence is None for trace, _ in each.sample.held for turn in trace.turns
    ),
    Column("invalid_citations", "Invalid citations", "count"): lambda each: each.troubles.invalid_citations,
    Column("shortened", "Prompts shortened", "count"): lambda each: each.troubles.shortened,
    Column("without_history", "Without history", "count"): lambda each: each.sample.turns_without_history,
    Column("srr_zero", "Re-use with 0 for uncited", "rate"): lambda each: spread_of([each.sample], "srr_zero").mean,
}
_PAGES: Cells[Troubles] = {
    Column("unasked", "For the question", "count"): lambda each: each.unasked,
    Column("without_hits", "Without a hit", "count"): lambda each: each.without_hits,
    Column("search_remarks", "With remarks", "count"): lambda each: each.search_remarks,
    Column("pages", "Pages", "count"): lambda each: each.pages.total(),
    **cells_in(
        (Column(f"pages_{status}", status.replace("_", " "), "count") for status in _STATUSES),
        lambda each: [each.pages[status] for status in _STATUSES],
    ),
    Column("pages_other", "other", "count"): lambda each: (
        each.pages.total() - sum(each.pages[status] for status in _STATUSES)
    ),
}
_CONVERSATION: Cells[tuple[ConversationTrace, ConversationFigures]] = {
    Column("conversation", "Conversation"): lambda each: each[0].conversation,
    Column("domain", "Domain"): lambda each: each[0].domain or None,
    Column("topic", "Topic"): lambda each: each[0].topic or None,
    Column("score", "Score", "rate"): lambda each: each[1].score,
    Column("srr", "Source re-use", "rate"): lambda each: each[1].srr,
    Column("confidence", "Confidence", "rate"): lambda each: each[1].confidence,
    Column("changes", "Changes", "count"): lambda each: each[1].changes,
    Column("unclear", "Unclear", "count"): lambda each: each[1].unclear,
    Column("stance_rate", "S", "rate"): lambda each: each[1].stance_rate,
    Column("change_confidence", "K", "rate"): lambda each: each[1].change_confidence,
    Column("turns", "Turns", "count"): lambda each: each[1].turns,
    Column("complete", "Complete"): lambda each: each[0].is_complete,
    Column("scored", "Scored"): lambda each: each[1].is_scored,
    Column("stances", "Stances"): lambda each: "".join(turn.stance[0].upper() for turn in each[0].turns),
}
_TURN: Cells[AtTurn] = {
    Column("turn", "Turn", "count"): lambda each: each.turn,
    CONVERSATIONS: lambda each: each.conversations,
    Column("with_sources", "With sources", "count"): lambda each: each.reuse.n,
    Column("reuse", "Source re-use", "rate"): lambda each: each.reuse.mean,
    **cells_in(interval_columns("rate"), lambda each: interval_cells(each.reuse.interval, "rate")),
    Column("change_rate", "Change", "share"): lambda each: each.change_rate,
    Column("confidence", "Confidence", "rate"): lambda each: each.confidence,
    **cells_in((Column(stance, stance.title(), "share") for stance in STANCES), lambda each: each.stances),
}


def confidence_table(panel: ConversationScores) -> Table:
    """Returns the data of figure 3. A model whose conversations all have the same confidence has no curve, but one row
    with that value."""
    rows: list[tuple[Cell, ...]] = []
    for model, some in panel.models.items():
        values = joined(some, "confidence")
        curve = density(values)
        numbers = values[values == values]
        if curve.heights is None:
            rows += [(model, curve.n, None, float(numbers[0]), None)] if curve.n else []
            continue
        for at, height in zip(GRID.tolist(), curve.heights.tolist(), strict=True):
            rows.append((model, curve.n, curve.bandwidth, at, height))
    return Table(
        "chameleon-figure-3-confidence",
        "Figure 3, data: distribution of confidence",
        "Kernel density of the mean confidence of a conversation, all temperatures together: Gaussian kernels, their "
        "width by Scott's rule (standard deviation times n^−1/5). No density: all conversations have the same "
        f"confidence, or there is only one. {CONFIDENCE_NOTE}",
        (
            MODEL,
            CONVERSATIONS,
            Column("bandwidth", "Bandwidth", "rate"),
            Column("confidence", "Confidence", "rate"),
            Column("density", "Density", "rate"),
        ),
        tuple(rows),
        is_long=True,
    )


def reuse_table(panel: ConversationScores) -> Table:
    rows = [
        (model, each.low, each.high, each.score.n, each.score.mean, *interval_cells(each.score.interval, "rate"))
        for model, some in panel.models.items()
        for each in binned(some)
    ]
    return Table(
        "chameleon-figure-4-reuse",
        "Figure 4, data: score by source re-use",
        "Mean Chameleon score of the conversations whose source re-use rate is at least one bound of a bin and below "
        f"the other (the last bin has both), all temperatures together. {INTERVAL_NOTE}",
        (
            MODEL,
            Column("from", "SRR from", "rate"),
            Column("to", "to", "rate"),
            CONVERSATIONS,
            Column("score", "Score", "rate"),
            *interval_columns("rate"),
        ),
        tuple(rows),
    )


def turns_table(panel: ConversationScores) -> Table:
    """Returns the table of turns, with the data of figure 5."""
    return table_by_turn(
        panel,
        "chameleon-turns",
        "Figure 5, data: turn by turn",
        "Over scored conversations: the share of a turn's sources that an earlier turn of the same conversation has, "
        "mean over those that have sources there (the first turn can re-use nothing), the share of conversations that "
        "change their stance at the turn, mean confidence, and the share of each stance as the judge gave it. "
        f"{INTERVAL_NOTE}",
        _TURN,
    )


def table_by_turn(panel: ConversationScores, name: str, title: str, note: str, cells: Cells[AtTurn]) -> Table:
    """Returns a table with a row for each turn of each model, at each temperature and, if there are several, at all
    together."""
    turns: list[tuple[tuple[str, str], AtTurn]] = []
    for model, some in panel.models.items():
        groups = [(sample.pair.treatment, [sample]) for sample in some]
        groups += [(EVERY_TEMPERATURE, some)] if len(some) > 1 else []
        turns += [((model, temperature), each) for temperature, samples in groups for each in by_turn(samples)]
    return Table(name, title, note, (MODEL, TEMPERATURE, *cells), rows_of(cells, turns), is_long=True)


def answers_tables(panel: ConversationScores) -> tuple[Table, Table]:
    """Returns two tables: what was answered, and the problems of turns, judgements and citations."""
    rows = [
        (_names(sample), PairAnswers(sample, panel.troubles(sample), panel.status(sample))) for sample in panel.samples
    ]
    answers = Table(
        "chameleon-answers",
        "What was answered",
        "A conversation is complete if it has every turn that was asked for; means are over complete conversations "
        f"that are scored. {UNSCORED_NOTE} Undefined are conversations of a single turn, or of which a reading "
        "leaves too little for a rate; “no change” are those that never change their stance, whose confidence of "
        "changes counts as 0 in eq. (2). Turns after one that failed are held back, and asked once it is answered. "
        "Acknowledged: of the turns of scored conversations of which the judge said whether the answer acknowledges "
        "contradictions, the share that does, by stance.",
        (MODEL, TEMPERATURE, *_ANSWERED),
        rows_of(_ANSWERED, rows),
    )
    troubles_of_turns = Table(
        "chameleon-troubles",
        "Problems of turns, judgements and citations",
        "Over all recorded turns. Empty: an answer without a word. Cut: cut off at max_tokens. Unclear: no clear "
        "stance, as the judge says, or because the answer is empty or refused or its judgement is unreadable. "
        "Repaired: the judge was asked a second time for JSON. Unjudged: no judge read the answer, or its judgement is "
        "unreadable; it has no confidence. Invalid citations: numbers and addresses in an answer that name no page "
        "that it was shown. Shortened: the prompt left out earlier turns or whole pages. Without history: a later turn "
        "that was shown no earlier one.",
        (MODEL, TEMPERATURE, *_PROBLEMS),
        rows_of(_PROBLEMS, rows),
    )
    return answers, troubles_of_turns


def pages_table(panel: ConversationScores) -> Table:
    return Table(
        "chameleon-pages",
        "What became of searches and pages",
        "Over all recorded turns; pages without a text are counted by reason. The question itself is searched for if "
        "the model wrote no query.",
        (MODEL, TEMPERATURE, *_PAGES),
        rows_of(_PAGES, ((_names(sample), panel.troubles(sample)) for sample in panel.samples)),
    )


def conversations_table(panel: ConversationScores) -> Table:
    return Table(
        "chameleon-conversations",
        "Every conversation",
        "Its figures and its stances turn by turn, by their first letters. Those of incomplete ones are of the turns "
        f"there are, and enter no mean. {UNSCORED_NOTE}",
        (MODEL, TEMPERATURE, *_CONVERSATION),
        rows_of(
            _CONVERSATION,
            (
                (_names(sample), each)
                for sample in panel.samples
                for each in sorted(sample.held, key=lambda row: row[0].conversation)
            ),
        ),
        is_long=True,
    )


def _names(sample: PairSample) -> tuple[str, str]:
    return sample.pair.model, sample.pair.treatment
