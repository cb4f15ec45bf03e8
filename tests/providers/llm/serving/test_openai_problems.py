"""Errors and lists of models in the words that clients of both of OpenAI's protocols look for."""

from __future__ import annotations

import orjson
import pytest
from openai.types import Model

from millstream.engine.call import Failure
from millstream.engine.fault import Stop
from millstream.providers.llm.openai import serve_chat as openai_chat
from millstream.providers.llm.openai import serve_responses as openai_responses
from millstream.providers.llm.openai.serve_chat import DIALECT
from millstream.providers.llm.serve_dialect import Dialect, Problem, RequestRefusal, ServedModel
from millstream.providers.llm.serve_problems import problem_of_failure, problem_of_stop

TOO_LONG = (
    "400: This model's maximum context length is 8192 tokens.",
    "400: prompt is too long: 210000 tokens > 200000 maximum",
    "400: The input token count (9) exceeds the maximum number of tokens allowed (8).",
    "400: Input is too long for requested model.",
    "400: context_length_exceeded",
)


def words_of(problem: Problem) -> tuple[str, str | None]:
    error = orjson.loads(DIALECT.problem(problem))["error"]
    assert error["message"] == problem.message
    assert set(error) == {"message", "type", "param", "code"}
    return error["type"], error["code"]


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (401, "unauthorized", ("invalid_request_error", "invalid_api_key")),
        (403, "forbidden", ("insufficient_permissions", "insufficient_permissions")),
        (404, "unknown_model", ("invalid_request_error", "model_not_found")),
        (403, "unknown_model", ("invalid_request_error", "model_not_found")),
        (404, "not_found", ("invalid_request_error", "unknown_url")),
        (413, "too_large", ("invalid_request_error", "request_too_large")),
        (422, "conflict", ("invalid_request_error", "conflict")),
        (429, "over_budget", ("insufficient_quota", "insufficient_quota")),
        (429, "rate_limited", ("requests", "rate_limit_exceeded")),
        (404, "not_cached", ("invalid_request_error", "not_cached")),
        (400, "invalid", ("invalid_request_error", None)),
        (405, "method", ("invalid_request_error", "method")),
        (502, "bad_json", ("server_error", "bad_json")),
        (504, "timeout", ("server_error", "timeout")),
        (500, "local_fault", ("server_error", "local_fault")),
    ],
)
def test_a_problem_has_the_type_and_code_that_clients_look_for(
    status: int, kind: str, words: tuple[str, str | None]
) -> None:
    assert words_of(Problem(status, kind, "what happened")) == words


@pytest.mark.parametrize("detail", TOO_LONG)
def test_a_prompt_that_no_window_holds_is_told_as_openai_does(detail: str) -> None:
    assert words_of(problem_of_failure(Failure("rejected", detail, 400))) == (
        "invalid_request_error",
        "context_length_exceeded",
    )


def test_what_a_provider_refuses_for_another_reason_is_just_refused() -> None:
    assert words_of(problem_of_failure(Failure("rejected", "400: no such parameter", 400))) == (
        "invalid_request_error",
        "rejected",
    )


def test_a_key_that_is_dead_behind_us_is_not_the_clients() -> None:
    told = problem_of_stop(Stop("openai/m", "dead_key", "the key is refused"))
    assert words_of(told) == ("server_error", "dead_key")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, None),
        ({"model": "m"}, "missing_required_parameter"),
        ({"model": "m", "messages": 5}, "invalid_type"),
        ({"model": "m", "messages": [{"role": "bot", "content": "x"}]}, "invalid_value"),
        ({"model": "m", "messages": [{"role": "user", "content": "x"}], "audio": {}}, "unsupported_parameter"),
    ],
)
def test_a_requests_own_mistake_is_told_by_its_kind(body: dict[str, object], code: str | None) -> None:
    with pytest.raises(RequestRefusal) as refused:
        DIALECT.read(body, "openai/{}".format)
    assert words_of(refused.value.problem) == ("invalid_request_error", code)


@pytest.mark.parametrize("dialect", [openai_chat.DIALECT, openai_responses.DIALECT], ids=["chat", "responses"])
def test_models_are_listed_as_the_sdk_reads_them(dialect: Dialect) -> None:
    models = [ServedModel("openai/gpt-x", "openai"), ServedModel("my-\ud800name", "anthropic")]
    told = orjson.loads(dialect.listing(models))
    assert told["object"] == "list"
    read = [Model.model_validate(one, strict=True) for one in told["data"]]
    assert [(one.id, one.owned_by) for one in read] == [("openai/gpt-x", "openai"), ("my-\ufffdname", "anthropic")]
    assert orjson.loads(dialect.listed(models[0])) == told["data"][0]
    assert orjson.loads(dialect.listing([]))["data"] == []
