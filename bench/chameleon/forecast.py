"""What a run is expected to ask of every lane, from the least to the most that is likely.

Turns and the characters of questions are counted; what is unknown before (pages, answers, rationales) is assumed, and
all assumptions are in one struct. No cache is read, since prompts depend on answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import fmean

from msgspec import Struct, structs, to_builtins

from ...engine.call import WEB
from ...engine.estimate import TOKENS_PER_CHAR, weight_of
from ...providers.models import CHARACTERS, bundled_models
from ...providers.search.table import CORPUS_REACH
from ...wiring import Settings
from ..evaluation.door.benchmark import RunBasis
from ..evaluation.door.expected import NOTHING, Expected, Load, Span
from .dataset import Conversation
from .order import places_in_order
from .prompts import FIGURE_7, JUDGE, SYSTEM, query_prompt
from .run_spec import ConversationSpec, spec_in

_IN_TURN = "a turn has its query, search, pages and answer; --pilot N measures how long it takes"
# The characters of the fixed words around sources and question, and around each past turn.
_FRAME, _LABELS = 25, 12


class Assumptions(Struct, frozen=True):
    """Assumed values, each from the least to the most that is likely.

    Tokens of an answer, a query and a judgement; the share of results that give a text; the filled share of a page's
    budget; hops to a page (redirects, and a host's robots.txt); the share of judgements asked for twice; seconds of a
    turn.
    `heading_chars` are the characters of a page's title and address.
    """

    answer: tuple[int, int] = (150, 600)
    query: tuple[int, int] = (6, 20)
    judgement: tuple[int, int] = (80, 300)
    pages_with_text: tuple[float, float] = (0.5, 0.95)
    page_filled: tuple[float, float] = (0.5, 1.0)
    hops: tuple[float, float] = (1.0, 2.0)
    repaired: tuple[float, float] = (0.0, 0.05)
    turn_seconds: tuple[int, int] = (10, 40)
    heading_chars: int = 120


ASSUMED = Assumptions()


def forecast(run: RunBasis, expected: Expected) -> Expected:
    """Returns what a run is expected to take, nothing of it cached. `expected`: what any run of its size would take."""
    assert expected.chain is not None
    settings, spec = run.settings, spec_in(run.specification)
    conversations = [item.data.conversation for item in run.items]
    assumed = assumptions_of(spec)
    engine = settings.search_row_of(spec.search)
    reach = CORPUS_REACH if engine is None else engine.reach
    turns = sum(len(places_in_order(each, spec.turns, spec.order, spec.seed)) for each in conversations)
    loads, remarks = loads_of(conversations, spec, reach.count_max, assumed), [_IN_TURN]
    if thinking := add_thoughts(loads, turns, spec, settings):
        least, most = bundled_models().thinking_answer
        remarks.append(f"think before they answer, {least:,} to {most:,} tokens a call assumed: {', '.join(thinking)}")
    sizes = {"turns": turns * len(spec.pairs), "conversations": len(conversations) * len(spec.pairs)}
    return Expected(
        loads=loads,
        chain=structs.replace(expected.chain, steps=spec.turns, seconds=Span(*assumed.turn_seconds)),
        what=f"{sizes['turns']:,} turns in {sizes['conversations']:,} conversations",
        remarks=remarks,
        assumed=(
            f"answers of {_to(assumed.answer)} tokens, judgements of {_to(assumed.judgement)}, "
            f"{_percents(assumed.pages_with_text)} of the results with a text, {_percents(assumed.page_filled)} of a "
            f"page's budget filled"
        ),
        more={**sizes, "assumptions": to_builtins(assumed)},
    )


def add_thoughts(loads: Mapping[str, Load], turns: int, spec: ConversationSpec, settings: Settings) -> list[str]:
    """Adds what models think to their loads, and tokens that are shorter than most; returns the models that think."""
    asking = () if spec.queries_by is None else ((spec.queries_by.model, spec.queries_by.effort),)
    efforts = [*((pair.model, pair.effort) for pair in spec.pairs), (spec.judge, spec.judge_effort), *asking]
    thinking = list(dict.fromkeys(model for model, effort in efforts if settings.facts_of(model).thinks_at(effort)))
    for model, load in loads.items():
        if load.input is not None:
            load.input = load.input.times(CHARACTERS / settings.facts_of(model).characters)
        if model in thinking:
            # Thoughts count in max_tokens, which answers alone are sent.
            limited = 0 if spec.max_tokens is None else turns * sum(pair.model == model for pair in spec.pairs)
            free = Span(load.calls.least - limited, load.calls.most - limited)
            least, most = bundled_models().thinking_answer
            load.output += Span(least * free.least, most * free.most)
            longest = settings.output_max(model) or math.inf
            load.worst = limited * (spec.max_tokens or 0) + (free.most * longest if free.most else 0)
    return thinking


def assumptions_of(spec: ConversationSpec) -> Assumptions:
    """Returns the usual assumptions, with answers no longer than the run allows."""
    if spec.max_tokens is None:
        return ASSUMED
    least, most = (min(length, spec.max_tokens) for length in ASSUMED.answer)
    return structs.replace(ASSUMED, answer=(least, most))


def loads_of(
    conversations: Iterable[Conversation], spec: ConversationSpec, results_a_request: int, assumed: Assumptions
) -> dict[str, Load]:
    """Returns the load of every lane: that of a turn in the middle, for each turn. `results_a_request`: the most
    results that one search request gives."""
    questions = [
        (before, each.topic, each.questions[place])
        for each in conversations
        for before, place in enumerate(places_in_order(each, spec.turns, spec.order, spec.seed))
    ]
    turns, before = len(questions), fmean(before for before, _, _ in questions)
    question = fmean(weight_of(question) for _, _, question in questions)
    query = fmean(weight_of(query_prompt(topic, question)) for _, topic, question in questions)
    answer, sources = Span(*assumed.answer), _sources(spec, assumed)
    history = (answer + _tokens(question + _LABELS)).times(before)
    kept = sources.times(before) if spec.keeps_pages else NOTHING
    prompt = _tokens(len(SYSTEM) + _FRAME + question) + history + kept + sources
    is_extended = spec.judge_prompt == "extended"
    read = _tokens(len(JUDGE if is_extended else FIGURE_7) + _FRAME + question) + answer
    read += history if is_extended else NOTHING
    loads: dict[str, Load] = {}
    asking = spec.pairs if spec.queries_by is None else (spec.queries_by,)
    for by in asking:
        _add(loads, by.model, Span(turns, turns), _tokens(query), Span(*assumed.query))
    for pair in spec.pairs:
        _add(loads, pair.model, Span(turns, turns), _within(spec.tokens[pair.model], prompt), answer)
        often = Span(*(turns * (1 + share) for share in assumed.repaired))
        _add(loads, spec.judge, often, _within(spec.tokens[spec.judge], read), Span(*assumed.judgement))
    # A turn is retrieved once by each of those who write queries; for a model once, if it always writes the same.
    least, most = turns * len({by.model for by in asking}), turns * len(asking)
    requests = -(-spec.pages // results_a_request)
    loads[spec.search] = Load(Span(least * requests, most * (requests + 1)), input=None)
    pages = least * spec.pages * assumed.pages_with_text[0] * assumed.hops[0], most * spec.pages * assumed.hops[1]
    loads[WEB] = Load(Span(*pages), input=None)
    for load in loads.values():
        load.calls = Span(*map(round, load.calls))
    return loads


def _add(loads: dict[str, Load], lane: str, calls: Span, tokens: Span, output: Span) -> None:
    """Adds calls of so many tokens each to a lane."""
    read, written = (
        Span(*(number * each for number, each in zip(calls, one, strict=True))) for one in (tokens, output)
    )
    loads.setdefault(lane, Load()).add(calls, read, written)


def _sources(spec: ConversationSpec, assumed: Assumptions) -> Span:
    heading = assumed.heading_chars * TOKENS_PER_CHAR
    return Span(
        *(
            spec.pages * share * (heading + filled * spec.page_tokens)
            for share, filled in zip(assumed.pages_with_text, assumed.page_filled, strict=True)
        )
    )


def _within(most: float, tokens: Span) -> Span:
    """Returns the tokens of a prompt, of which what has no room is left out."""
    return Span(*(min(each, most) for each in tokens))


def _tokens(chars: float) -> Span:
    return Span(chars * TOKENS_PER_CHAR, chars * TOKENS_PER_CHAR)


def _to(ends: tuple[int, int]) -> str:
    return f"{ends[0]:,} to {ends[1]:,}"


def _percents(ends: tuple[float, float]) -> str:
    return f"{100 * ends[0]:.0f} to {100 * ends[1]:.0f}%"
