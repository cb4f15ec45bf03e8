"""Callers with a token each: their own models, quota and budget, and what is stored costs neither."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from gateways import ANN, BOB, MODEL, Both, Client, files_of_at_most, gateway, get, post, question, until

from millstream import Lane
from millstream.configuration.gateway_settings import CallerSettings, GatewaySettings
from millstream.fixtures.provider import Latency, Options

AS_ANN, AS_BOB = {"x_api_key": ANN}, {"x_api_key": BOB}
BOTH = CallerSettings("bob", "BOB")


def run(
    folder: Path,
    scenario: Callable[[Both], Awaitable[None]],
    *callers: CallerSettings,
    options: Options | None = None,
    **more: Any,
) -> None:
    async def whole() -> None:
        async with gateway(folder, GatewaySettings(callers=callers), options, **more) as both:
            await scenario(both)

    asyncio.run(asyncio.wait_for(whole(), 60))


def ann(**bounds: Any) -> CallerSettings:
    return CallerSettings("ann", "ANN", **bounds)


def test_callers_count_their_repeats_apart_and_share_what_is_stored(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        first, second = await post(both.port, question(), **AS_ANN), await post(both.port, question(), **AS_BOB)
        assert (first.trial, first.is_cached, second.trial, second.is_cached) == (0, False, 0, True)

    run(tmp_path, scenario, ann(), BOTH)


def test_a_caller_asks_and_sees_its_own_models_alone(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        refused = await post(both.port, question(), **AS_ANN)
        assert (refused.status, both.calls) == (403, 0) and MODEL in refused.json["error"]["message"]
        assert (await post(both.port, question(), **AS_BOB)).status == 200
        assert (await get(both.port, f"/v1/models/{MODEL}", **AS_ANN)).status == 403
        listed = await get(both.port, "/v1/models", **AS_ANN)
        assert all(one["id"].startswith("openai/") for one in listed.json["data"])

    run(tmp_path, scenario, ann(models=("openai/*",)), BOTH)


def test_a_budget_is_a_hard_limit_over_restarts(tmp_path: Path) -> None:
    """An answer costs 30 tokens, a call may cost some 120 at a dollar a million each."""
    spent = []

    async def scenario(both: Both) -> None:
        caller = both.running.callers["ann"]
        assert caller.budget is not None and both.running.engine.settings.means.is_capped
        answers = await asyncio.gather(*(post(both.port, question(f"q {n}"), **AS_ANN) for n in range(20)))
        refused = [answer for answer in answers if answer.status == 429]
        assert {answer.status for answer in answers} <= {200, 429} and refused
        assert refused[0].json["error"]["code"] == "insufficient_quota"
        assert "max_cost" in refused[0].json["error"]["message"]
        assert caller.budget.charged <= 0.0004 and caller.budget.is_idle
        spent.append([caller.budget.charged, both.calls])
        stored = next(n for n, answer in enumerate(answers) if answer.status == 200) if spent[0][1] == both.calls else 0
        again = await post(both.port, question(f"q {stored}"), x_millstream_trial="0", **AS_ANN)
        assert again.is_cached
        anthropic = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": "new"}]}
        dear = await post(both.port, anthropic, "/v1/messages", **AS_ANN)
        assert (dear.status, dear.json["error"]["type"]) == (402, "billing_error")
        assert (await post(both.port, question("of bob"), **AS_BOB)).status == 200

    for _ in range(2):
        run(tmp_path, scenario, ann(max_cost=0.0004), BOTH)
    assert 3 <= spent[0][1] < 20 and spent[1] == pytest.approx([spent[0][0], 0])


def test_an_attempt_that_may_have_been_billed_counts_and_the_next_must_fit_too(
    tmp_path: Path,
) -> None:
    async def scenario(both: Both) -> None:
        budget = both.running.callers["ann"].budget
        assert budget is not None and budget.limit is not None
        answer = await post(both.port, question(), **AS_ANN)
        # Two attempts at their worst are more than the limit, so there was one.
        assert (answer.status, both.calls) == (429, 1)
        assert 0.0001 < budget.charged <= budget.limit and budget.is_idle and budget.unsure == budget.spent

    run(tmp_path, scenario, ann(max_cost=0.0002), options=Options(faults=("truncated_json",)))


def test_a_budget_that_cannot_be_written_sends_nothing_and_takes_no_stored_answer_away(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        with files_of_at_most(0):
            refused = await post(both.port, question(), **AS_ANN)
            assert (refused.status, both.calls) == (500, 0) and "can't be written" in refused.json["error"]["message"]
        answer = await post(both.port, question(), **AS_ANN)
        assert (answer.status, both.calls) == (200, 1)

    run(tmp_path, scenario, ann(max_cost=1.0, concurrency=1))


def test_a_model_without_a_price_is_refused_to_who_has_a_budget(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        body = {**question(), "model": "lab/steady"}
        refused = await post(both.port, body, **AS_ANN)
        assert (refused.status, both.calls) == (400, 0) and "price" in refused.json["error"]["message"]
        assert (await post(both.port, body, **AS_BOB)).status == 200

    run(tmp_path, scenario, ann(max_cost=1.0), BOTH)


def test_what_waits_in_a_callers_lane_holds_nothing_of_the_providers(tmp_path: Path) -> None:
    """The provider admits two at once and ann one: bob's call goes out beside hers, while her others wait."""

    async def scenario(both: Both) -> None:
        mine = [asyncio.create_task(post(both.port, question(f"ann {n}"), **AS_ANN)) for n in range(4)]
        await until(lambda: both.running.callers["ann"].in_flight > 0)
        assert (await post(both.port, question("bob"), **AS_BOB)).status == 200
        assert not mine[-1].done()
        assert {answer.status for answer in await asyncio.gather(*mine)} == {200}
        await until(lambda: both.running.callers["ann"].in_flight == 0)

    run(
        tmp_path,
        scenario,
        ann(concurrency=1),
        BOTH,
        options=Options(latency=Latency(a=0.2)),
        lanes=(Lane(MODEL, concurrency=2),),
    )


