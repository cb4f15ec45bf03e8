"""What the journals of a run hold: how each call ended, and the answers tallied for scoring.

One pass, constant work a line. Reads what other programs wrote too. Knows lines, not files; whatever a summary, an
exit code or a score says comes from here and never from what a run remembers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

import msgspec
from msgspec import Struct, field

from ...metrics.counts import Tally
from ...metrics.millstone import case_of
from ...metrics.stance import letter_of
from .records import Record, RecordError
from .sweep import Pair

_TEXTS_REMEMBERED = 1 << 14


class Ended(Struct):
    """How the calls of one pair ended. `cost` is None as long as no line has a price."""

    ok: int = 0
    refused: int = 0
    cached: int = 0
    truncated: int = 0
    maybe_billed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    failed: dict[str, int] = field(default_factory=dict)

    @property
    def answered(self) -> int:
        return self.ok + self.refused

    @property
    def failures(self) -> int:
        return sum(self.failed.values())


class Recount(Struct):
    """Everything counted so far."""

    pairs: dict[Pair, Ended] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)

    def of(self, pair: Pair) -> Ended:
        return self.pairs.get(pair) or Ended()


def recount(
    records: Iterable[bytes],
    failures: Iterable[bytes] = (),
    source: str = "records.jsonl",
    *,
    is_each_once: bool = False,
) -> Recount:
    """Count lines of both journals. Blank lines are passed over; a failure among the records counts as one.

    `is_each_once`: an answer that stands there twice is a RecordError; our own runs never write one.
    """
    counted = Recount()
    seen: set[tuple[Pair, str]] = set()
    differs = _reading_differs()
    disagreements: dict[Pair, int] = {}
    add = counted.tally.add
    decode = msgspec.json.Decoder(Record).decode
    for number, line in enumerate(records, 1):
        if not line.strip():
            continue
        try:
            record = decode(line)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise RecordError(f"{source}: line {number}: {error}") from error
        pair = Pair(record.model, record.temperature)
        ended = counted.pairs.get(pair)
        if ended is None:
            ended = counted.pairs[pair] = Ended()
            disagreements[pair] = 0
        _count(ended, record)
        if record.stance is None:
            continue
        if is_each_once:
            if (pair, record.id) in seen:
                raise RecordError(f"{source}: line {number}: id {record.id} of {pair} stands there twice: keep one")
            seen.add((pair, record.id))
        case = case_of(record.config)
        assert case is not None  # a Record has one of the protocols' configurations
        add(record.model, record.temperature, record.issue, case, record.stance, record.template, record.trial)
        if record.status == "refused":
            counted.tally.count_refusal(record.model, record.temperature, record.issue)
        elif record.text is not None and differs(record.text):
            disagreements[pair] += 1
    for pair, answers in disagreements.items():
        counted.tally.count_disagreements(*pair, answers)
    for number, line in enumerate(failures, 1):
        try:
            record = decode(line)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise RecordError(f"failures.jsonl: line {number}: {error}") from error
        _count(counted.pairs.setdefault(Pair(record.model, record.temperature), Ended()), record)
    return counted


def _count(ended: Ended, record: Record) -> None:
    if record.status == "ok":
        ended.ok += 1
    elif record.status == "refused":
        ended.refused += 1
    else:
        ended.failed[record.status] = ended.failed.get(record.status, 0) + 1
    ended.cached += record.cached
    ended.truncated += record.truncated
    ended.maybe_billed += record.maybe_billed
    if record.usage is not None and not record.cached:
        ended.input_tokens += record.usage.input
        ended.output_tokens += record.usage.output
    if record.cost is not None:
        ended.cost = (ended.cost or 0.0) + record.cost


def _reading_differs() -> Callable[[str], bool]:
    """Whether the two readings of a text differ. Models repeat themselves, so texts are remembered."""

    @lru_cache(_TEXTS_REMEMBERED)
    def differs(text: str) -> bool:
        return letter_of(text, "paper") != letter_of(text, "careful")

    return differs
