"""What a run will ask and cost, against what a scripted run really asked."""

from __future__ import annotations

import pytest
from chameleon_outside import JUDGE, MODEL, OTHER, SEARCH, ScriptedOutside
from chameleon_types import Asking, Making, Running

from millstream.bench.chameleon.forecast import Assumptions, LikelyRange, SearchTerms, forecast
from millstream.engine.attempts.estimate import chars_of
from millstream.engine.attempts.prices import Price
from millstream.engine.limits import Quota
from millstream.engine.runs.pairs import Pair

PAIRS = (Pair(MODEL, 0.0), Pair(MODEL, 1.0), Pair(OTHER, None))
TOKENS = {MODEL: 100_000, OTHER: 100_000, JUDGE: 100_000}


def test_calls_of_every_lane_are_between_the_least_and_the_most(made: Making, asking: Asking, running: Running) -> None:
    dataset, asked = made(3, 4), asking(PAIRS, tokens=TOKENS, pages=5)
    outside = ScriptedOutside(latency_s={OTHER: 1.0})
    running(outside, dataset, asked)
    found = forecast(dataset, asked, {}, {})
    by_lane = {each.lane: each for each in found.lanes}
    assert (found.turns, found.conversations) == (36, 9)
    assert set(by_lane) == {MODEL, OTHER, JUDGE, SEARCH, "web"}
    for lane, calls in ((MODEL, 48), (OTHER, 24)):
        assert by_lane[lane].calls == LikelyRange(calls, calls)
        assert sum(call.model == lane for call in outside.calls) == calls
    assert by_lane[JUDGE].calls.least == sum(call.model == JUDGE for call in outside.calls) == 36
    # Here every pair's queries are alike, so that the searches of all pairs are those of one.
    assert by_lane[SEARCH].calls == LikelyRange(24, 72)
    assert by_lane["web"].calls == LikelyRange(60, 360)
    assert found.unpriced == (MODEL, OTHER, JUDGE, SEARCH)
    assert (found.cost, found.minutes, found.slowest) == (LikelyRange(0, 0), None, None)


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
    found = {each.lane: each for each in forecast(dataset, asked, {}, {}, assumed=exact).lanes}
    for lane, tokens in prompts.items():
        assert found[lane].input_tokens.least == found[lane].input_tokens.most == pytest.approx(tokens, rel=0.05)


def test_cost_and_time_follow_prices_and_the_narrowest_quota(made: Making, asking: Asking) -> None:
    dataset, asked = made(5, 3), asking(pages=10)
    quotas = {MODEL: Quota(rpm=10, tpm=1_000_000), JUDGE: Quota(itpm=1_000), "web": Quota(rpm=30)}
    prices = {MODEL: Price(1.0, 10.0, cached=0.1), JUDGE: Price(2.0, 20.0, cached=0.2, write_5m=2.5)}
    found = forecast(dataset, asked, quotas, prices, SearchTerms(10, 5.0))
    by_lane = {each.lane: each for each in found.lanes}
    model, judge, search = by_lane[MODEL], by_lane[JUDGE], by_lane[SEARCH]
    assert model.cost == LikelyRange(
        *(prices[MODEL].of(*each) for each in zip(model.input_tokens, model.output_tokens, strict=True))
    )
    # A provider that writes prompts to its cache by itself may write them all.
    assert judge.cost is not None and judge.cost.least == prices[JUDGE].of(
        judge.input_tokens[0], judge.output_tokens[0]
    )
    assert judge.cost.most == pytest.approx((judge.input_tokens[1] * 2.5 + judge.output_tokens[1] * 20.0) / 1e6)
    assert model.minutes == LikelyRange(3.0, 3.0)
    assert judge.minutes == pytest.approx([tokens / 1_000 for tokens in judge.input_tokens])
    # Ten results a request for ten pages: one, or two where doubles are left out.
    assert search.calls == LikelyRange(15, 30)
    assert search.cost == pytest.approx((0.075, 0.15))
    assert found.cost.most == pytest.approx(sum((each.cost or LikelyRange(0, 0)).most for each in found.lanes))
    assert (found.unpriced, found.slowest) == ((), JUDGE)
    assert found.minutes == judge.minutes


def test_shared_queries_are_asked_and_searched_once(made: Making, asking: Asking) -> None:
    dataset = made(3, 4)
    shared = forecast(dataset, asking(PAIRS, tokens=TOKENS, queries_by=Pair("script/q", 0.0)), {}, {})
    by_lane = {each.lane: each for each in shared.lanes}
    assert by_lane["script/q"].calls == LikelyRange(12, 12)
    assert by_lane[MODEL].calls == LikelyRange(24, 24)
    assert by_lane[SEARCH].calls == LikelyRange(12, 24)


def test_windows_limits_and_old_pages_change_the_prompts(made: Making, asking: Asking) -> None:
    def model(**changes: object) -> tuple[LikelyRange, LikelyRange]:
        found = forecast(made(2, 5), asking(**changes), {}, {}).lanes
        lane = next(each for each in found if each.lane == MODEL)
        return lane.input_tokens, lane.output_tokens

    plain = model()
    assert model(tokens={MODEL: 500, JUDGE: 500})[0].most < plain[0].most
    assert model(keeps_pages=True)[0].most > plain[0].most
    assert model(max_tokens=50)[1] == LikelyRange(10 * (50 + 6), 10 * (50 + 20))
    assert model(turns=2)[0].most < plain[0].most
