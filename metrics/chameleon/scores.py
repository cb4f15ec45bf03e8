"""Chameleon's part of `scores.json`, as plain numbers.

Owns the shape of that part: keys in a stable order, None where there is nothing to score, never a NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import structs, to_builtins

from ...engine.pairs import Pair
from ..statistics.intervals import Correlation, interval_entry
from .figures import ConversationFigures
from .lines import Troubles
from .readings import Readings
from .sample import KINDS, PairSample, by_model, conversations_of, joined, ranks, samples
from .summary import (
    SCORE_BANDS,
    SRR_BANDS,
    THRESHOLDS,
    acknowledged,
    bands,
    by_temperature,
    related,
    share_over,
    spread_of,
)
from .traces import ConversationTrace, Plan, Traces
from .unmeasured import remarks, unmeasured

# Both means of confidence: over the turns, and over those that change the stance.
CONFIDENCES = {"confidence_turns": "confidence", "confidence_shifts": "change_confidence"}
# How all scores are read.
_ALWAYS = {"unclear": "carry", "confidence_of": "turns", "std": "sample"}
# What a score would be with 0 in the place of turns without a source.
ZEROS = ("srr_zero", "score_zero")
_SCORE_NAMES = ("low", "moderate", "high")
_SRR_NAMES = ("high_diversity", "moderate_diversity", "low_diversity")


def scores(
    traces: Traces,
    readings: Readings | None = None,
    plan: Plan = MappingProxyType({}),
    is_ranked: Callable[[Pair], bool] = lambda pair: True,
) -> dict[str, Any]:
    """Returns Chameleon's part of `scores.json`. `plan` has the conversations of each pair and their numbers of turns,
    from a manifest; without it, they are inferred from the turns. Means are over scored conversations, which are all
    complete."""
    readings = readings or Readings()
    every = samples(traces.traces(plan), readings)
    places = ranks([each for each in every if is_ranked(each.pair)])
    named = {str(sample.pair): sample for sample in every}
    troubled = {str(pair): traces.troubles[pair] for pair in traces.pairs() if pair in traces.troubles}
    models: dict[str, Any] = {}
    conversations: dict[str, Any] = {}
    for sample in every:
        model = sample.pair.model
        troubles = traces.troubles.get(sample.pair) or Troubles()
        entry = {**_entry(sample), "rank": places.get(sample.pair), **_counts(sample, troubles)}
        models.setdefault(model, {})[sample.pair.treatment] = entry
        conversations.setdefault(model, {})[sample.pair.treatment] = _conversations(sample)
    return {
        "readings": to_builtins(readings) | _ALWAYS,
        "models": models,
        "unmeasured": list(unmeasured(troubled, named)),
        "remarks": list(remarks(named, places)),
        "correlations": _correlations(every),
        "temperatures": {
            model: structs.asdict(by_temperature(some)) for model, some in by_model(every, and_effort=True).items()
        },
        "repeated": len(traces.repeated),
        "conversations": conversations,
    }


def _entry(sample: PairSample) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    for kind in (*KINDS, *ZEROS, *CONFIDENCES):
        spread = spread_of([sample], CONFIDENCES.get(kind, kind))
        entry[kind] = {"mean": spread.mean, "std": spread.std, **interval_entry(spread.interval, "conversations")}
    names, score = conversations_of([sample]), sample.column("score")
    for bound in THRESHOLDS:
        over = share_over(names, score, bound)
        entry[f"over_{bound}".replace(".", "_")] = {
            "share": over.mean,
            **interval_entry(over.interval, "conversations"),
        }
    entry["score_bands"] = dict(zip(_SCORE_NAMES, bands(score, SCORE_BANDS), strict=True))
    entry["srr_bands"] = dict(zip(_SRR_NAMES, bands(joined([sample], "srr"), SRR_BANDS), strict=True))
    return entry


def _counts(sample: PairSample, troubles: Troubles) -> dict[str, Any]:
    """Returns the counts of a pair: `conversations` are those that enter the means; turns are all that the records
    hold."""
    entry: dict[str, Any] = {}
    entry["conversations"] = len(sample.figures)
    entry["unscored"] = len(sample.unscored)
    entry["unscored_conversations"] = [trace.conversation for trace, _ in sample.unscored]
    entry["incomplete"] = sample.incomplete
    entry["undefined"] = sample.undefined
    entry["no_change"] = sum(not figures.changes for figures in sample.figures)
    entry["turns"] = troubles.turns
    entry["uncited_turns"] = sample.summed("uncited_turns")
    entry["unclear"] = troubles.unclear
    entry["answers_empty"], entry["answers_cut"] = troubles.empty, troubles.cut
    entry["answers_refused"], entry["unjudged"] = troubles.refused, troubles.unjudged
    entry["read_in_part"] = to_builtins(sample.reads)
    entry["without_pages"] = troubles.without_text
    entry["turns_without_history"] = sample.turns_without_history
    entry["conversations_without_history"] = list(sample.without_history)
    entry["contradictions_acknowledged"] = acknowledged(sample)
    entry["expected"], entry["missing"] = sample.expected, sample.missing
    entry["complete"] = sample.is_complete
    entry["unanswered_conversations"] = list(sample.unanswered)
    return entry


def _conversations(sample: PairSample) -> dict[str, Any]:
    rows = sorted(sample.held, key=lambda row: row[0].conversation)
    return {trace.conversation: _conversation(trace, figures) for trace, figures in rows}


def _conversation(trace: ConversationTrace, figures: ConversationFigures) -> dict[str, Any]:
    """Returns a conversation's figures: those of the turns it has if it is incomplete, though they enter no mean; None
    for each if it is unscored."""
    entry: dict[str, Any] = {
        kind: getattr(figures, kind) for kind in (*KINDS, *ZEROS, "unclear", "uncited_turns", "turns")
    }
    entry |= {"stance_rate": figures.stance_rate, "change_confidence": figures.change_confidence}
    entry["turn_confidence"] = figures.confidence
    entry["no_change"] = None if figures.changes is None else not figures.changes
    return entry | {"complete": trace.is_complete, "scored": figures.is_scored}


def _correlations(every: Sequence[PairSample]) -> dict[str, Any]:
    """Returns the correlations over the conversations of all pairs together, as in the paper; within models; and of
    each model."""
    return {
        "all": _related(related(every)),
        "within": _related(related(every, is_within=True)),
        "models": {model: _related(related(some)) for model, some in by_model(every).items()},
    }


def _related(correlations: Mapping[str, Correlation]) -> dict[str, Any]:
    return {
        f"srr_{partner}": {
            "r": each.r,
            "p": each.p,
            "n": each.rows,
            "conversations": each.clusters,
            **interval_entry(each, "conversations"),
        }
        for partner, each in correlations.items()
    }
