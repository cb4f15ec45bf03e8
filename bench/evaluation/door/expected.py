"""What a benchmark expects of a run: the load of each lane, before prices and quotas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct, field

from ....engine.estimate import OUTPUT_FIRST
from ....engine.pairs import Pair

ASSUMED = f"an answer has at least 1 token, at most max_tokens (where that is not sent, {OUTPUT_FIRST})"


class Remainder(Struct, frozen=True):
    """The prompts that one pair is still to be sent, and their characters; None: they contain answers."""

    prompts: int
    chars: int | None


class Span(NamedTuple):
    """An amount, from the least to the most that is likely."""

    least: float
    most: float

    def __add__(self, other: object) -> Span:
        assert isinstance(other, Span)
        return Span(self.least + other.least, self.most + other.most)

    def times(self, factor: float) -> Span:
        return Span(self.least * factor, self.most * factor)


NOTHING = Span(0, 0)


Missing = Mapping[Pair, tuple[Remainder, int | None]]
"""For each pair the calls left to send, and how many calls the cache answers (None: the cache was not searched)."""


class Load(Struct):
    """The calls that one lane is expected to carry, and the tokens of their prompts and answers. `input` None: there
    are none, as in searches, or not known, since prompts contain answers. `worst`: the tokens of output at worst, above
    those of `output` where a model may think for long; infinite: it is not known how long. `cached`: the number of
    further calls that the cache answers (None: it was not searched)."""

    calls: Span = NOTHING
    input: Span | None = NOTHING
    output: Span = NOTHING
    worst: float = 0
    cached: int | None = None

    def add(self, calls: Span, tokens: Span, output: Span, worst: float | None = None) -> None:
        self.calls += calls
        self.input = tokens if self.input is None else self.input + tokens
        self.output += output
        self.worst += output.most if worst is None else worst


class Chain(Struct, frozen=True):
    """Steps that follow each other: `items` items of at most `steps` steps, of which `at_once` are under way. `seconds`
    are those of a step; `noun`: the word for a step."""

    items: int
    at_once: int
    steps: int
    seconds: Span
    noun: str

    @property
    def minutes(self) -> Span:
        """The time of all items, each of the most steps."""
        rounds = -(-self.items // self.at_once)
        return Span(*(rounds * self.steps * seconds / 60 for seconds in self.seconds))


class Expected(Struct, kw_only=True):
    """What a benchmark expects of a run, before prices and quotas: the load of each lane, the steps that follow each
    other, the run's size in words, sentences about the figures, and what these assume. `missing`: the calls left to
    send; empty where an item takes several calls, which depend on answers. `more`: the benchmark's own values for
    programs."""

    loads: dict[str, Load]
    chain: Chain | None = None
    what: str = ""
    remarks: list[str] = field(default_factory=list)
    assumed: str = ASSUMED
    missing: Missing = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
