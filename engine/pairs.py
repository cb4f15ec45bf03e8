"""The pairs of a model and a treatment that a run asks: what of each is finished, and how its items ended.

Plain values that every benchmark fills and every summary reads. Knows no benchmark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from msgspec import Struct, field

from .alike import gist_of
from .call import Usage, known_sum

# More different messages than this are not kept: if each is different, none is the commonest.
_REASONS_MAX = 512


class Pair(NamedTuple):
    """One model and one treatment: the temperature and the reasoning effort that are sent to it. None: not sent."""

    model: str
    temperature: float | None
    effort: str | None = None

    def __str__(self) -> str:
        return self.model if self.treatment == NOT_SENT else f"{self.model} @ {self.treatment}"

    @property
    def treatment(self) -> str:
        """The treatment's name: `0.5`, `low`, `0.5, low`, or `default` where neither is sent."""
        temperature = "" if self.temperature is None else repr(float(self.temperature)).removesuffix(".0")
        return ", ".join(filter(None, (temperature, self.effort))) or NOT_SENT


NOT_SENT = "default"


class TreatedLine(Protocol):
    """A line that names its pair in three fields."""

    @property
    def model(self) -> str: ...
    @property
    def temperature(self) -> float | None: ...
    @property
    def effort(self) -> str | None: ...


def pair_of(line: TreatedLine) -> Pair:
    return Pair(line.model, line.temperature, line.effort)


def order_of(pair: Pair) -> tuple[str, str, float]:
    """Returns a pair's place in lists: by model, then effort, then temperature; what is not sent comes first."""
    return pair.model, pair.effort or "", -1.0 if pair.temperature is None else pair.temperature


class FinishedItems(Struct, frozen=True):
    """What a run folder already holds: the ids of each pair's finished items (records and final failures), their cost
    in dollars, and the models that have answered. `cut`: how many answers of other models were cut off and are
    empty."""

    ids: Mapping[Pair, set[str]]
    cost: float
    answered: frozenset[str] = frozenset()
    cut: Mapping[str, int] = MappingProxyType({})

    def count(self) -> int:
        return sum(map(len, self.ids.values()))

    def of(self, pair: Pair) -> set[str]:
        return self.ids.get(pair, set())


class Reason(Struct):
    """A message that `count` failures of one kind share, as the first of them has it."""

    said: str
    count: int = 0


class PairCounts(Struct):
    """How the items of one pair ended, as counts. `ok`, `refused` (by the model) and `truncated` (at max_tokens) count
    answers; `cached`: items for which the model was not called; `held`: items not asked, since what they build on
    failed; `failed`: by kind of failure; `maybe_billed`: attempts that may have been billed. Tokens are those of
    calls that were sent, as far as providers reported them; `judged`: lines for which a judge's call was sent. `cost`
    is in dollars; None as long as no line has a price. `at_worst` is the part of it for answers whose tokens were not
    reported. `served`, `fingerprints` and, by judge, `judges` count answers by what their servers state of themselves,
    as far as they do."""

    ok: int = 0
    refused: int = 0
    cached: int = 0
    truncated: int = 0
    maybe_billed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    judged: int = 0
    cost: float | None = None
    at_worst: float = 0.0
    failed: dict[str, int] = field(default_factory=dict)
    held: int = 0
    served: dict[str, int] = field(default_factory=dict)
    fingerprints: dict[str, int] = field(default_factory=dict)
    judges: dict[str, dict[str, int]] = field(default_factory=dict)
    reasons: dict[tuple[str, str], Reason] = field(default_factory=dict)

    def name(self, served: str | None, fingerprint: str | None) -> None:
        """Counts what the server of one answer states of itself."""
        if served is not None:
            self.served[served] = self.served.get(served, 0) + 1
        if fingerprint is not None:
            self.fingerprints[fingerprint] = self.fingerprints.get(fingerprint, 0) + 1

    def charge(self, usage: Usage | None, cost: float | None, *, is_answered: bool, is_cached: bool) -> None:
        """Adds the tokens and the cost in dollars of one line."""
        if usage is not None and not is_cached:
            self.input_tokens += usage.input or 0
            self.output_tokens += usage.output or 0
        self.cost = known_sum(self.cost, cost)
        if cost and is_answered and not (usage is not None and usage.is_whole):
            self.at_worst += cost

    def fail(self, kind: str, message: str) -> None:
        """Counts one final failure of this kind, and its `message` among the similar ones in `reasons`."""
        self.failed[kind] = self.failed.get(kind, 0) + 1
        line = " ".join(message.split())
        gist = kind, gist_of(line)
        if gist in self.reasons or (line and len(self.reasons) < _REASONS_MAX):
            self.reasons.setdefault(gist, Reason(line)).count += 1

    @property
    def answered(self) -> int:
        return self.ok + self.refused

    @property
    def failures(self) -> int:
        return sum(self.failed.values())

    @property
    def is_redirected(self) -> bool:
        """Whether a call failed by a redirect. It stops its lane, however many calls were in flight, so that the same
        command has them to send again."""
        return "redirect" in self.failed


def failures_of(all_ended: Iterable[PairCounts]) -> dict[str, tuple[int, Reason | None]]:
    """Returns for each kind of failure how many there are, and the commonest message; None if none has one."""
    counts = Counter[str]()
    reasons: dict[tuple[str, str], Reason] = {}
    for ended in all_ended:
        counts.update(ended.failed)
        for gist, reason in ended.reasons.items():
            reasons.setdefault(gist, Reason(reason.said)).count += reason.count
    commonest: dict[str, Reason] = {}
    for (kind, _), reason in reasons.items():
        if kind not in commonest or reason.count > commonest[kind].count:
            commonest[kind] = reason
    return {kind: (counts[kind], commonest.get(kind)) for kind in sorted(counts)}
