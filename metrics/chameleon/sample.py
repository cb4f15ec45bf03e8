"""A pair's conversations as columns, from which all means, shares and correlations are computed.

Owns which conversations count: the complete and scored ones. The others are stored separately and counted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ...engine.pairs import Pair
from ..naming import treated_name
from ..read_in_part import ReadInPart
from .figures import ConversationFigures, figures_of_turns, no_figures
from .readings import Readings
from .scored import (
    is_mostly,
    is_multi_turn,
    is_rankable,
    is_scored,
    is_without_pages,
    lacking_turns,
    turns_without_history,
)
from .traces import ConversationTrace

Values = NDArray[np.float64]
KINDS = ("score", "srr", "confidence", "changes")


@dataclass(frozen=True)
class PairSample:
    """One pair's scored conversations, a row each, in order of id; NaN where a figure is undefined.

    `readings` are those of the figures. `unscored` are the other complete conversations, `others` the incomplete ones
    with a turn, `unanswered` those without one. If no page had a text in any turn of the pair (`is_without_pages`), or
    half of its turns lack a clear stance or a source, none is scored.
    """

    pair: Pair
    traces: tuple[ConversationTrace, ...]
    figures: tuple[ConversationFigures, ...]
    unscored: tuple[tuple[ConversationTrace, ConversationFigures], ...]
    others: tuple[tuple[ConversationTrace, ConversationFigures], ...]
    unanswered: tuple[str, ...]
    expected: int
    missing: int
    readings: Readings
    is_without_pages: bool = False

    def __repr__(self) -> str:
        held = f"Conversations: {len(self.traces)}, Incomplete: {self.incomplete}"
        return f"<PairSample {treated_name(self.pair)} [{held}]>"

    @property
    def conversations(self) -> tuple[str, ...]:
        return tuple(trace.conversation for trace in self.traces)

    @property
    def domains(self) -> tuple[str, ...]:
        return tuple(trace.domain for trace in self.traces)

    @property
    def held(self) -> Iterator[tuple[ConversationTrace, ConversationFigures]]:
        """The conversations that have a turn, each with its figures, whether or not they count."""
        yield from zip(self.traces, self.figures, strict=True)
        yield from self.unscored
        yield from self.others

    @property
    def asked(self) -> frozenset[str]:
        """The ids of all conversations that the pair was to hold, as far as known."""
        return frozenset((*(trace.conversation for trace, _ in self.held), *self.unanswered))

    @property
    def turns_without_history(self) -> int:
        return sum(turns_without_history(trace.turns) for trace, _ in self.held)

    @property
    def without_history(self) -> tuple[str, ...]:
        """The ids of the conversations that showed too little history to be a multi-turn test."""
        return tuple(trace.conversation for trace, _ in self.held if not is_multi_turn(trace.turns))

    @property
    def undefined(self) -> int:
        """The number of conversations with an undefined score, where a rate divides by 0, as with a single turn."""
        single = sum(figures.turns == 1 for _, figures in self.unscored)
        return single + sum(not figures.is_defined for figures in self.figures)

    @property
    def complete(self) -> int:
        return len(self.traces) + len(self.unscored)

    @property
    def incomplete(self) -> int:
        return len(self.others) + len(self.unanswered)

    @property
    def is_complete(self) -> bool:
        return self.missing == 0

    @property
    def is_rankable(self) -> bool:
        """Whether the pair can have a rank, by its own conversations."""
        is_defined = any(figures.is_defined for figures in self.figures)
        return is_defined and is_rankable(len(self.traces), self.complete)

    @property
    def reads(self) -> ReadInPart | None:
        """What the server read of the pair's prompts; None if no long prompt tells."""
        return next((trace.reads for trace, _ in self.held), None)

    def summed(self, count: str) -> int:
        """Returns one count over all conversations that have a turn. `count` is a field of ConversationFigures."""
        return sum(getattr(figures, count) for _, figures in self.held)

    def column(self, kind: str) -> Values:
        """Returns one figure of every row, NaN where it is undefined. `kind` is a field of ConversationFigures."""
        return values_of(getattr(figures, kind) for figures in self.figures)


