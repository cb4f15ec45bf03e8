"""What a client gets: the same answer for the same question, a new sample for a repeat, errors that say what to do."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from gateways import CHAT, MODEL, Answer, Both, Client, gateway, get, post, question, request

from millstream.configuration.gateway_settings import GatewaySettings
from millstream.fixtures.provider import Latency, Options
from millstream.interfaces.gateway.dispatch import MODELS_MAX

Scenario = Callable[[Both], Awaitable[None]]


def run(folder: Path, scenario: Scenario, settings: GatewaySettings | None = None, *faults: str, **more: Any) -> None:
    options = more.pop("options", Options(faults=faults))

    async def whole() -> None:
        async with gateway(folder, settings, options, **more) as both:
            await scenario(both)

    asyncio.run(asyncio.wait_for(whole(), 60))


def said(answer: Answer) -> str:
    text: str = answer.json["choices"][0]["message"]["content"]
    return text


def test_a_repeat_is_a_new_sample_and_the_same_trial_is_the_stored_one(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        first, second = await post(both.port, question()), await post(both.port, question())
        assert (first.status, first.is_cached, first.trial) == (200, False, 0)
        assert (second.is_cached, second.trial) == (False, 1)
        again = await post(both.port, question(), X_Millstream_Trial="0")
        assert (again.is_cached, again.trial, said(again)) == (True, 0, said(first))
        assert again.headers["x-millstream-key"] == first.headers["x-millstream-key"]
        assert again.headers["x-millstream-cost"] == "0"
        assert float(first.headers["x-millstream-cost"]) > 0
        assert both.calls == 2

    run(tmp_path, scenario)


def test_spacing_and_streaming_make_no_other_question(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        await post(both.port, question())
        spaced = await post(both.port, json.dumps(question(), indent=4).encode())
        streamed = await post(both.port, question(stream=True))
        assert (spaced.trial, streamed.trial) == (1, 2)
        told = await post(both.port, question(stream=True), X_Millstream_Trial="0")
        assert told.is_cached and told.body.endswith(b"data: [DONE]\n\n")

    run(tmp_path, scenario)


def test_several_samples_of_one_request_take_several_numbers(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        three = await post(both.port, question(n=3))
        assert (three.headers["x-millstream-trial"], len(three.json["choices"])) == ("0,1,2", 3)
        assert (await post(both.port, question())).trial == 3
        again = await post(both.port, question(n=3), X_Millstream_Trial="0")
        assert again.is_cached and both.calls == 4

    run(tmp_path, scenario)


def test_a_thousand_requests_with_one_trial_are_one_call(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        asked = (post(both.port, question(), X_Millstream_Trial="0") for _ in range(1_000))
        answers = await asyncio.gather(*asked)
        assert {answer.status for answer in answers} == {200}
        assert len({said(answer) for answer in answers}) == 1
        assert sum(not answer.is_cached for answer in answers) == 1
        assert both.calls == 1

    run(tmp_path, scenario, options=Options(latency=Latency(a=0.2)))


def test_a_run_begins_to_count_from_nothing_by_header_or_path(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        assert [(await post(both.port, question())).trial for _ in range(2)] == [0, 1]
        tuesday = [await post(both.port, question(), X_Millstream_Run="tuesday") for _ in range(2)]
        assert [(answer.trial, answer.is_cached) for answer in tuesday] == [(0, True), (1, True)]
        third = await post(both.port, question(), f"/run/tuesday{CHAT}")
        assert (third.trial, third.is_cached) == (2, False)
        both_ways = await post(both.port, question(), f"/run/tuesday{CHAT}", X_Millstream_Run="monday")
        assert both_ways.status == 400

    run(tmp_path, scenario)


def test_repeats_that_are_the_same_are_not_counted(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        answers = [await post(both.port, question()) for _ in range(3)]
        assert [(answer.trial, answer.is_cached) for answer in answers] == [(0, False), (0, True), (0, True)]

    run(tmp_path, scenario, is_counting=False)


def test_a_request_that_brought_no_answer_gives_its_number_to_the_next(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        failed = await post(both.port, question())
        assert (failed.status, failed.headers["x-should-retry"]) == (400, "false")
        answer = await post(both.port, question(), X_Stainless_Retry_Count="1")
        assert (answer.status, answer.trial) == (200, 0)

    run(tmp_path, scenario, None, "rejected=400,at=1")


def test_a_named_request_is_the_same_sample_again_and_another_body_under_its_name_is_refused(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        at_once = await asyncio.gather(*(post(both.port, question(), Idempotency_Key="one") for _ in range(3)))
        assert {answer.trial for answer in at_once} == {0} and both.calls == 1
        assert (await post(both.port, question(), Idempotency_Key="one")).is_cached
        assert (await post(both.port, question(), Idempotency_Key="two")).trial == 1
        other = await post(both.port, question("something else"), Idempotency_Key="one")
        assert (other.status, other.json["error"]["code"]) == (422, "conflict")

    run(tmp_path, scenario)


@pytest.mark.parametrize("said", ["-1", "1.5", "one", "", "9" * 30, "٣"])
def test_a_trial_that_is_no_number_is_refused(tmp_path: Path, said: str) -> None:
    async def scenario(both: Both) -> None:
        answer = await post(both.port, question(), X_Millstream_Trial=said)
        assert (answer.status, answer.json["error"]["param"]) == (400, "X-Millstream-Trial")
        assert both.calls == 0

    run(tmp_path, scenario)


@pytest.mark.parametrize("name", ["X-Millstream-Trial", "X-Millstream-Run"])
def test_a_header_that_came_twice_is_not_read_as_its_first(tmp_path: Path, name: str) -> None:
    async def scenario(both: Both) -> None:
        async with Client(both.port) as client:
            body = json.dumps(question()).encode()
            lines = [("Host", f"127.0.0.1:{both.port}"), ("Content-Type", "application/json"), (name, "1"), (name, "2")]
            client.send(request("POST", CHAT, lines, body))
            answer = await client.answer()
        assert (answer.status, answer.json["error"]["param"], both.calls) == (400, name, 0)

    run(tmp_path, scenario)


BODIES = {
    b"": 400,
    b"{": 400,
    b"[]": 400,
    b'"text"': 400,
    b"\xff\xfe": 400,
    b"[" * 100_000: 400,
    b'{"model": "lab/open"}': 400,
    b'{"model": 7, "messages": []}': 400,
    b'{"model": "nobody/open", "messages": [{"role": "user", "content": "hi"}]}': 404,
    b'{"model": "web", "messages": [{"role": "user", "content": "hi"}]}': 503,
    b'{"model": "search/brave", "messages": [{"role": "user", "content": "hi"}]}': 404,
}


@pytest.mark.parametrize(("body", "status"), BODIES.items(), ids=range(len(BODIES)))
def test_a_body_that_is_no_call_is_told_so_in_one_line(tmp_path: Path, body: bytes, status: int) -> None:
    async def scenario(both: Both) -> None:
        answer = await post(both.port, body)
        assert (answer.status, answer.is_cached) == (status, False)
        message = answer.json["error"]["message"]
        assert message and "\n" not in message and "Traceback" not in message
        assert both.calls == 0

    run(tmp_path, scenario)


def test_a_body_may_come_packed_and_not_too_large(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        packed = gzip.compress(json.dumps(question()).encode())
        assert (await post(both.port, packed, Content_Encoding="gzip")).status == 200
        bomb = gzip.compress(b'{"model":"' + bytes(17 << 20) + b'"}')
        assert len(bomb) < 1 << 20
        assert (await post(both.port, bomb, Content_Encoding="gzip")).status == 413
        async with Client(both.port) as client:
            head = [("Host", f"127.0.0.1:{both.port}"), ("Content-Type", "application/json")]
            client.send(request("POST", CHAT, [*head, ("Content-Length", str(17 << 20))]))
            assert (await client.answer()).status == 413
        assert (await post(both.port, b"no gzip", Content_Encoding="gzip")).status == 400

    run(tmp_path, scenario)


def test_every_answer_says_whether_it_was_stored(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        paths = (
            "/health",
            "/metrics",
            "/v1/models",
            "/v1beta/models",
            f"/v1/models/{MODEL}",
            "/nowhere",
            CHAT,
            "/v1/messages",
        )
        for path in paths:
            answer = await get(both.port, path)
            assert not answer.is_cached and answer.headers["x-request-id"], path
        async with Client(both.port) as client:
            client.send(b"this is no HTTP\r\n\r\n")
            broken = await client.answer()
        assert (broken.status, broken.is_cached) == (400, False)

    run(tmp_path, scenario)


def test_unknown_paths_tell_in_the_words_of_who_asks_what_there_is(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        openai = await post(both.port, {}, "/v1/embeddings")
        anthropic = await post(both.port, {}, "/v1/messages/count_tokens")
        gemini = await post(both.port, {}, "/v1beta/models/x:embedContent")
        assert [answer.status for answer in (openai, anthropic, gemini)] == [404] * 3
        assert "send embeddings to the provider itself" in openai.json["error"]["message"]
        unheard = await post(both.port, {}, "/v1/unheard")
        assert "/v1/chat/completions" in unheard.json["error"]["message"]
        assert anthropic.json["type"] == "error"
        assert gemini.json["error"]["status"] == "NOT_FOUND"
        wrong = await get(both.port, CHAT)
        assert (wrong.status, wrong.headers["allow"]) == (405, "GET, HEAD, POST")

    run(tmp_path, scenario)


def test_each_dialect_asks_any_provider(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        turn = [{"role": "user", "content": "hello"}]
        asked: dict[str, Any] = {
            CHAT: question(),
            "/chat/completions": question(),
            "/openai/deployments/lab%2Fopen/chat/completions?api-version=2024-10-21": {"messages": turn},
            "/v1/responses": {"model": MODEL, "input": "hello"},
            "/v1/messages": {"model": MODEL, "max_tokens": 100, "messages": turn},
        }
        contents = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
        for path in (
            "/v1beta/models/lab/open:generateContent",
            "/v1/models/lab%2Fopen:generateContent",
            "/v1beta1/projects/p/locations/l/publishers/lab/models/open:generateContent",
            "/v1beta/models/lab/open:streamGenerateContent?alt=sse",
        ):
            asked[path] = contents
        for path, body in asked.items():
            answer = await post(both.port, body, path)
            assert answer.status == 200 and b"simulated answer" in answer.body, (path, answer)
        listed = await post(both.port, contents, "/v1beta/models/lab/open:streamGenerateContent")
        assert isinstance(listed.json, list) and "candidates" in listed.json[0]

    run(tmp_path, scenario)


def test_a_name_of_the_gateways_own_means_what_it_says(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        answer = await post(both.port, {**question(), "model": "gpt-9"})
        # The answer says who gave it, as the provider states it.
        assert (answer.status, answer.json["model"]) == (200, "open")
        assert "gpt-9" in [one["id"] for one in (await get(both.port, "/v1/models")).json["data"]]

    run(tmp_path, scenario, GatewaySettings(models={"gpt-9": MODEL}))


ASKING: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": "A or B?"}]},
    "/v1/responses": {"input": "A or B?"},
    "/v1/messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "A or B?"}]},
    f"/v1beta/models/{MODEL}:generateContent": {"contents": [{"role": "user", "parts": [{"text": "A or B?"}]}]},
}


@pytest.mark.parametrize("path", ASKING)
def test_an_answer_names_the_model_that_gave_it_now_and_from_the_cache(tmp_path: Path, path: str) -> None:
    named = "modelVersion" if "generateContent" in path else "model"
    body = ASKING[path] if named == "modelVersion" else {**ASKING[path], "model": MODEL}

    async def scenario(both: Both) -> None:
        for _ in range(2):
            answer = await post(both.port, body, path, X_Millstream_Trial="0")
            assert (answer.status, answer.json[named]) == (200, "grok-4.3")
        assert both.calls == 1

    run(tmp_path, scenario, None, "served_as=grok-4.3")


def test_an_answer_of_a_server_that_names_no_model_has_the_clients_own_name(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        assert (await post(both.port, question())).json["model"] == MODEL

    run(tmp_path, scenario, None, "served_as")


def test_what_another_providers_protocol_has_no_words_for_is_refused_by_name(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        body = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "top_k": 4}
        answer = await post(both.port, body, "/v1/messages")
        assert answer.status == 400 and "top_k" in answer.json["error"]["message"] and both.calls == 0

    run(tmp_path, scenario)


def test_no_request_chooses_an_address_a_key_or_a_file(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        names = ("base_url", "api_base", "api_key", "cache", "identity")
        for name in names:
            await post(
                both.port, {**question(), "extra_body": {name: "http://127.0.0.1:1"}, name: "http://127.0.0.1:1"}
            )
        headers = {
            "X_Millstream_Base_Url": "http://127.0.0.1:1",
            "X_Forwarded_Host": "elsewhere",
            "Authorization": "Bearer mine",
        }
        assert (await post(both.port, question(), **headers)).status == 200
        assert both.calls == len(names) + 1

    run(tmp_path, scenario)


def test_names_of_models_that_somebody_makes_up_open_no_lanes_without_end(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        async with Client(both.port) as client:
            statuses = []
            for number in range(MODELS_MAX + 10):
                client.post({**question(), "model": f"lab/no-{number}"})
                statuses.append((await client.answer()).status)
        assert statuses == [404] * MODELS_MAX + [503] * 10
        assert len(both.running.engine.scheduler.routes.lasting) == MODELS_MAX
        for trial in ({}, {"X_Millstream_Trial": "0"}):
            assert (await post(both.port, {**question(), "model": "lab/new"}, **trial)).status == 503
        # One with a price is none that somebody made up, nor is one that was asked before.
        assert (await post(both.port, question())).status == 200
        assert (await post(both.port, {**question(), "model": "lab/no-0"})).status == 404

    run(tmp_path, scenario)


def test_an_error_of_the_provider_reaches_the_client_with_its_status(tmp_path: Path) -> None:
    for fault, status in {"rejected=422": 422, "server_error=500": 502, "truncated_json": 502}.items():

        async def scenario(both: Both, status: int = status) -> None:
            answer = await post(both.port, question())
            assert (answer.status, answer.headers["x-should-retry"], answer.is_cached) == (status, "false", False)

        run(tmp_path / fault, scenario, None, fault)


@pytest.mark.parametrize("packed", ["br", "zstd", "x", "gzip, gzip"])
def test_a_body_packed_otherwise_is_refused_in_one_line(tmp_path: Path, packed: str) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path) as both:
            refused = await post(both.port, question(), Content_Encoding=packed)
            assert refused.status == 415 and "in gzip" in refused.json["error"]["message"] and both.calls == 0

    asyncio.run(asyncio.wait_for(scenario(), 30))


@pytest.mark.parametrize("is_streamed", [False, True])
def test_anthropics_errors_repeat_the_requests_id(tmp_path: Path, is_streamed: bool) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path, options=Options(faults=("rejected=422",))) as both:
            refused = await post(
                both.port, question(stream=is_streamed), "/v1/messages", anthropic_version="2023-06-01"
            )
            assert refused.status == 422
            assert refused.json["request_id"] == refused.headers["request-id"] == refused.headers["x-request-id"]

    asyncio.run(asyncio.wait_for(scenario(), 30))