def test_a_stored_answer_takes_nothing_of_a_callers_minute(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        await post(both.port, question(), **AS_ANN)
        stored = (post(both.port, question(), x_millstream_trial="0", **AS_ANN) for _ in range(50))
        assert all(answer.is_cached for answer in await asyncio.gather(*stored))
        waiting = asyncio.create_task(post(both.port, question("another"), **AS_ANN))
        await asyncio.sleep(0.2)
        assert not waiting.done() and both.running.callers["ann"].waiting_for == "requests" and both.calls == 1
        waiting.cancel()

    run(tmp_path, scenario, ann(rpm=1))


def test_a_callers_identical_requests_take_one_place_in_its_lane(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        asked = (post(both.port, question(), x_millstream_trial="0", **AS_ANN) for _ in range(100))
        answers = await asyncio.gather(*asked)
        assert {answer.status for answer in answers} == {200} and both.calls == 1
        # Nor are they paid for more than once.
        assert sum(not answer.is_cached for answer in answers) == 1
        budget = both.running.callers["ann"].budget
        assert budget is not None
        costs = sum(float(answer.headers["x-millstream-cost"]) for answer in answers)
        assert costs == pytest.approx(budget.charged)
        told = (await get(both.port, "/metrics", **AS_ANN)).body.decode()
        (cost,) = re.findall(r'^millstream_cost_dollars_total{caller="ann"} (.*)$', told, re.MULTILINE)
        assert float(cost) == pytest.approx(budget.charged)

    run(tmp_path, scenario, ann(rpm=1, max_cost=0.0002), options=Options(latency=Latency(a=0.1)))


def test_a_caller_that_hangs_up_leaves_the_call_to_another_and_its_own_budget_pays(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        mine = both.running.callers["ann"].budget
        assert mine is not None
        async with Client(both.port) as client:
            client.post(question(), headers={"x-api-key": ANN})
            await until(lambda: both.calls > 0)
            other = asyncio.create_task(post(both.port, question(), **AS_BOB))
            await asyncio.sleep(0.1)
        answer = await other
        assert (answer.status, both.calls) == (200, 1)
        assert mine.reserved == 0 and 0 < mine.charged < 0.0001
        await until(lambda: both.running.callers["ann"].in_flight == 0)

    run(tmp_path, scenario, ann(max_cost=1.0, concurrency=3), BOTH, options=Options(latency=Latency(a=0.5)))


def test_metrics_tell_callers_by_name_and_no_token(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        await post(both.port, question(), **AS_ANN)
        told = (await get(both.port, "/metrics", **AS_BOB)).body.decode()
        labels = 'cached="false",caller="ann",dialect="openai-chat",status="200"'
        assert f"millstream_requests_total{{{labels}}} 1.0" in told
        assert 'millstream_caller_dollars_left{caller="ann"} 0.99' in told
        assert 'millstream_tokens_total{caller="ann",direction="output"}' in told
        assert 'millstream_calls_total{event="sent",model="lab/open"} 1.0' in told
        assert ANN not in told and BOB not in told and "sk-lab" not in told

    run(tmp_path, scenario, ann(max_cost=1.0), BOTH)


def test_tiny_max_tokens_of_one_client_stop_no_model(tmp_path: Path) -> None:
    """Thirty answers in a row that are cut off and empty, the first of all, then one that is not."""

    async def scenario(both: Both) -> None:
        asked = {"model": "lab/thinking", "max_tokens": 5}
        for number in range(30):
            cut = await post(both.port, question(f"q {number}", **asked))
            assert (cut.status, cut.json["choices"][0]["finish_reason"]) == (200, "length")
        answer = await post(both.port, question("And now?", model="lab/thinking", max_tokens=1_000))
        assert answer.status == 200 and answer.json["choices"][0]["message"]["content"]

    async def whole() -> None:
        async with gateway(tmp_path) as both:
            await scenario(both)

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_a_call_without_a_bound_is_refused_to_whoever_has_a_budget_and_to_nobody_else(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        asked = {name: value for name, value in question().items() if name != "max_tokens"}
        refused = await post(both.port, asked, **AS_ANN)
        assert (refused.status, refused.json["error"]["param"], both.calls) == (400, "max_tokens", 0)
        assert f'max_output under [models."{MODEL}"]' in refused.json["error"]["message"]
        assert (await post(both.port, asked, **AS_BOB)).status == 200

    run(tmp_path, scenario, ann(max_cost=1.0), BOTH)


def test_a_call_without_a_bound_is_refused_to_all_under_a_limit_for_all(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        asked = {name: value for name, value in question().items() if name != "max_tokens"}
        assert ((await post(both.port, asked, **AS_BOB)).status, both.calls) == (400, 0)
        assert (await post(both.port, question(), **AS_BOB)).status == 200

    run(tmp_path, scenario, BOTH, max_cost=1.0)
