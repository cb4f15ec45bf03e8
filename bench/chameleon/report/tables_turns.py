"""Tables behind figures 3 to 5, of single turns and their problems, and of every conversation.

Owns their columns and words. `density`, `summary` and the traces' troubles have their numbers.
"""

from __future__ import annotations

from ....metrics.chameleon.lines import STANCES
from ....metrics.chameleon.sample import joined
from ....metrics.chameleon.summary import acknowledged, binned, by_turn, spread_of
from ....metrics.statistics.density import GRID, density
from ....report.interval_cells import interval_cells, interval_columns
from ....report.table import Cell, Column, Table
from .panel import ConversationScores
from .tables_scores import CONFIDENCE_NOTE, CONVERSATIONS, INTERVAL_NOTE, MODEL, TEMPERATURE

EVERY_TEMPERATURE = "all"
UNSCORED_NOTE = (
    "Unscored is a conversation with fewer than two turns of a clear stance, or with more than half of its turns "
    "without one (empty, refused, unjudged or unclear), and every one of a model to which no page gave a text."
)
# The columns of counts, with their titles: of what was answered, then of problems in turns.
_CONVERSATIONS = {
    "complete": "Complete",
    "incomplete": "Incomplete",
    "undefined": "Undefined",
    "no_change": "No change",
    "expected": "Turns expected",
    "missing": "Turns missing",
    "failed": "Turns failed",
    "held": "Turns held back",
}
_TURNS = {
    "turns": "Turns",
    "refused": "Refused",
    "empty": "Empty",
    "cut": "Cut",
    "unclear": "Unclear",
    "repaired": "Repaired",
    "unreadable": "Unreadable",
    "without_number": "Without the judge’s number",
    "unjudged": "Unjudged",
    "invalid_citations": "Invalid citations",
    "shortened": "Prompts shortened",
    "without_history": "Without history",
}
PAGE_TROUBLES = ("blocked", "empty", "too_large", "not_text", "timeout", "disallowed", "unreachable")


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
        "width by Scott's rule (standard deviation times n^−1/5). Without a density all conversations have the same "
        f"confidence, or there is but one. {CONFIDENCE_NOTE}",
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
    rows: list[tuple[Cell, ...]] = []
    for model, some in panel.models.items():
        groups = [(sample.pair.treatment, [sample]) for sample in some]
        groups += [(EVERY_TEMPERATURE, some)] if len(some) > 1 else []
        for temperature, samples in groups:
            for each in by_turn(samples):
                reuse = (each.reuse.n, each.reuse.mean, *interval_cells(each.reuse.interval, "rate"))
                rest = (each.change_rate, each.confidence, *each.stances)
                rows.append((model, temperature, each.turn, each.conversations, *reuse, *rest))
    return Table(
        "chameleon-turns",
        "Figure 5, data: turn by turn",
        "Over scored conversations: the share of a turn's sources that an earlier turn of the same conversation has, "
        "mean over those that have sources there (the first turn can re-use nothing), the share of conversations that "
        "change their stance at the turn, mean confidence, and the share of each stance as the judge gave it. "
        f"{INTERVAL_NOTE}",
        (
            MODEL,
            TEMPERATURE,
            Column("turn", "Turn", "count"),
            CONVERSATIONS,
            Column("with_sources", "With sources", "count"),
            Column("reuse", "Source re-use", "rate"),
            *interval_columns("rate"),
            Column("change_rate", "Change", "share"),
            Column("confidence", "Confidence", "rate"),
            *(Column(stance, stance.title(), "share") for stance in STANCES),
        ),
        tuple(rows),
        is_long=True,
    )


