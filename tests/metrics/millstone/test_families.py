"""Claims about which models are one family."""

from __future__ import annotations

import pytest

from millstream.metrics.millstone.arguments import family_of


@pytest.mark.parametrize(
    ("family", "models"),
    {
        "grok-3": "xai/grok-3 xai/grok-3-mini xai/grok-3-mini-fast-beta",
        "gpt-4o": "openai/gpt-4o openai/gpt-4o-mini gpt-4o-2024-08-06 openai/gpt-4o-mini-2024-07-18",
        "llama-3.1": "vertex/llama-3.1-8b-instruct-maas lab/meta-llama/Meta-Llama-3.1-405B-Instruct"
        " bedrock/meta.llama3-1-8b-instruct-v1:0 together/Llama-3.1-70B-Instruct-Turbo",
        "claude-3.5": "anthropic/claude-3.5-haiku anthropic/claude-3-5-haiku-20241022"
        " bedrock/us.anthropic.claude-3-5-sonnet-20241022-v2:0",
        "claude-opus-4": "anthropic/claude-opus-4 vertex/claude-opus-4@20250514 anthropic/claude-opus-4-20250514",
        "claude-opus-4.1": "anthropic/claude-opus-4-1-20250805",
        "gemini-2.0": "gemini/gemini-2.0-flash gemini/gemini-2.0-flash-001 gemini/gemini-2.0-flash-lite",
        "gemini-2.5": "gemini/gemini-2.5-pro-preview-05-06",
        "o3": "openai/o3 openai/o3-mini",
        "gpt-4": "openai/gpt-4-turbo openai/gpt-4-0613",
        "gpt-oss": "lab/gpt-oss-120b lab/gpt-oss-20b",
        "deepseek-v3": "lab/deepseek-v3 lab/DeepSeek_V3",
        "deepseek-r1": "lab/deepseek-r1",
        "qwen-2.5": "lab/qwen2.5-72b-instruct lab/Qwen/Qwen2.5-7B-Instruct",
        "mixtral": "lab/mixtral-8x7b-instruct",
        "mistral": "mistral/mistral-large-2411 mistral/mistral-small-latest",
    }.items(),
)
def test_a_family_is_the_name_without_provider_size_variant_and_date(family: str, models: str) -> None:
    assert {model: family_of(model) for model in models.split()} == dict.fromkeys(models.split(), family)


def test_the_papers_nine_models_make_three_pairs() -> None:
    models = "claude-3.5-haiku claude-opus-4 gemini-2.0-flash gpt-4o gpt-4o-mini grok-3 grok-3-mini"
    families = [family_of(model) for model in (*models.split(), "llama-3.1-405b", "llama-3.1-8b")]
    assert {family: families.count(family) for family in families} == {
        "claude-3.5": 1,
        "claude-opus-4": 1,
        "gemini-2.0": 1,
        "gpt-4o": 2,
        "grok-3": 2,
        "llama-3.1": 2,
    }


def test_a_model_at_another_temperature_is_of_the_same_family() -> None:
    assert family_of("openai/gpt-4o-mini @ 0.5") == family_of("openai/gpt-4o-mini @ default") == "gpt-4o"


def test_a_name_that_is_all_size_is_its_own_family() -> None:
    assert family_of("lab/8b") == "lab/8b"
    assert family_of("lab/") == "lab/"
