"""Traces: the turns of each conversation as read from record lines, without their texts.

Owns when a conversation is complete, and that a turn recorded twice counts once. Knows no option of a score and no
file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

import msgspec
from msgspec import Struct

from ...engine.pairs import Pair, order_of
from ..read_in_part import ReadInPart, RunReads
from .lines import (
    STANCES,
    UNCLEAR,
    StoredTurn,
    Troubles,
    confidence_in,
    is_empty,
    pages_in,
    place_of,
    sources_in,
    unpacked,
)
from .readings import Readings

# The conversations that each pair was to be asked, with their numbers of turns.
Plan = Mapping[Pair, Mapping[str, int]]

_SETS = {(documents, by): at for at, (documents, by) in enumerate(
    (documents, by) for documents in ("cited", "retrieved") for by in ("url", "hostname")
)}  # fmt: skip


class TracedTurn(Struct, frozen=True, gc=False):
    """One turn of a conversation, without its texts.

    `number` counts from 1. `confidence` is the rubric's, `judge_confidence` the judge's own number; None if no judge
    read the answer. `sources` holds the hashes of the cited sources by address and by host, then of the retrieved ones;
    they are stable within one process. `pages` is how many pages had a text, None if unknown. `forgotten` earlier turns
    were left out of the prompt for lack of room; `is_in_history`: later turns may be shown this one. `acknowledges`:
    the judge found that the answer acknowledges contradictions, None if it did not say.
    """

    number: int
    stance: str
    confidence: float | None
    judge_confidence: float | None = None
    sources: tuple[bytes, bytes, bytes, bytes] = (b"", b"", b"", b"")
    pages: int | None = None
    forgotten: int = 0
    is_in_history: bool = True
    acknowledges: bool | None = None

    @property
    def is_clear(self) -> bool:
        return self.stance != UNCLEAR

    def documents(self, readings: Readings) -> frozenset[int]:
        """Returns the hashes of the turn's sources, D of eq. (1), by the readings."""
        return unpacked(self.sources[_SETS[readings.sources, readings.sources_by]])

    def confidence_by(self, readings: Readings) -> float | None:
        """Returns the confidence by the reading, from 0 to 1: the rubric's where the judge gave no number, None if no
        judge read the answer."""
        if readings.confidence == "number" and self.judge_confidence is not None:
            return self.judge_confidence
        return self.confidence


class ConversationTrace(Struct, frozen=True):
    """One conversation with one pair, its turns in order; `asked` is the number of turns that it
    was to have, `reads` what the server read of all the pair's prompts."""

    pair: Pair
    conversation: str
    domain: str
    topic: str
    turns: tuple[TracedTurn, ...]
    asked: int
    reads: ReadInPart | None = None

    @property
    def is_complete(self) -> bool:
        return bool(self.turns) and not self.missing

    @property
    def missing(self) -> int:
        """The number of asked turns that are missing; turns beyond the asked ones do not count."""
        return self.asked - sum(1 <= turn.number <= self.asked for turn in self.turns)


class _Conversation(Struct):
    """A conversation while its turns are gathered."""

    domain: str
    topic: str
    turns: dict[int, TracedTurn] = {}