def answers_tables(panel: ConversationScores) -> tuple[Table, Table]:
    """Returns two tables: what was answered, and the problems of turns, judgements and citations."""
    answered = [
        *(Column(name, title, "count") for name, title in _CONVERSATIONS.items()),
        Column("kinds", "Kinds of failure"),
        Column("steps", "Failed at"),
        *(Column(f"acknowledged_{stance}", f"Acknowledged, {stance}", "share") for stance in STANCES),
    ]
    problems = [Column(name, title, "count") for name, title in _TURNS.items()]
    problems.append(Column("srr_zero", "Re-use with 0 for uncited", "rate"))
    rows: tuple[list[tuple[Cell, ...]], ...] = ([], [])
    for sample in panel.samples:
        troubles, status = panel.troubles(sample), panel.status(sample)
        cells: dict[str, Cell] = {
            "complete": sample.complete,
            "incomplete": sample.incomplete,
            "undefined": sample.undefined,
            "no_change": sum(not figures.changes for figures in sample.figures),
            "expected": status.expected,
            "missing": sample.missing,
            "failed": status.failures,
            "held": status.held,
            "unjudged": sum(turn.confidence is None for trace, _ in sample.held for turn in trace.turns),
            "without_history": sample.turns_without_history,
            "kinds": ", ".join(f"{kind} {number:,}" for kind, number in status.failed.items()) or None,
            "steps": ", ".join(f"{step} {number:,}" for step, number in status.steps.items()) or None,
            "srr_zero": spread_of([sample], "srr_zero").mean,
            **{f"acknowledged_{stance}": each["share"] for stance, each in acknowledged(sample).items()},
        }
        for written, columns in zip(rows, (answered, problems), strict=True):
            values = (cells[each.name] if each.name in cells else getattr(troubles, each.name) for each in columns)
            written.append((sample.pair.model, sample.pair.treatment, *values))
    answers = Table(
        "chameleon-answers",
        "What was answered",
        "A conversation is complete when every turn that was to be asked is there; only complete ones that are "
        f"scored enter means. {UNSCORED_NOTE} Undefined are conversations of a single turn, or of which a reading "
        "leaves too little for a rate; “no change” are those that never change their stance, whose confidence of "
        "changes counts as 0 in eq. (2). Turns after one that failed are held back, and asked once it is answered. "
        "Acknowledged: of the turns of scored conversations of which the judge said whether the answer acknowledges "
        "contradictions, the share that does, by stance.",
        (MODEL, TEMPERATURE, *answered),
        tuple(rows[0]),
    )
    troubles_of_turns = Table(
        "chameleon-troubles",
        "Problems of turns, judgements and citations",
        "Of all turns there are, empty is an answer without a word, cut one that max_tokens cut off. "
        "Unclear: no clear stance, by the judge’s word, or since the answer is empty or refused or its judgement "
        "could not be read. Repaired: the judge was asked a second time for JSON. Unjudged: no judge read the "
        "answer, or not readably, so that it has no confidence. Invalid citations are numbers and addresses in an"
        " answer that stand for no page it was shown. A prompt is shortened where it left out earlier turns or "
        "whole pages; without history is a turn behind the first that was shown none of those before.",
        (MODEL, TEMPERATURE, *problems),
        tuple(rows[1]),
    )
    return answers, troubles_of_turns


def pages_table(panel: ConversationScores) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for sample in panel.samples:
        troubles = panel.troubles(sample)
        counts = [troubles.pages[status] for status in ("ok", *PAGE_TROUBLES)]
        searches = (troubles.unasked, troubles.without_hits, troubles.search_remarks)
        pages = (troubles.pages.total(), *counts, troubles.pages.total() - sum(counts))
        rows.append((sample.pair.model, sample.pair.treatment, *searches, *pages))
    return Table(
        "chameleon-pages",
        "What became of searches and pages",
        "Of all turns there are; pages that gave nothing by their reasons. The question itself is searched for where "
        "the model wrote no query.",
        (
            MODEL,
            TEMPERATURE,
            Column("unasked", "For the question", "count"),
            Column("without_hits", "Without a hit", "count"),
            Column("search_remarks", "With remarks", "count"),
            Column("pages", "Pages", "count"),
            Column("pages_ok", "ok", "count"),
            *(Column(f"pages_{status}", status.replace("_", " "), "count") for status in PAGE_TROUBLES),
            Column("pages_other", "other", "count"),
        ),
        tuple(rows),
    )


def conversations_table(panel: ConversationScores) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for sample in panel.samples:
        for trace, figures in sorted(sample.held, key=lambda row: row[0].conversation):
            whose = (sample.pair.model, sample.pair.treatment, trace.conversation, trace.domain or None)
            means = (figures.score, figures.srr, figures.confidence, figures.changes, figures.unclear)
            parts = (figures.stance_rate, figures.change_confidence, figures.turns)
            stances = "".join(turn.stance[0].upper() for turn in trace.turns)
            states = (trace.is_complete, figures.is_scored, stances)
            rows.append((*whose, trace.topic or None, *means, *parts, *states))
    return Table(
        "chameleon-conversations",
        "Every conversation",
        "Its figures and its stances turn by turn, by their first letters. Those of incomplete ones are of the turns "
        f"there are, and enter no mean. {UNSCORED_NOTE}",
        (
            MODEL,
            TEMPERATURE,
            Column("conversation", "Conversation"),
            Column("domain", "Domain"),
            Column("topic", "Topic"),
            Column("score", "Score", "rate"),
            Column("srr", "Source re-use", "rate"),
            Column("confidence", "Confidence", "rate"),
            Column("changes", "Changes", "count"),
            Column("unclear", "Unclear", "count"),
            Column("stance_rate", "S", "rate"),
            Column("change_confidence", "K", "rate"),
            Column("turns", "Turns", "count"),
            Column("complete", "Complete"),
            Column("scored", "Scored"),
            Column("stances", "Stances"),
        ),
        tuple(rows),
        is_long=True,
    )
