"""Reads a record's line, of this program or of another; the fields in DESIGN.md suffice.

Owns the allowed values of each field, the defaults of missing ones, and the counts of problems that no figure shows.
Knows no conversation and no option of a score.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct, field

from ...engine.page_urls import hostname_of, normalised_url
from .rubric import confidence_of

Stance = Literal["supportive", "critical", "balanced", "unclear"]
STANCES: tuple[Stance, ...] = get_args(Stance)
UNCLEAR = "unclear"

_Unit = Annotated[float, Meta(ge=0, le=1)]
_PLAIN = re.compile(r"https?://([a-z0-9.-]+)(?:/[!\"$->@-~]*[!\"$-.0->@-~])?")


class _SourceLine(Struct):
    url: str
    status: str = "ok"


class _CutLine(Struct):
    dropped: list[int] = []
    history: int = 0
    judge_history: int = 0
    old_pages: int = 0


class StoredTurn(Struct):
    """The fields of a turn's record that are read; others are ignored."""

    model: str
    temperature: float | None = None
    effort: str | None = None
    status: str = "ok"
    step: str | int = ""
    id: str | None = None
    query: str | None = None
    text: str | None = None
    truncated: bool = False
    conversation: str | None = None
    turn: Annotated[int, Meta(ge=1)] | None = None
    domain: str | None = None
    topic: str | None = None
    stance: str | None = None
    confidence: _Unit | None = None
    judge_confidence: _Unit | None = None
    judge_temperature: float | None = None
    rationale: str | None = None
    retrieved: list[_SourceLine] | None = None
    cited: list[str] | None = None
    invalid_citations: list[Any] | int | None = None
    raw_judgement: str | None = None
    judge_repaired: bool = False
    search_remarks: list[str] | None = None
    query_by: str = "model"
    cut: _CutLine | None = None
    filtered: bool = False
    contradictions_acknowledged: Any = None
    long_prompts: list[tuple[int, int]] = []


def place_of(record: StoredTurn) -> tuple[str, int]:
    name, number = record.conversation, record.turn
    if (name is None or number is None) and record.id is not None:
        of_id, _, last = record.id.rpartition("/")
        name = of_id if name is None else name
        if number is None and last.isascii() and last.isdecimal():
            number = int(last)
    if not name or not number:
        raise ValueError("a turn needs `conversation` and `turn`, or an `id` of both, as in `topic-1/3`")
    return name, number


def confidence_in(record: StoredTurn) -> float | None:
    """Returns the stored confidence, from 0 to 1, else the rubric's, which is 0.67 for a stance without a rationale;
    None if no judge read the answer."""
    if record.confidence is not None:
        return record.confidence
    if record.rationale or record.stance not in (None, UNCLEAR):
        return confidence_of(record.rationale or "")
    return None


def is_empty(record: StoredTurn) -> bool:
    """Returns whether the answer has no word; False if the line has no field `text`."""
    return record.text is not None and not record.text.strip()


def pages_in(record: StoredTurn) -> int | None:
    """Returns how many of the turn's pages had a text. None if that is unknown: the line lists no page although it has
    no query or cites a page."""
    if not record.retrieved and (not record.query or record.cited):
        return None
    return sum(source.status == "ok" for source in record.retrieved or ())


def sources_in(record: StoredTurn) -> tuple[bytes, bytes, bytes, bytes]:
    """Returns four sets of hashes as bytes: the cited sources by address and by host, then the retrieved ones."""
    cited = [marks_of(url) for url in record.cited or ()]
    retrieved = [marks_of(source.url) for source in record.retrieved or ()]
    return packed(cited, 0), packed(cited, 1), packed(retrieved, 0), packed(retrieved, 1)


def packed(marks: list[tuple[int, int]], at: int) -> bytes:
    """Returns the set of the marks' addresses (`at` 0) or of their hosts (1), as bytes that `unpacked` reads."""
    return array("q", {mark[at] for mark in marks}).tobytes() if marks else b""


def marks_of(url: str) -> tuple[int, int]:
    """Returns 64-bit hashes of a normalised address and of its host; an address without a host counts as its own host.
    Among the some hundred sources of a conversation, two collide in less than one of 10^14 conversations."""
    # Three million addresses a run: nearly all are in their normal form already.
    plain = _PLAIN.fullmatch(url)
    if plain is not None:
        return hash(url), hash(plain[1])
    whole = normalised_url(url)
    return hash(whole), hash(hostname_of(whole) or whole)


def unpacked(kept: bytes) -> frozenset[int]:
    return frozenset(memoryview(kept).cast("q"))


class Troubles(Struct):
    """Counts of problems in a pair's turns that no figure shows.

    `pages` counts retrieved pages by status; `shortened` the turns whose prompts, or whose judge's prompts, left out
    history or pages; `unasked` the turns that searched for the question itself; `without_hits` those whose search found
    nothing, `without_text` those for which no page had a text. `cut` answers ended at max_tokens. `unclear` counts the
    turns without a clear stance: `empty` answers (`empty_cut` of them cut at max_tokens), `refused_unclear` refusals,
    `unjudged` answers without a readable verdict (`judge_empty` of them with an empty reply of the judge), and those
    that the judge called unclear. Of the judge's replies, `repaired` were asked for twice, `unreadable` even so, and
    `without_number` had no confidence of its own. `judged_at` counts the judged turns by the temperature that the judge
    was sent, None: none.
    """

    turns: int = 0
    refused: int = 0
    cut: int = 0
    unclear: int = 0
    empty: int = 0
    empty_cut: int = 0
    refused_unclear: int = 0
    unjudged: int = 0
    judge_empty: int = 0
    unreadable: int = 0
    repaired: int = 0
    without_number: int = 0
    without_hits: int = 0
    without_text: int = 0
    search_remarks: int = 0
    unasked: int = 0
    shortened: int = 0
    invalid_citations: int = 0
    pages: Counter[str] = field(default_factory=Counter)
    judged_at: Counter[float | None] = field(default_factory=Counter)

    def note(self, record: StoredTurn, stance: str, confidence: float | None) -> None:
        """Counts one more turn, with the stance and confidence read from its line."""
        self.turns += 1
        self.refused += record.status == "refused"
        self.cut += record.truncated
        self.unclear += stance == UNCLEAR
        if stance == UNCLEAR:
            self._note_unclear(record, confidence)
        self.without_text += pages_in(record) == 0
        self.unreadable += record.raw_judgement is not None
        self.repaired += record.judge_repaired
        self.judged_at[record.judge_temperature] += confidence is not None or record.raw_judgement is not None
        self.without_number += record.judge_confidence is None and confidence is not None
        self.without_hits += record.retrieved == []
        self.search_remarks += bool(record.search_remarks)
        self.unasked += record.query_by == "question"
        cut = record.cut or _CutLine()
        self.shortened += bool(cut.dropped or cut.history or cut.judge_history or cut.old_pages)
        invalid = record.invalid_citations or 0
        self.invalid_citations += invalid if isinstance(invalid, int) else len(invalid)
        self.pages.update(source.status for source in record.retrieved or ())

    @property
    def judged_unclear(self) -> int:
        """The number of turns that the judge itself called unclear."""
        return self.unclear - self.empty - self.refused_unclear - self.unjudged

    def _note_unclear(self, record: StoredTurn, confidence: float | None) -> None:
        if record.status == "refused":
            self.refused_unclear += 1
        elif is_empty(record):
            self.empty += 1
            self.empty_cut += record.truncated
        elif confidence is None:
            self.unjudged += 1
            self.judge_empty += record.raw_judgement is not None and not record.raw_judgement.strip()