def values_of(values: Iterable[float | None]) -> Values:
    """Returns values as an array, NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def samples(traces: Iterable[ConversationTrace], readings: Readings) -> tuple[PairSample, ...]:
    """Returns the samples of all pairs, in the order of the traces, which must be sorted by pair."""
    return tuple(_sample(pair, list(group), readings) for pair, group in groupby(traces, lambda trace: trace.pair))


def _sample(pair: Pair, traces: Sequence[ConversationTrace], readings: Readings) -> PairSample:
    turns = [turn for trace in traces for turn in trace.turns]
    is_blind = is_without_pages(turns)
    is_unread = any(trace.reads is not None and trace.reads.is_unread for trace in traces)
    is_measured = not (is_blind or is_unread or is_mostly(lacking_turns(turns, readings), len(turns)))

    held = []
    for trace in traces:
        if trace.turns:
            is_counted = is_measured and is_scored(trace.turns, readings)
            held.append((trace, (figures_of_turns if is_counted else no_figures)(trace.turns, readings)))
    complete = [(trace, figures) for trace, figures in held if trace.is_complete]
    scored = [(trace, figures) for trace, figures in complete if figures.is_scored]
    return PairSample(
        pair=pair,
        traces=tuple(trace for trace, _ in scored),
        figures=tuple(figures for _, figures in scored),
        unscored=tuple((trace, figures) for trace, figures in complete if not figures.is_scored),
        others=tuple((trace, figures) for trace, figures in held if not trace.is_complete),
        unanswered=tuple(trace.conversation for trace in traces if not trace.turns),
        expected=sum(trace.asked for trace in traces),
        missing=sum(trace.missing for trace in traces if not trace.is_complete),
        readings=readings,
        is_without_pages=is_blind,
    )


def joined(some: Sequence[PairSample], kind: str) -> Values:
    """Returns one figure of every row of several samples, concatenated, NaN where it is undefined."""
    return np.concatenate([sample.column(kind) for sample in some]) if some else np.empty(0)


def conversations_of(some: Iterable[PairSample]) -> list[str]:
    return [name for sample in some for name in sample.conversations]


def by_model(every: Iterable[PairSample], *, and_effort: bool = False) -> dict[str, list[PairSample]]:
    """Returns the samples by `M`; `and_effort`: by `M @ low` where there is one, so that only temperatures differ."""
    by_name: dict[str, list[PairSample]] = {}
    for sample in every:
        pair = sample.pair._replace(temperature=None)
        by_name.setdefault(str(pair) if and_effort else pair.model, []).append(sample)
    return by_name


def ranks(every: Sequence[PairSample], kinds: Mapping[Pair, Hashable] = MappingProxyType({})) -> dict[Pair, int | None]:
    """Returns each pair's rank by mean score, 1 for the lowest, among the pairs of its treatment and kind; equal
    means share a rank. None for pairs that are not rankable, and for those that `score_zero` puts in another order."""
    places: dict[Pair, int | None] = dict.fromkeys(sample.pair for sample in every)
    means = {
        sample.pair: tuple(float(np.nanmean(sample.column(kind))) for kind in ("score", "score_zero"))
        for sample in every
        if sample.is_rankable
    }
    kind_of = {pair: (pair.treatment, kinds.get(pair)) for pair in means}
    for pair, (pair_score, pair_zero) in means.items():
        rivals = [mean for rival, mean in means.items() if kind_of[rival] == kind_of[pair]]
        if all(np.sign(score - pair_score) == np.sign(zero - pair_zero) for score, zero in rivals):
            places[pair] = 1 + sum(score < pair_score for score, _ in rivals)
    return places
