"""A real llama.cpp server with a tiny random model: our protocol against one that nobody here wrote."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from llama_server import llama_server

from millstream import Call, Engine, Lane, Message, Outcome, Reply
from millstream.engine.attempts.retry import RetryPolicy
from millstream.providers.table import PROVIDERS
from millstream.wiring import Settings, access_to

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp has no wheel for this platform"
)
MODEL = "llamacpp/tiny"
FAST = RetryPolicy(wait_min_s=0.01, wait_max_s=0.05)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with llama_server() as base_url:
        yield base_url


class Asking:
    """Calls to the server through a whole engine, with a cache of its own."""

    def __init__(self, server: str, folder: Path) -> None:
        self._server = server
        self._folder = folder

    def __call__(self, *calls: Call, concurrency: int = 4) -> list[Outcome]:
        lane = Lane(MODEL, concurrency=concurrency, timeout_s=20)
        settings = Settings(lanes=(lane,), base_url=self._server, cache=self._folder, policy=FAST, environment={})

        async def run() -> list[Outcome]:
            async with Engine(settings=settings) as engine:
                return [outcome async for outcome in engine.run(calls)]

        outcomes = asyncio.run(run())
        return sorted(outcomes, key=lambda outcome: calls.index(outcome.call))

    def reply(self, call: Call) -> Reply:
        (outcome,) = self(call)
        assert outcome.reply is not None, outcome.failure
        return outcome.reply


@pytest.fixture
def asking(server: str, tmp_path: Path) -> Asking:
    return Asking(server, tmp_path)


def prompts(count: int, *, stream: bool, max_tokens: int = 8) -> list[Call]:
    return [
        Call(MODEL, f"prompt {number}", temperature=0, max_tokens=max_tokens, stream=stream) for number in range(count)
    ]


def test_the_table_leads_to_where_the_server_listens_by_itself_and_asks_for_no_key() -> None:
    access = access_to(MODEL, Settings(environment={}))
    assert access.target.base_url == PROVIDERS["llamacpp"].base_url == "http://127.0.0.1:8080/v1"
    assert (access.target.model, access.credentials.key, access.target.names) == ("tiny", None, {})


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_fifty_calls_are_answered_with_their_usage_and_once_each(asking: Asking, stream: bool) -> None:
    outcomes = asking(*prompts(50, stream=stream))
    assert [outcome.status for outcome in outcomes] == ["ok"] * 50
    assert sum(outcome.attempts for outcome in outcomes) == 50 + sum(outcome.maybe_billed for outcome in outcomes)
    for outcome in outcomes:
        assert outcome.reply is not None and outcome.reply.usage is not None
        usage = outcome.reply.usage
        assert usage.input is not None and usage.input > 10
        assert usage.output is not None and 0 < usage.output <= 8
    assert [outcome.cached for outcome in asking(*prompts(50, stream=stream))] == [True] * 50


def test_streamed_and_whole_answers_are_the_same_text(server: str, tmp_path: Path) -> None:
    whole = Asking(server, tmp_path / "whole")(*prompts(20, stream=False))
    streamed = Asking(server, tmp_path / "streamed")(*prompts(20, stream=True))
    assert not any(outcome.cached for outcome in streamed)
    texts = [[outcome.reply.text for outcome in outcomes if outcome.reply] for outcomes in (whole, streamed)]
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 1
    assert [outcome.key for outcome in whole] == [outcome.key for outcome in streamed]


@pytest.mark.parametrize("concurrency", [1, 8])
def test_connections_that_close_after_streams_lose_no_call_and_hardly_an_attempt(
    asking: Asking, concurrency: int
) -> None:
    outcomes = asking(*prompts(200, stream=True), concurrency=concurrency)
    assert [outcome.status for outcome in outcomes] == ["ok"] * 200
    assert max(outcome.attempts for outcome in outcomes) <= 2
    again = sum(outcome.attempts - 1 for outcome in outcomes)
    assert again == sum(outcome.maybe_billed for outcome in outcomes) <= concurrency


def test_max_tokens_ends_an_answer_and_says_so(asking: Asking) -> None:
    for limit in (1, 3, 7):
        reply = asking.reply(Call(MODEL, "Say A or B.", temperature=0, max_tokens=limit))
        assert reply.usage is not None and reply.usage.output == limit
        assert (reply.finish_reason, reply.truncated) == ("length", True)


def test_temperature_0_gives_one_answer_and_other_trials_are_sent_again(asking: Asking) -> None:
    call = Call(MODEL, "Say A or B.", temperature=0, max_tokens=16)
    outcomes = asking(*(msgspec.structs.replace(call, trial=trial) for trial in range(3)))
    assert [outcome.cached for outcome in outcomes] == [False] * 3
    assert len({outcome.reply.text for outcome in outcomes if outcome.reply}) == 1


def test_a_seed_repeats_an_answer_and_another_seed_does_not(asking: Asking) -> None:
    def text(seed: int, trial: int) -> str:
        call = Call(MODEL, "Say A or B.", temperature=1.5, max_tokens=24, seed=seed, trial=trial)
        return asking.reply(call).text

    assert text(1, 0) == text(1, 1)
    assert text(1, 0) != text(2, 0)


def test_a_stop_sequence_ends_an_answer_before_it(asking: Asking) -> None:
    free = asking.reply(Call(MODEL, "Say A or B.", temperature=0, max_tokens=24)).text
    stop = next(sign for sign in free[4:] if sign.isascii() and sign.isprintable() and sign not in free[:4])
    reply = asking.reply(Call(MODEL, "Say A or B.", temperature=0, max_tokens=24, stop=(stop,)))
    assert reply.text == free[: free.index(stop)]
    assert (reply.finish_reason, reply.truncated) == ("stop", False)


def test_a_conversation_and_extra_parameters_reach_the_server(asking: Asking) -> None:
    talk = (Message("system", "Be brief."), Message("user", "Hello ✓"), Message("assistant", "A"), Message("user", "B"))
    short = asking.reply(Call(MODEL, "B", temperature=0, max_tokens=4))
    long = asking.reply(Call(MODEL, talk, temperature=0, max_tokens=4))
    assert short.usage is not None and long.usage is not None
    assert long.usage.input is not None and short.usage.input is not None
    assert long.usage.input > short.usage.input + 20
    forced = asking.reply(Call(MODEL, "B", max_tokens=4, extra={"grammar": 'root ::= "yes"'}))
    assert (forced.text, forced.finish_reason) == ("yes", "stop")


def test_a_prompt_beyond_the_context_is_rejected_with_the_servers_words(asking: Asking) -> None:
    (outcome,) = asking(Call(MODEL, "x" * 20_000, max_tokens=1))
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.status, outcome.attempts) == ("rejected", 400, 1)
    assert "context" in outcome.failure.detail


SCHEMA = {
    "title": "Letter",
    "type": "object",
    "properties": {"letter": {"enum": ["A", "B"]}},
    "required": ["letter"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_answer_under_a_schema_is_json_of_its_shape(asking: Asking, stream: bool) -> None:
    call = Call(MODEL, "Say A or B.", temperature=0, max_tokens=64, json_schema=SCHEMA, stream=stream)
    reply = asking.reply(call)
    assert msgspec.json.decode(reply.text)["letter"] in ("A", "B")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_log_probabilities_are_those_of_the_tokens_of_the_answer(asking: Asking, stream: bool) -> None:
    call = Call(MODEL, "Say A or B.", temperature=0, max_tokens=8, logprobs=3, stream=stream)
    reply = asking.reply(call)
    assert reply.logprobs is not None and reply.usage is not None
    assert len(reply.logprobs) == reply.usage.output
    assert "".join(one.token for one in reply.logprobs).startswith(reply.text)
    for one in reply.logprobs:
        assert one.logprob <= 0 and len(one.top) == 3
        assert one.top[0] == (one.token, one.logprob)  # temperature 0 takes the likeliest


def test_responses_are_the_same_text_as_chat_completions(server: str, tmp_path: Path) -> None:
    model = "openai-responses/tiny"
    texts = []
    for stream in (False, True):
        settings = Settings(base_url=server, cache=tmp_path / str(stream), policy=FAST, environment={})

        async def once(settings: Settings = settings, stream: bool = stream) -> Outcome:
            async with Engine(settings=settings) as engine:
                return await engine.ask(Call(model, "Say A or B.", temperature=0, max_tokens=8, stream=stream))

        outcome = asyncio.run(once())
        assert outcome.reply is not None and outcome.reply.usage is not None, outcome.failure
        assert outcome.reply.usage.output == 8
        texts.append(outcome.reply.text)
    chat = Asking(server, tmp_path / "chat").reply(Call(MODEL, "Say A or B.", temperature=0, max_tokens=8))
    assert texts == [chat.text] * 2
