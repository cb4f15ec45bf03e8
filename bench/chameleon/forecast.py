"""Predicts a run's calls, tokens, cost and time for every lane, from the least to the most that is likely.

Questions and prompts are counted exactly; what is unknown before (pages, answers, rationales) is assumed, and all
assumptions are in one struct. Pure: quotas and prices are passed in, and no cache is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from ...engine.attempts.estimate import TOKENS_PER_CHAR, weight_of
from ...engine.attempts.money import cost_range
from ...engine.attempts.prices import Price
from ...engine.limits import Quota
from ...engine.runs.pairs import Pair
from .dataset import Conversation, ConversationSet
from .order import places_in_order
from .prompts import FIGURE_7, JUDGE, SYSTEM, query_prompt
from .run_spec import ConversationSpec

WEB = "web"
# The characters of the fixed words around sources and question, and around each past turn.
_FRAME, _LABELS = 25, 12


class Assumptions(Struct, frozen=True):
    """Assumed values, each from the least to the most that is likely.

    Tokens of an answer, a query and a judgement; the share of results that give a text; the filled share of a page's
    budget; hops to a page (redirects, and a host's robots.txt); the share of judgements asked for twice.
    `heading_chars` are the characters of a page's title and address.
    """

    answer: tuple[int, int] = (150, 600)
    query: tuple[int, int] = (6, 20)
    judgement: tuple[int, int] = (80, 300)
    pages_with_text: tuple[float, float] = (0.5, 0.95)
    page_filled: tuple[float, float] = (0.5, 1.0)
    hops: tuple[float, float] = (1.0, 2.0)
    repaired: tuple[float, float] = (0.0, 0.05)
    heading_chars: int = 120


class SearchTerms(Struct, frozen=True):
    """How an engine counts: results of one request, and the price of a thousand requests."""

    results_a_request: int = 20
    dollars_per_1000: float | None = None


ASSUMED, PLAIN = Assumptions(), SearchTerms()


class LikelyRange(NamedTuple):
    """A range of amounts, from the least to the most that is likely."""

    least: float
    most: float

    def __add__(self, other: object) -> LikelyRange:
        assert isinstance(other, LikelyRange)
        return LikelyRange(self.least + other.least, self.most + other.most)


NOTHING = LikelyRange(0.0, 0.0)


class LaneForecast(Struct, frozen=True):
    """One lane's part of the run. `cost` is in dollars (None: the lane has no price), `minutes` by its quotas (None: it
    declares none)."""

    lane: str
    calls: LikelyRange
    input_tokens: LikelyRange = NOTHING
    output_tokens: LikelyRange = NOTHING
    cost: LikelyRange | None = None
    minutes: LikelyRange | None = None


class ConversationForecast(Struct, frozen=True):
    """The forecast of a run. `turns` counts those of all pairs. `cost` is that of the lanes with a price, `unpriced`
    lists the others. Lanes work side by side, so `minutes` is that of the `slowest`."""

    turns: int
    conversations: int
    lanes: tuple[LaneForecast, ...]
    cost: LikelyRange
    unpriced: tuple[str, ...]
    minutes: LikelyRange | None
    slowest: str | None
    assumed: Assumptions


class _Load(Struct):
    calls: LikelyRange = NOTHING
    input: LikelyRange = NOTHING
    output: LikelyRange = NOTHING

    def add(self, calls: LikelyRange, tokens: LikelyRange, output: LikelyRange) -> None:
        self.calls += calls
        self.input += tokens
        self.output += output


def forecast(
    dataset: ConversationSet,
    asked: ConversationSpec,
    quotas: Mapping[str, Quota],
    prices: Mapping[str, Price],
    search: SearchTerms = PLAIN,
    assumed: Assumptions = ASSUMED,
) -> ConversationForecast:
    """Returns the forecast. `quotas`: by lane, `web` among them, those of all API keys together; a lane that is missing
    has no limit."""
    if asked.max_tokens is not None:
        most = min(assumed.answer[1], asked.max_tokens)
        answer = (min(assumed.answer[0], most), most)
        assumed = Assumptions(
            answer, *(getattr(assumed, name) for name in Assumptions.__struct_fields__ if name != "answer")
        )
    loads: dict[str, _Load] = {}
    turns = 0
    for conversation in dataset.conversations:
        turns += _add_conversation(loads, conversation, asked, assumed)
    retrievals = LikelyRange(turns * _retrievals(asked)[0], turns * _retrievals(asked)[1])
    requests = -(-asked.pages // search.results_a_request)
    loads[asked.search] = _Load(LikelyRange(retrievals.least * requests, retrievals.most * (requests + 1)))
    pages = LikelyRange(
        retrievals.least * asked.pages * assumed.pages_with_text[0] * assumed.hops[0],
        retrievals.most * asked.pages * assumed.hops[1],
    )
    loads[WEB] = _Load(pages)
    found = tuple(_lane(name, load, quotas.get(name), prices.get(name)) for name, load in loads.items())
    found = tuple(_searched(each, search) if each.lane == asked.search else each for each in found)
    costs = [each.cost for each in found if each.cost is not None]
    timed = [each for each in found if each.minutes is not None]
    slowest = max(timed, key=lambda each: (each.minutes or NOTHING).most, default=None)
    return ConversationForecast(
        turns=turns * len(asked.pairs),
        conversations=len(dataset.conversations) * len(asked.pairs),
        lanes=found,
        cost=sum(costs, NOTHING),
        unpriced=tuple(each.lane for each in found if each.cost is None and each.lane != WEB),
        minutes=slowest.minutes if slowest is not None else None,
        slowest=slowest.lane if slowest is not None else None,
        assumed=assumed,
    )


def _retrievals(asked: ConversationSpec) -> tuple[int, int]:
    """Returns how often each turn is retrieved, at least and at most: once if queries are shared; else once for each
    model (if it writes the same query at every temperature), or for each pair."""
    if asked.queries_by is not None:
        return 1, 1
    return len({pair.model for pair in asked.pairs}), len(asked.pairs)


def _add_conversation(
    loads: dict[str, _Load], conversation: Conversation, asked: ConversationSpec, assumed: Assumptions
) -> int:
    places = places_in_order(conversation, asked.turns, asked.order, asked.seed)
    asking = (asked.queries_by,) if asked.queries_by is not None else asked.pairs
    one = LikelyRange(1, 1)
    for number, place in enumerate(places):
        earlier = sum(weight_of(conversation.questions[other]) for other in places[:number]) * TOKENS_PER_CHAR
        question = weight_of(conversation.questions[place]) * TOKENS_PER_CHAR
        for by in asking:
            chars = weight_of(query_prompt(conversation.topic, conversation.questions[place]))
            load = loads.setdefault(by.model, _Load())
            load.add(one, _both(chars * TOKENS_PER_CHAR), LikelyRange(*assumed.query))
        for pair in asked.pairs:
            _add_turn(loads, pair, number, earlier, question, asked, assumed)
    return len(places)


def _add_turn(
    loads: dict[str, _Load],
    pair: Pair,
    before: int,
    earlier: float,
    question: float,
    asked: ConversationSpec,
    assumed: Assumptions,
) -> None:
    """Adds one answer and its judgement to the loads; the `before` previous turns have questions of `earlier` tokens in
    all."""
    sources = _sources(asked, assumed)
    labels = before * _LABELS * TOKENS_PER_CHAR
    history = LikelyRange(*(earlier + labels + before * answer for answer in assumed.answer))
    kept = LikelyRange(sources.least * before, sources.most * before) if asked.keeps_pages else NOTHING
    bare = (len(SYSTEM) + _FRAME) * TOKENS_PER_CHAR + question
    whole = history + kept + sources + _both(bare)
    largest_turn = question + _LABELS * TOKENS_PER_CHAR + assumed.answer[1]
    if asked.keeps_pages:
        largest_turn += sources.most
    largest_page = sources.most / asked.pages / assumed.pages_with_text[1]
    prompt = _fitted(whole, asked.tokens[pair.model], bare, max(largest_turn, largest_page))
    loads.setdefault(pair.model, _Load()).add(LikelyRange(1, 1), prompt, LikelyRange(*assumed.answer))
    is_extended = asked.judge_prompt == "extended"
    fixed = (len(JUDGE if is_extended else FIGURE_7) + _FRAME) * TOKENS_PER_CHAR + question
    read = _both(fixed) + LikelyRange(*assumed.answer) + (history if is_extended else NOTHING)
    least, most_often = (1 + share for share in assumed.repaired)
    loads.setdefault(asked.judge, _Load()).add(
        LikelyRange(least, most_often),
        LikelyRange(read.least * least, min(read.most, asked.tokens[asked.judge]) * most_often),
        LikelyRange(assumed.judgement[0] * least, assumed.judgement[1] * most_often),
    )


def _sources(asked: ConversationSpec, assumed: Assumptions) -> LikelyRange:
    heading = assumed.heading_chars * TOKENS_PER_CHAR
    return LikelyRange(
        *(
            asked.pages * share * (heading + filled * asked.page_tokens)
            for share, filled in zip(assumed.pages_with_text, assumed.page_filled, strict=True)
        )
    )


def _fitted(whole: LikelyRange, most: float, bare: float, part: float) -> LikelyRange:
    """Returns the tokens of a prompt after omitting what has no room in `most`. Whole turns and pages are omitted, so
    it can be one such `part` below its limit, but not below the `bare` prompt, which has none of them."""
    if whole.most <= most:
        return whole
    return LikelyRange(min(whole.least, max(bare, most - part)), max(bare, most))


def _both(amount: float) -> LikelyRange:
    return LikelyRange(amount, amount)


def _lane(name: str, load: _Load, quota: Quota | None, price: Price | None) -> LaneForecast:
    cost = None if price is None else LikelyRange(*cost_range(price, load.input, load.output))
    calls = LikelyRange(round(load.calls.least), round(load.calls.most))
    return LaneForecast(name, calls, load.input, load.output, cost, _minutes(load, quota))


def _searched(found: LaneForecast, search: SearchTerms) -> LaneForecast:
    if search.dollars_per_1000 is None:
        return found
    each = search.dollars_per_1000 / 1000
    return LaneForecast(
        found.lane,
        found.calls,
        cost=LikelyRange(found.calls.least * each, found.calls.most * each),
        minutes=found.minutes,
    )


def _minutes(load: _Load, quota: Quota | None) -> LikelyRange | None:
    """Returns the minutes that the narrowest amount of the lane's quota needs; None without a limit."""
    if quota is None:
        return None
    least, most = (quota.minutes(*each) for each in zip(load.calls, load.input, load.output, strict=True))
    return None if least is None or most is None else LikelyRange(least, most)
