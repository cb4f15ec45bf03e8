"""The data of the page's conversation browser: every conversation's stances and figures, and, of as many as fit on a
page, the questions, answers, sources and judgements.

Owns which conversations are included in full, the same for every model, and the shape that the page's script reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from ....engine.folder_file import line_at, open_to_read
from ....metrics.chameleon.figures import ConversationFigures, steps
from ....metrics.chameleon.lines import STANCES, StoredTurn
from ....metrics.chameleon.traces import ConversationTrace
from ....report.escaping import in_html, visible
from ....report.labels import one_line
from .panel import ConversationScores

# Characters before compression. Measured: a million of prose and addresses take about half a megabyte of a page.
BUDGET = 8_000_000
LONGEST, LONGEST_SHORT = 3_000, 600
_MOST_SOURCES, _MOST_CLAIMS = 100, 12
_NAME_LONGEST = 160


class ShownText(Struct, frozen=True, array_like=True):
    """A text that is shown: `text` is its index in the texts (-1: none); `chars` is its full length if it was cut, else
    0."""

    text: int
    chars: int = 0


class BrowserTurn(Struct, frozen=True, array_like=True):
    """One turn in the browser; `number` counts from 1, `stance` is an index into STANCES. `reuse` is the turn's term of
    eq. (1) (None: it has none). `admits`: the answer acknowledges contradictions (None: the judge did not say);
    `judge_number` is the judge's own confidence; `raw` is the judge's reply if it was unreadable, and `repaired`
    says that it was asked for twice. `sources` have the indexes of address and status, and whether the answer cites
    it; `invalid` are citations of no page."""

    number: int
    stance: int
    is_change: bool
    confidence: float | None
    reuse: float | None
    refused: bool
    question: ShownText
    query: ShownText
    answer: ShownText
    rationale: ShownText
    claims: tuple[ShownText, ...]
    admits: bool | None
    judge_number: float | None
    raw: ShownText
    repaired: bool
    sources: tuple[tuple[int, int, bool], ...]
    invalid: tuple[ShownText, ...]


class BrowserRow(Struct, frozen=True, array_like=True):
    """One conversation of one pair: their indexes, its stances as a string of indexes into STANCES, its figures (`srr`:
    source re-use rate). `missing`: how many of its turns are missing; the figures are of the others. `changes` None:
    it is unscored."""

    pair: int
    conversation: int
    stances: str
    score: float | None
    srr: float | None
    confidence: float | None
    changes: int | None
    missing: int


class ConversationBrowser(Struct, frozen=True):
    """All contents of the browser. `conversations` are topic, domain and id, safe to display; `rows` has one entry for
    each conversation of each pair; `whole` has the turns of the conversations included in full, by the row's index.
    Turns refer to `texts`, `urls` and `statuses` by index."""

    pairs: tuple[str, ...]
    conversations: tuple[tuple[str, str, str], ...]
    rows: tuple[BrowserRow, ...]
    whole: Mapping[int, tuple[BrowserTurn, ...]]
    texts: tuple[str, ...]
    urls: tuple[str, ...]
    statuses: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    stances: tuple[str, ...] = STANCES


class _ShownTurn(StoredTurn):
    """A record with the fields that only the conversation browser shows."""

    question: str | None = None
    key_claims: list[Any] | None = None


def browser(panel: ConversationScores, budget: int = BUDGET) -> ConversationBrowser:
    """Returns the browser's contents; reads the lines of the conversations that are included in full again. `budget`:
    the most characters of their texts."""
    held = [(at, trace, figures) for at, sample in enumerate(panel.samples) for trace, figures in sample.held]
    names = sorted({trace.conversation for _, trace, _ in held})
    place = {name: at for at, name in enumerate(names)}
    titles: dict[str, tuple[str, str, str]] = {}
    for _, trace, _ in held:
        if not any(titles.get(trace.conversation, ("", ""))[:2]):
            titles[trace.conversation] = (_named(trace.topic), _named(trace.domain), _named(trace.conversation))
    rows = tuple(_row(at, place[trace.conversation], trace, figures) for at, trace, figures in held)
    by_conversation: dict[str, list[int]] = {}
    for at, (_, trace, _) in enumerate(held):
        by_conversation.setdefault(trace.conversation, []).append(at)
    pool = _ConversationTexts(budget)
    whole: dict[int, tuple[BrowserTurn, ...]] = {}
    kept = 0
    with ExitStack() as opened:
        # A run without turns may have no file either.
        paths = dict.fromkeys(panel.origin[panel.samples[at].pair][0].records for at, _, _ in held)
        files = {path: opened.enter_context(open_to_read(path)) for path in paths}
        for name in _by_extremes(names, held):
            if pool.is_full:
                break
            for at in by_conversation[name]:
                sample = panel.samples[held[at][0]]
                run, _ = panel.origin[sample.pair]
                whole[at] = tuple(_turns(panel, held[at][1], files[run.records], run.records, pool))
            kept += 1
    return ConversationBrowser(
        pairs=tuple(one_line(str(sample.pair), _NAME_LONGEST) for sample in panel.samples),
        conversations=tuple(titles[name] for name in names),
        rows=rows,
        whole=whole,
        texts=tuple(pool.texts),
        urls=tuple(pool.urls),
        statuses=tuple(pool.statuses),
        remarks=tuple(_remarks(kept, len(names), pool)),
    )


def _row(pair: int, conversation: int, trace: ConversationTrace, figures: ConversationFigures) -> BrowserRow:
    return BrowserRow(
        pair=pair,
        conversation=conversation,
        stances="".join(str(STANCES.index(turn.stance)) for turn in trace.turns),
        score=_short(figures.score),
        srr=_short(figures.srr),
        confidence=_short(figures.confidence),
        changes=figures.changes,
        missing=trace.missing,
    )


def _named(text: str) -> str:
    return one_line(text, _NAME_LONGEST) if text else ""


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _by_extremes(
    names: Sequence[str], held: Sequence[tuple[int, ConversationTrace, ConversationFigures]]
) -> Iterator[str]:
    """Yields conversations by their mean score over models: the highest, the lowest, the next highest, and so on; those
    without a score last."""
    scores: dict[str, list[float]] = {}
    for _, trace, figures in held:
        if figures.score is not None and trace.is_complete:
            scores.setdefault(trace.conversation, []).append(figures.score)
    ordered = sorted(scores, key=lambda name: (-sum(scores[name]) / len(scores[name]), name))
    while ordered:
        yield ordered.pop(0)
        if ordered:
            yield ordered.pop()
    yield from (name for name in names if name not in scores)


def _remarks(kept: int, number: int, pool: _ConversationTexts) -> Iterator[str]:
    if kept < number:
        yield (
            f"To keep the page small, questions, answers and sources are kept of {kept:,} of {number:,} conversations, "
            "of every model: those with the highest and the lowest mean scores, in turn. Of all others the stances and "
            "figures are here, and the rest stands in the records."
        )
    if pool.is_cut:
        yield f"Answers are cut at {LONGEST:,} characters, other texts at {LONGEST_SHORT:,}; their lengths are told."
    if pool.is_short:
        yield f"Of a turn at most {_MOST_SOURCES} sources and {_MOST_CLAIMS} claims or invalid citations are shown."


class _ConversationTexts:
    """The texts and addresses of the browser, each stored once and escaped; at most `budget` characters in all."""

    def __init__(self, budget: int) -> None:
        self.texts: dict[str, int] = {}
        self.urls: dict[str, int] = {}
        self.statuses: dict[str, int] = {}
        self.is_cut = self.is_short = False
        self._left = budget

    @property
    def is_full(self) -> bool:
        return self._left <= 0

    def text(self, text: str | None, longest: int = LONGEST_SHORT) -> ShownText:
        if not text:
            return ShownText(-1)
        chars = 0
        if len(text) > longest:
            chars, last = len(text), longest // 3
            text = f"{text[: longest - last]} […] {text[-last:]}"
            self.is_cut = True
        return ShownText(self._place(self.texts, visible(text)), chars)

    def first(self, every: list[Any], most: int) -> list[Any]:
        self.is_short = self.is_short or len(every) > most
        return every[:most]

    def url(self, url: str) -> int:
        return self._place(self.urls, one_line(url))

    def status(self, status: str) -> int:
        return self._place(self.statuses, one_line(status, 40))

    def _place(self, places: dict[str, int], text: str) -> int:
        at = places.get(text)
        if at is None:
            at = places[text] = len(places)
            self._left -= len(text)
        # Each reference to it takes room too.
        self._left -= 8
        return at


def _turns(
    panel: ConversationScores, trace: ConversationTrace, file: BinaryIO, path: Path, pool: _ConversationTexts
) -> Iterator[BrowserTurn]:
    decode = msgspec.json.Decoder(_ShownTurn).decode
    for step in steps(trace.turns, panel.readings):
        turn = step.turn
        try:
            line = decode(line_at(file, turn.place))
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise ValueError(f"{path} changed while it was read: ask again once its run has ended") from error
        cited = set(line.cited or ())
        sources = {source.url: source.status for source in line.retrieved or ()}
        loose = {url: "cited" for url in line.cited or () if url not in sources}
        every = pool.first(list((sources | loose).items()), _MOST_SOURCES)
        invalid = line.invalid_citations if isinstance(line.invalid_citations, list) else []
        yield BrowserTurn(
            number=turn.number,
            stance=STANCES.index(turn.stance),
            is_change=step.is_change,
            confidence=turn.confidence_by(panel.readings),
            reuse=_short(step.reuse),
            refused=line.status == "refused",
            question=pool.text(line.question),
            query=pool.text(line.query),
            answer=pool.text(line.text, LONGEST),
            rationale=pool.text(line.rationale),
            claims=tuple(pool.text(str(claim)) for claim in pool.first(line.key_claims or [], _MOST_CLAIMS)),
            admits=turn.acknowledges,
            judge_number=turn.judge_confidence,
            raw=pool.text(line.raw_judgement),
            repaired=line.judge_repaired,
            sources=tuple((pool.url(url), pool.status(status), url in cited) for url, status in every),
            invalid=tuple(pool.text(str(each)) for each in pool.first(invalid, _MOST_CLAIMS)),
        )


def browser_html(browser: ConversationBrowser) -> str:
    """Returns the HTML that the page's script fills with the conversations."""
    remarks = "".join(f'<p class="note">{in_html(remark)}</p>' for remark in browser.remarks)
    if not browser.rows:
        return '<p class="empty">There is no conversation to look into.</p>'
    return f"""<p>Each row is one conversation with one model: its stances turn by turn, and its figures. Choose one to
read its turns.</p>
<p class="note" id="conversations-told">Opening needs JavaScript; everything else on this page does not, and every
conversation’s stances and figures are in the table “Every conversation”.</p>{remarks}
<div id="conversations" data-state="closed"><div class="needs-data">
<div class="choose">
<div><label for="conversations-search">Topic, domain or id</label><input id="conversations-search" type="search"></div>
<div><label for="conversations-pair">Model</label><select id="conversations-pair"></select></div>
<div><label for="conversations-sort">Order</label><select id="conversations-sort"></select></div>
</div>
<ul class="stances-key"><li class="supportive">S supportive</li><li class="critical">C critical</li>
<li class="balanced">B balanced</li><li class="unclear">U unclear</li></ul>
<p class="sentence" id="conversations-count" aria-live="polite"></p>
<div class="table" role="region" tabindex="0" aria-label="Conversations">
<table class="talks"><caption>Conversations</caption><thead><tr><th scope="col">Topic</th><th scope="col">Model</th>
<th scope="col">Stances</th><th scope="col" class="number">Score</th><th scope="col" class="number">Source re-use</th>
<th scope="col" class="number">Confidence</th><th scope="col" class="number">Changes</th></tr></thead>
<tbody id="conversations-rows"></tbody></table></div>
<p><button type="button" id="conversations-more">Show more</button></p>
<div id="conversation" tabindex="-1"></div>
</div></div>"""
