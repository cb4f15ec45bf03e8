"""The numbers of Chameleon's report: every pair's sample under a unique name, and the counts of problems in its turns.

Owns how models of several runs get different names. Knows no table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from ....engine.pairs import Pair
from ....metrics.chameleon.lines import Troubles
from ....metrics.chameleon.readings import Readings
from ....metrics.chameleon.sample import PairSample, by_model, ranks, samples
from ....metrics.chameleon.traces import ConversationTrace
from ....metrics.chameleon.unmeasured import remarks, unmeasured
from ....report.labels import named_list, told_apart
from ....report.standings import AnswerStatus
from .manner import kind_of
from .runs import ConversationRun


@dataclass(frozen=True)
class ConversationScores:
    """The samples of all pairs of a report. `samples` have models by their names in this report; `origin` has the run
    and the pair of each."""

    runs: tuple[ConversationRun, ...]
    readings: Readings
    samples: tuple[PairSample, ...]
    origin: Mapping[Pair, tuple[ConversationRun, Pair]]

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """The sentences that say why a pair was not measured; empty if all were."""
        return unmeasured({name: self.troubles(sample) for name, sample in self._named.items()}, self._named)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The sentences on unscored conversations and on turns without a source."""
        return tuple(remarks(self._named, ranks(self._ranked, self._kinds)))

    @property
    def _named(self) -> dict[str, PairSample]:
        return {named_list([str(sample.pair)]): sample for sample in self.samples}

    @property
    def _ranked(self) -> list[PairSample]:
        """The samples that may have a rank by who answered."""
        origin = self.origin
        return [each for each in self.samples if origin[each.pair][0].items.rows.is_ranked(origin[each.pair][1])]

    @property
    def _kinds(self) -> dict[Pair, Hashable]:
        """What the pairs that are ranked among each other have in common."""
        return {sample.pair: (kind_of(self.origin[sample.pair][0]), sample.asked) for sample in self.samples}

    @property
    def ranks(self) -> dict[Pair, int | None]:
        """The rank of each pair, 1 the lowest score. None: means over other conversations, or of runs made differently,
        are not comparable, so a pair unlike all others of its treatment has no rank."""
        kinds = self._kinds
        by_pair = dict.fromkeys(kinds) | ranks(self._ranked, kinds)
        for pair in kinds:
            others = [other for other in kinds if other != pair and other.treatment == pair.treatment]
            if others and all(kinds[other] != kinds[pair] for other in others):
                by_pair[pair] = None
        return by_pair

    @property
    def is_of_one_manner(self) -> bool:
        return len({kind_of(run) for run in self.runs}) < 2

    @property
    def models(self) -> dict[str, list[PairSample]]:
        return by_model(self.samples)

    def troubles(self, sample: PairSample) -> Troubles:
        run, pair = self.origin[sample.pair]
        return run.traces.troubles.get(pair) or Troubles()

    def status(self, sample: PairSample) -> AnswerStatus:
        """Returns how many turns of a pair were answered, failed, are held back by these, or are pending."""
        run, pair = self.origin[sample.pair]
        troubles = self.troubles(sample)
        return AnswerStatus(
            model=str(sample.pair),
            expected=max(sample.expected, troubles.turns),
            answered=troubles.turns,
            refused=troubles.refused,
            failed=dict(sorted(run.traces.failed.get(pair, {}).items())),
            is_told=pair in run.asked,
            steps=dict(run.traces.failed_steps.get(pair, Counter[str]()).most_common()),
            held=run.traces.held(pair, run.asked),
        )


def conversation_scores(runs: Sequence[ConversationRun], readings: Readings) -> ConversationScores:
    named = _names(runs)
    traces: list[ConversationTrace] = []
    origin: dict[Pair, tuple[ConversationRun, Pair]] = {}
    for at, run in enumerate(runs):
        for trace in run.traces.traces(run.asked):
            pair = trace.pair._replace(model=named[at, trace.pair.model])
            traces.append(trace if pair == trace.pair else structs.replace(trace, pair=pair))
            origin.setdefault(pair, (run, trace.pair))
    return ConversationScores(tuple(runs), readings, samples(traces, readings), origin)


def _names(runs: Sequence[ConversationRun]) -> dict[tuple[int, str], str]:
    """Returns each run's names of its models. A model that two runs asked with the same treatment, or that runs made
    differently asked at all, has a name for each run, with the run's label."""
    pairs = [run.traces.pairs(run.asked) for run in runs]
    times = Counter(pair for run_pairs in pairs for pair in run_pairs)
    twice = {pair.model for pair, number in times.items() if number > 1}
    kinds: dict[str, set[Hashable]] = {}
    for run, run_pairs in zip(runs, pairs, strict=True):
        for pair in run_pairs:
            kinds.setdefault(pair.model, set()).add(kind_of(run))
    twice |= {model for model, manners in kinds.items() if len(manners) > 1}
    names = {(at, pair.model): pair.model for at, run_pairs in enumerate(pairs) for pair in run_pairs}
    return told_apart(names, {key: runs[key[0]].label for key in names}, twice)
