"""What the journals of a run hold: how each turn ended, what was held back by a failure, tokens and cost.

One pass, constant work a line. Knows lines, not files; whatever a summary or an exit code says comes from here and
never from what a run remembers. Scores: metrics.chameleon.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct, field

from ...engine.call import Usage, known_sum
from ...engine.pairs import Ended, Pair
from .outside import FromCache
from .records import RecordError

_NONE = Usage(0, 0)


class Judging(Struct):
    """What judging a pair's answers took, tokens as an `Ended` has them. `unreadable` are turns whose judgement could
    not be read, even repaired. `cost` is None as long as no line has a price for it."""

    input_tokens: int = 0
    output_tokens: int = 0
    repaired: int = 0
    unreadable: int = 0
    cost: float | None = None


class Recount(Struct):
    """Everything counted so far. A failed turn's kind stands in its pair's `failed`, and its step here; `searches` is
    what they cost."""

    pairs: dict[Pair, Ended] = field(default_factory=dict)
    judging: dict[Pair, Judging] = field(default_factory=dict)
    searches: dict[Pair, float] = field(default_factory=dict)
    steps: dict[Pair, dict[str, int]] = field(default_factory=dict)

    def of(self, pair: Pair) -> Ended:
        return self.pairs.get(pair) or Ended()


class _Line(Struct, frozen=True):
    """What is counted of a line; the rest of it is passed over unread."""

    id: str
    conversation: str
    turn: int
    model: str
    temperature: float | None = None
    status: str = "ok"
    truncated: bool = False
    usage: Usage | None = None
    usage_judge: Usage | None = None
    cost: float | None = None
    cost_judge: float | None = None
    cost_search: float | None = None
    cached: bool = False
    from_cache: FromCache | None = None
    maybe_billed: int = 0
    judge_repaired: bool = False
    raw_judgement: str | None = None
    step: str = ""
    error: str = ""


def recount(
    records: Iterable[bytes],
    failures: Iterable[bytes] = (),
    asked: Mapping[Pair, Mapping[str, int]] | None = None,
    source: str = "records.jsonl",
) -> Recount:
    """Count lines of both journals, blank ones passed over. `asked` tells how many turns each conversation has, and so
    how many a failed one holds back."""
    counted = Recount()
    decode = msgspec.json.Decoder(_Line).decode
    failed: dict[tuple[Pair, str], int] = {}
    for journal, lines in ((source, records), ("failures.jsonl", failures)):
        for number, data in enumerate(lines, 1):
            if not data.strip():
                continue
            try:
                line = decode(data)
            except (msgspec.MsgspecError, UnicodeError) as error:
                raise RecordError(f"{journal}: line {number}: {error}") from error
            pair = Pair(line.model, line.temperature)
            _count(counted, pair, line)
            if line.status not in ("ok", "refused"):
                key = (pair, line.conversation)
                failed[key] = min(line.turn, failed.get(key, line.turn))
    for (pair, conversation), turn in failed.items():
        turns = (asked or {}).get(pair, {}).get(conversation, turn)
        counted.pairs[pair].held += max(0, turns - turn)
    return counted


def _count(counted: Recount, pair: Pair, line: _Line) -> None:
    ended = counted.pairs.setdefault(pair, Ended())
    judging = counted.judging.setdefault(pair, Judging())
    if line.status == "ok":
        ended.ok += 1
    elif line.status == "refused":
        ended.refused += 1
    else:
        ended.fail(line.status, line.error)
        steps = counted.steps.setdefault(pair, {})
        steps[line.step] = steps.get(line.step, 0) + 1
    ended.cached += line.cached
    ended.truncated += line.truncated
    ended.maybe_billed += line.maybe_billed
    if line.cost_search is not None:
        counted.searches[pair] = counted.searches.get(pair, 0.0) + line.cost_search
    judging.cost = known_sum(judging.cost, line.cost_judge)
    judging.repaired += line.judge_repaired
    judging.unreadable += line.raw_judgement is not None
    # Other programs' lines tell nothing but that they are cached.
    stored = line.from_cache or (FromCache(line.usage, line.usage_judge) if line.cached else FromCache())
    for counts, usage, unsent in ((ended, line.usage, stored.usage), (judging, line.usage_judge, stored.usage_judge)):
        if usage is not None:
            counts.input_tokens += usage.input - (unsent or _NONE).input
            counts.output_tokens += usage.output - (unsent or _NONE).output
    ended.cost = known_sum(ended.cost, line.cost)