class Traces:
    """The turns of all conversations, gathered from record lines in any order; and counts of those that failed for
    good, by kind of failure and by step."""

    def __init__(self, reads: RunReads | None = None) -> None:
        self._reads = reads or RunReads()
        self._pairs: dict[Pair, dict[str, _Conversation]] = {}
        self._decode = msgspec.json.Decoder(StoredTurn).decode
        self._names: dict[str, str] = {}
        self.troubles: dict[Pair, Troubles] = {}
        self.failed: dict[Pair, Counter[str]] = {}
        self.failed_steps: dict[Pair, Counter[str]] = {}
        self.repeated: list[str] = []
        self._first_failed: dict[tuple[Pair, str], int] = {}

    def __repr__(self) -> str:
        conversations = sum(map(len, self._pairs.values()))
        turns = sum(each.turns for each in self.troubles.values())
        return f"<Traces [Pairs: {len(self._pairs)}, Conversations: {conversations}, Turns: {turns}]>"

    def add(self, line: bytes) -> bool:
        """Adds a line, as `take` does. Raises ValueError for a line that is none."""
        try:
            return self.take(self._decode(line))
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise ValueError(str(error)) from error

    def take(self, record: StoredTurn) -> bool:
        """Adds a record; returns False if it is a failure and no turn. If a turn occurs twice the first is kept, and
        the other is listed in `repeated`. Raises ValueError for an invalid turn."""
        if record.status not in ("ok", "refused"):
            self._fail(record)
            return False
        name, number = place_of(record)
        stance = record.stance or UNCLEAR
        if stance not in STANCES:
            raise ValueError(f"stance {record.stance!r} is unknown; allowed are {', '.join(STANCES)}")
        confidence = confidence_in(record)
        if is_empty(record):
            # An empty answer has no stance, whatever the judge said.
            stance, confidence = UNCLEAR, None
        pair = self._pair(record)
        conversations = self._pairs.setdefault(pair, {})
        conversation = conversations.get(name)
        if conversation is None:
            named = (self._name(record.domain or ""), self._name(record.topic or ""))
            conversation = conversations[self._name(name)] = _Conversation(*named)
        if number in conversation.turns:
            self.repeated.append(f"{name}/{number} of {pair}")
            return True
        turn = TracedTurn(
            number,
            STANCES[STANCES.index(stance)],
            confidence,
            None if confidence is None else record.judge_confidence,
            sources_in(record),
            pages_in(record),
            0 if record.cut is None else record.cut.history,
            not (record.filtered or is_empty(record)),
            acknowledges if isinstance(acknowledges := record.contradictions_acknowledged, bool) else None,
        )
        conversation.turns[number] = turn
        if record.long_prompts:
            self._reads.add(pair, record.long_prompts)
        self.troubles.setdefault(pair, Troubles()).note(record, turn.stance, turn.confidence)
        return True

    def held(self, pair: Pair, plan: Plan) -> int:
        """Returns how many planned turns of a pair are not asked since an earlier one of theirs failed."""
        asked = plan.get(pair, {})
        firsts = ((name, turn) for (of, name), turn in self._first_failed.items() if of == pair)
        return sum(max(0, asked.get(name, turn) - turn) for name, turn in firsts)

    def pairs(self, plan: Plan = MappingProxyType({})) -> tuple[Pair, ...]:
        """Returns every pair that answered or was asked, in order of name and treatment."""
        return tuple(sorted({*self._pairs, *plan}, key=order_of))

    def traces(self, plan: Plan = MappingProxyType({})) -> tuple[ConversationTrace, ...]:
        """Returns every conversation in order of pair and id, including asked ones without a turn. A pair that is not
        in `plan` counts as asked for everything that any pair answered."""
        whole = plan.values() if plan else (self._seen(),)
        every: dict[str, int] = {}
        for conversations in whole:
            for name, number in conversations.items():
                every[name] = max(number, every.get(name, 0))
        subjects = self._subjects()
        traces = []
        for pair in self.pairs(plan):
            held = self._pairs.get(pair, {})
            reads = self._reads.of(pair)
            wanted = plan[pair] if pair in plan else {**every, **{name: 0 for name in held if name not in every}}
            for name in sorted({*wanted, *held}):
                there = held.get(name)
                turns = () if there is None else tuple(there.turns[number] for number in sorted(there.turns))
                domain, topic = subjects.get(name, ("", ""))
                last = wanted.get(name, 0) or (turns[-1].number if turns else 0)
                traces.append(ConversationTrace(pair, name, domain, topic, turns, last, reads))
        return tuple(traces)

    def _fail(self, record: StoredTurn) -> None:
        pair, turn = self._pair(record), record.turn or 0
        self.failed.setdefault(pair, Counter())[record.status] += 1
        if record.step:
            self.failed_steps.setdefault(pair, Counter())[str(record.step)] += 1
        place = pair, record.conversation or ""
        self._first_failed[place] = min(turn, self._first_failed.get(place, turn))

    def _pair(self, record: StoredTurn) -> Pair:
        return Pair(self._name(record.model), record.temperature, record.effort)

    def _seen(self) -> dict[str, int]:
        """Returns, for each conversation, the highest number of a turn of any pair."""
        seen: dict[str, int] = {}
        for conversations in self._pairs.values():
            for name, conversation in conversations.items():
                seen[name] = max(seen.get(name, 0), *conversation.turns)
        return seen

    def _subjects(self) -> dict[str, tuple[str, str]]:
        """Returns domain and topic of each conversation, from the first pair that has them."""
        subjects: dict[str, tuple[str, str]] = {}
        for pair in self.pairs():
            for name, conversation in self._pairs[pair].items():
                if not any(subjects.get(name, ())):
                    subjects[name] = (conversation.domain, conversation.topic)
        return subjects

    def _name(self, name: str) -> str:
        return self._names.setdefault(name, name)
