"""What a run will ask and cost, against what a scripted run really asked."""

from __future__ import annotations

import pytest
from chameleon_outside import JUDGE, MODEL, OTHER, SEARCH, ScriptedOutside
from chameleon_types import Asking, Making, Running

from millstream.bench.chameleon.forecast import ASSUMED, Assumptions, add_thoughts, assumptions_of, loads_of
from millstream.bench.evaluation.door.expected import Span
from millstream.engine.estimate import chars_of
from millstream.engine.pairs import Pair
from millstream.providers.models import Facts
from millstream.wiring import Settings

PAIRS = (Pair(MODEL, 0.0), Pair(MODEL, 1.0), Pair(OTHER, None))
TOKENS = {MODEL: 100_000, OTHER: 100_000, JUDGE: 100_000}


def test_calls_of_every_lane_are_between_the_least_and_the_most(made: Making, asking: Asking, running: Running) -> None:
    dataset, asked = made(3, 4), asking(PAIRS, tokens=TOKENS, pages=5)
    outside = ScriptedOutside(latency_s={OTHER: 1.0})
    running(outside, dataset, asked)
    by_lane = loads_of(dataset.conversations, asked, 20, ASSUMED)
    assert set(by_lane) == {MODEL, OTHER, JUDGE, SEARCH, "web"}
    for lane, calls in ((MODEL, 48), (OTHER, 24)):
        assert by_lane[lane].calls == Span(calls, calls)
        assert sum(call.model == lane for call in outside.calls) == calls
    assert by_lane[JUDGE].calls.least == sum(call.model == JUDGE for call in outside.calls) == 36
    # Here every pair's queries are alike, so that the searches of all pairs are those of one.
    assert by_lane[SEARCH].calls == Span(24, 72)
    assert by_lane["web"].calls == Span(60, 360)


def test_tokens_are_those_of_the_prompts_where_nothing_is_left_to_assume(
    made: Making, asking: Asking, running: Running
) -> None:
    dataset, asked = made(2, 3), asking(pages=2, page_tokens=100)
    text = "Text of https://000000.test/1. " * 20
    outside = ScriptedOutside()
    running(outside, dataset, asked)
    prompts = {lane: sum(chars_of(call) for call in outside.calls if call.model == lane) / 4 for lane in (MODEL, JUDGE)}
    assert len(text) > 400
    answer = len("Answer 01234567 as in [1] and [2].") / 4
    heading = len("[1] Hit 1 (https://012345.test/1)\n")
    exact = Assumptions(
        answer=(round(answer), round(answer)),
        query=(4, 4),
        judgement=(40, 40),
        pages_with_text=(1.0, 1.0),
        page_filled=(1.0, 1.0),
        hops=(1.0, 1.0),
        repaired=(0.0, 0.0),
        heading_chars=heading,
    )
    loads = loads_of(dataset.conversations, asked, 20, exact)
    for lane, tokens in prompts.items():
        assert loads[lane].input == pytest.approx((tokens, tokens), rel=0.05)


def test_searches_are_counted_by_what_one_request_gives(made: Making, asking: Asking) -> None:
    # Ten results a request for ten pages: one, or two where doubles are left out.
    loads = loads_of(made(5, 3).conversations, asking(pages=10), 10, ASSUMED)
    assert (loads[SEARCH].calls, loads[SEARCH].input) == (Span(15, 30), None)


def test_shared_queries_are_asked_and_searched_once(made: Making, asking: Asking) -> None:
    dataset = made(3, 4)
    by_lane = loads_of(
        dataset.conversations, asking(PAIRS, tokens=TOKENS, queries_by=Pair("script/q", 0.0)), 20, ASSUMED
    )
    assert by_lane["script/q"].calls == Span(12, 12)
    assert by_lane[MODEL].calls == Span(24, 24)
    assert by_lane[SEARCH].calls == Span(12, 24)


def test_windows_limits_and_old_pages_change_the_prompts(made: Making, asking: Asking) -> None:
    def model(**changes: object) -> tuple[Span, Span]:
        asked = asking(**changes)
        load = loads_of(made(2, 5).conversations, asked, 20, assumptions_of(asked))[MODEL]
        assert load.input is not None
        return load.input, load.output

    plain = model()
    assert model(tokens={MODEL: 500, JUDGE: 500})[0].most < plain[0].most
    assert model(keeps_pages=True)[0].most > plain[0].most
    assert model(max_tokens=50)[1] == Span(10 * (50 + 6), 10 * (50 + 20))
    assert model(turns=2)[0].most < plain[0].most


def test_a_limit_on_answers_holds_what_a_model_thinks_before_them(made: Making, asking: Asking) -> None:
    settings = Settings(models={MODEL: Facts(thinks=True, max_output=8_000)})
    worst = {}
    for limit in (None, 50):
        asked = asking(max_tokens=limit)
        loads = loads_of(made(2, 5).conversations, asked, 20, assumptions_of(asked))
        before = loads[MODEL].output
        assert add_thoughts(loads, 10, asked, settings) == [MODEL]
        # Ten queries and ten answers: all may think for long, or the queries alone.
        calls = 20 if limit is None else 10
        assert loads[MODEL].output == Span(before.least + 300 * calls, before.most + 3_000 * calls)
        worst[limit] = loads[MODEL].worst
    assert worst == {None: 20 * 8_000, 50: 10 * 8_000 + 10 * 50}
