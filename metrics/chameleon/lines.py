"""A record's line, ours or another program's: DESIGN.md's fields are enough.

Owns what each field may be, what stands in for one that is missing, and the troubles that no figure shows. Knows no
conversation and no option of a score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct, field

from .rubric import confidence_by_words, confidence_of
from .sources import marks_of, packed

Stance = Literal["supportive", "critical", "balanced", "unclear"]
STANCES: tuple[Stance, ...] = get_args(Stance)
UNCLEAR = "unclear"

_Unit = Annotated[float, Meta(ge=0, le=1)]


class _Source(Struct):
    url: str
    status: str = "ok"


class _Cut(Struct):
    dropped: list[int] = []
    history: int = 0
    judge_history: int = 0


class Line(Struct):
    """What is read of a turn; every other field is passed over."""

    model: str
    temperature: float | None = None
    status: str = "ok"
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
    rationale: str | None = None
    retrieved: list[_Source] | None = None
    cited: list[str] | None = None
    invalid_citations: list[Any] | int | None = None
    raw_judgement: str | None = None
    judge_repaired: bool = False
    search_remarks: list[str] | None = None
    query_by: str = "model"
    cut: _Cut | None = None
    filtered: bool = False
    contradictions_acknowledged: Any = None


def place_of(record: Line) -> tuple[str, int]:
    name, number = record.conversation, record.turn
    if (name is None or number is None) and record.id is not None:
        of_id, _, last = record.id.rpartition("/")
        name = of_id if name is None else name
        if number is None and last.isascii() and last.isdecimal():
            number = int(last)
    if not name or not number:
        raise ValueError("a turn needs `conversation` and `turn`, or an `id` of both, as in `topic-1/3`")
    return name, number


def confidence_in(record: Line) -> float | None:
    """As it is written, else by the rubric, which has 0.67 for a stance without a word about it. None where nothing
    shows that a judge read the answer. What an earlier version wrote without a look at negations is read anew."""
    if record.confidence is not None:
        is_by_words = record.rationale and record.confidence == confidence_by_words(record.rationale)
        return confidence_of(record.rationale or "") if is_by_words else record.confidence
    if record.rationale or record.stance not in (None, UNCLEAR):
        return confidence_of(record.rationale or "")
    return None


def is_empty(record: Line) -> bool:
    """Whether the answer has no word. A line without the field says nothing of it."""
    return record.text is not None and not record.text.strip()


def pages_in(record: Line) -> int | None:
    """How many of the pages retrieved for the turn gave a text; None where the line does not tell: it lists none, and
    has no query or cites a page all the same."""
    if not record.retrieved and (not record.query or record.cited):
        return None
    return sum(source.status == "ok" for source in record.retrieved or ())


def sources_in(record: Line) -> tuple[bytes, bytes, bytes, bytes]:
    cited = [marks_of(url) for url in record.cited or ()]
    retrieved = [marks_of(source.url) for source in record.retrieved or ()]
    return packed(cited, 0), packed(cited, 1), packed(retrieved, 0), packed(retrieved, 1)


class Troubles(Struct):
    """What befell a pair's turns that no figure shows. `pages` counts what was retrieved, by its status; `shortened`
    the turns whose prompts, the judge's too, left out history or pages, `unasked` those that searched for the question
    itself, `without_text` those for which no page gave a text.

    `unclear` counts the turns without a clear stance. Of these `empty` had an answer without a word (`empty_cut`: one
    that max_tokens cut off), `refused_unclear` were refused, `unjudged` had an answer and no readable verdict
    (`judge_empty`: the judge's reply was empty); the judge called the rest unclear."""

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
    without_sources: int = 0
    without_hits: int = 0
    without_text: int = 0
    search_remarks: int = 0
    unasked: int = 0
    shortened: int = 0
    invalid_citations: int = 0
    pages: Counter[str] = field(default_factory=Counter)

    def note(self, record: Line, stance: str, confidence: float | None) -> None:
        """One turn more, with what was made of its line."""
        self.turns += 1
        self.refused += record.status == "refused"
        self.cut += record.truncated
        self.unclear += stance == UNCLEAR
        if stance == UNCLEAR:
            self._note_unclear(record, confidence)
        self.without_text += pages_in(record) == 0
        self.unreadable += record.raw_judgement is not None
        self.repaired += record.judge_repaired
        self.without_number += record.judge_confidence is None and confidence is not None
        self.without_sources += not record.cited
        self.without_hits += record.retrieved == []
        self.search_remarks += bool(record.search_remarks)
        self.unasked += record.query_by == "question"
        cut = record.cut or _Cut()
        self.shortened += bool(cut.dropped or cut.history or cut.judge_history)
        invalid = record.invalid_citations or 0
        self.invalid_citations += invalid if isinstance(invalid, int) else len(invalid)
        self.pages.update(source.status for source in record.retrieved or ())

    @property
    def judged_unclear(self) -> int:
        """By the judge's own word."""
        return self.unclear - self.empty - self.refused_unclear - self.unjudged

    def _note_unclear(self, record: Line, confidence: float | None) -> None:
        if record.status == "refused":
            self.refused_unclear += 1
        elif is_empty(record):
            self.empty += 1
            self.empty_cut += record.truncated
        elif confidence is None:
            self.unjudged += 1
            self.judge_empty += record.raw_judgement is not None and not record.raw_judgement.strip()


def sum_of(every: Iterable[Troubles]) -> Troubles:
    whole = Troubles()
    for one in every:
        for name in Troubles.__struct_fields__:
            setattr(whole, name, getattr(whole, name) + getattr(one, name))
    return whole
