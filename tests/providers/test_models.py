"""The table of models: what it says of those that have a price, by which name, and whose word goes first."""

from __future__ import annotations

from datetime import date

import pytest

from millstream.engine.attempts.prices import bundled_prices
from millstream.fixtures.provider.chat import MODEL_NAMES
from millstream.fixtures.provider.wire import OUTPUT_MAX
from millstream.providers.models import Facts, bundled_models
from millstream.wiring import Settings


def test_every_model_with_a_price_has_a_longest_answer() -> None:
    assert [name for name in bundled_prices().models if bundled_models().of(name).max_output is None] == []


def test_every_row_says_something_and_names_a_dated_source() -> None:
    table = bundled_models()
    for name, row in table.models.items():
        assert Facts(row.thinks, row.max_output) != Facts(), name
        date.fromisoformat(table.sources[row.source].date)
    assert {row.source for row in table.models.values()} == table.sources.keys()


@pytest.mark.parametrize(
    ("model", "thinks"),
    [
        ("openai/gpt-4o-mini", False),
        ("openai/gpt-4o-mini-2024-07-18", False),
        ("openai/gpt-5", True),
        ("openai/gpt-5-2025-08-07", True),
        ("openai-responses/o3", True),
        ("openai/gpt-5.1", False),
        ("anthropic/claude-opus-4-1-20250805", False),
        ("anthropic/claude-opus-5-5", True),
        ("gemini/gemini-2.5-pro", True),
        ("vertex/claude-opus-4@20250514", False),
        ("openai/gpt-5-mini-and-more", None),
        ("mylab/gpt-5", None),
    ],
)
def test_a_model_is_known_by_its_name_its_dated_name_and_no_other(model: str, thinks: bool | None) -> None:
    assert bundled_models().of(model).thinks is thinks


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_the_simulated_models_are_known_with_the_length_at_which_they_are_cut(name: str) -> None:
    assert bundled_models().of(f"sim/{name}") == Facts(name == "thinking", OUTPUT_MAX)


@pytest.mark.parametrize(
    ("model", "own", "most"),
    [
        ("openai/gpt-4o", Facts(), 16_384),
        ("openai/gpt-4o", Facts(max_output=5_000), 5_000),
        ("openai/gpt-4o", Facts(thinks=True), 16_384),
        ("mylab/x", Facts(), None),
        ("mylab/x", Facts(max_output=32_768), 32_768),
        # Its protocol sends a max_tokens where a call sets none.
        ("anthropic/claude-opus-5-5", Facts(), 16_384),
        ("anthropic/claude-3-opus-20240229", Facts(), 4_096),
        ("vertex/claude-opus-4@20250514", Facts(), 16_384),
        ("vertex/gemini-2.5-pro", Facts(), 65_536),
        ("search/brave", Facts(), None),
    ],
)
def test_an_unset_max_tokens_is_bounded_by_what_is_sent_then_by_the_configuration_then_by_the_table(
    model: str, own: Facts, most: int | None
) -> None:
    assert Settings(models={model: own}, environment={}).output_max(model) == most
