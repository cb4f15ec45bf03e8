"""Which model a client's word means."""

from __future__ import annotations

import pytest

from millstream.engine.call import Call
from millstream.providers.llm.serve_dialect import RequestRefusal, ServedRequest
from millstream.providers.llm.serve_naming import model_named, request_for_family


def named(word: str, family: str = "openai", names: dict[str, str] | None = None) -> str:
    return model_named(word, family, names or {}, {"openai", "anthropic", "gemini", "mylab"}.__contains__)


@pytest.mark.parametrize(
    ("word", "family", "model"),
    [
        ("gpt-4o", "openai", "openai/gpt-4o"),
        ("gpt-4o", "openai-responses", "openai-responses/gpt-4o"),
        ("claude-sonnet-4-5", "anthropic", "anthropic/claude-sonnet-4-5"),
        ("gemini-2.5-flash", "gemini", "gemini/gemini-2.5-flash"),
        ("models/gemini-2.5-flash", "gemini", "gemini/gemini-2.5-flash"),
        ("ft:gpt-4o:lab::7", "openai", "openai/ft:gpt-4o:lab::7"),
        ("web", "openai", "openai/web"),
        ("mylab/meta-llama/Llama-3", "anthropic", "mylab/meta-llama/Llama-3"),
        ("anthropic/claude-sonnet-4-5", "openai", "anthropic/claude-sonnet-4-5"),
    ],
)
def test_a_bare_name_is_of_the_dialects_own_provider_and_any_other_is_taken_as_it_stands(
    word: str, family: str, model: str
) -> None:
    assert named(word, family) == model


def test_a_name_that_somebody_chose_goes_before_all_else() -> None:
    assert named("fast", names={"fast": "mylab/small"}) == "mylab/small"
    assert named("openai/gpt-4o", names={"openai/gpt-4o": "mylab/small"}) == "mylab/small"
    assert named("my fast one", names={"my fast one": "mylab/small"}) == "mylab/small"


@pytest.mark.parametrize(
    "word", ["", " ", "a b", "a\nb", "openai/", "/gpt-4o", "web/example.org", "search/brave", "nobody/x", "a\ud800"]
)
def test_what_is_no_model_is_refused_as_one_that_is_not_there(word: str) -> None:
    with pytest.raises(RequestRefusal) as refused:
        named(word)
    problem = refused.value.problem
    assert (problem.status, problem.kind, problem.param) == (404, "unknown_model", "model")


@pytest.mark.parametrize("word", ["gemini/a/../b", "gemini/..", "gemini/./a", "..", ".", "models/../b", "mylab/a/.."])
def test_no_name_leads_to_another_place_of_a_providers(word: str) -> None:
    with pytest.raises(RequestRefusal, match=r"no part of a model's name is \. or \.\."):
        named(word, "gemini")
    assert named("mylab/v1..2/.hidden...") == "mylab/v1..2/.hidden..."


def test_a_model_whose_own_name_holds_a_slash_is_told_how_it_is_written() -> None:
    with pytest.raises(RequestRefusal, match="openai/meta-llama/Llama-3"):
        named("meta-llama/Llama-3")


def test_a_long_name_is_not_repeated_whole() -> None:
    with pytest.raises(RequestRefusal) as refused:
        named("x/" + "y" * 10_000)
    assert len(str(refused.value)) < 400


def test_parameters_of_one_protocol_are_refused_for_a_model_that_speaks_another() -> None:
    asked = ServedRequest(Call("anthropic/c", "Hello", extra={"logit_bias": {"50256": -100}}), "c")
    with pytest.raises(RequestRefusal, match=r"logit_bias can't be said to anthropic/c") as refused:
        request_for_family(asked, "openai", "anthropic")
    assert refused.value.problem.param == "logit_bias"
    assert request_for_family(asked, "openai", "openai") is asked
    plain = ServedRequest(Call("anthropic/c", "Hello"), "c")
    assert request_for_family(plain, "openai", "anthropic") is plain


def test_what_a_provider_of_another_family_can_do_without_is_left_out() -> None:
    asked = ServedRequest(
        Call("anthropic/c", "Hello", extra={"service_tier": "flex"}), "c", spare=frozenset({"service_tier"})
    )
    assert request_for_family(asked, "openai", "anthropic").call == Call("anthropic/c", "Hello")
    assert request_for_family(asked, "openai", "openai").call.extra == {"service_tier": "flex"}
