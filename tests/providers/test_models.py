"""The table of models: what it says of each, by which names and on which days, and whose word goes first."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from msgspec import structs

from millstream.bench.evaluation.running.served import compared_names
from millstream.engine.prices import LongPrompts, PriceSource
from millstream.fixtures.provider.chat import MODEL_NAMES
from millstream.fixtures.provider.wire import OUTPUT_MAX
from millstream.providers.models import Facts, ModelRow, ModelTable, PriceRow, bare_name, bundled_models
from millstream.wiring import Settings

DAY = "2026-11-26"
NOON = datetime(2026, 11, 26, 12, tzinfo=UTC).timestamp


def test_every_model_with_a_price_has_a_longest_answer() -> None:
    table = bundled_models()
    assert [name for name in table.prices(DAY) if table.of(name, DAY).max_output is None] == []


def test_every_fact_and_every_price_names_a_source_with_a_day_in_the_past() -> None:
    table, today = bundled_models(), datetime.now(UTC).date()
    used = set()
    for name, row in [*table.models.items(), *((each.pattern, each) for each in table.families)]:
        assert Facts().over(row) != Facts() or row.prices, name
        assert all(getattr(row, fact) != getattr(Facts(), fact) for fact in row.source_of), name
        used |= {row.source, *row.source_of.values(), *(price.source for price in row.prices)}
    assert used == table.sources.keys()
    for source in table.sources.values():
        assert source.note and date(2025, 1, 1) <= date.fromisoformat(source.date) <= today


def test_rows_are_sorted_by_provider_and_name_models_that_the_table_has() -> None:
    table = bundled_models()
    providers = [name.partition("/")[0] for name in table.models]
    assert providers == sorted(providers)
    for name, row in table.models.items():
        assert row.retires is None or date.fromisoformat(row.retires), name
        assert row.answered_by is None or row.retires is not None, name
        for other in (row.answered_by, row.answers_as):
            assert other is None or table.row(other) is not None, name
        # Ends at a model that answers: no name is followed by itself.
        assert table.answering(name, "9999-12-31"), name


def test_every_price_is_a_possible_one_and_periods_follow_each_other() -> None:
    for name, row in bundled_models().models.items():
        for price in row.prices:
            assert price.output >= price.input, name
            assert price.long is None or (price.long.above >= 100_000 and price.long.input >= price.input), name
            assert price.since <= price.until, name
        assert all(one.until < two.since for one, two in zip(row.prices, row.prices[1:], strict=False)), name


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
        ("anthropic/claude-3-5-haiku-latest", False),
        ("gemini/gemini-2.5-pro", True),
        ("vertex/claude-opus-4@20250514", False),
        ("vertex/claude-opus-5-5@20261001", True),
        ("vertex/publishers/anthropic/models/claude-sonnet-5-5", True),
        ("openrouter/anthropic/claude-opus-5.5", True),
        ("openrouter/openai/gpt-5.2:online", False),
        ("openrouter/google/gemini-2.5-pro", True),
        ("openrouter/x-ai/grok-4.3", True),
        ("bedrock/us.anthropic.claude-opus-5-5-v1:0", True),
        ("bedrock/anthropic.claude-sonnet-4-20250514-v1:0", False),
        ("bedrock/arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-5-5-v1:0", True),
        ("azure/gpt-5.5", True),
        ("groq/llama-3.3-70b-versatile", False),
        ("together/meta-llama/Llama-3.3-70B-Instruct-Turbo", False),
        # By its family: these have no row.
        ("openai/gpt-6.9-nova", True),
        ("openrouter/openai/gpt-7", True),
        ("openai/o4", True),
        ("anthropic/claude-haiku-6", True),
        ("gemini/gemini-4-flash", True),
        ("xai/grok-4.9", True),
        ("sim/thinking", True),
        # A name that only begins alike is another model, and on a server of one's own a name means nothing.
        ("openai/gpt-5-mini-and-more", None),
        ("mylab/gpt-5", None),
        ("vllm/gpt-5", None),
    ],
)
def test_a_model_is_known_by_every_spelling_of_its_name_and_by_no_other(model: str, thinks: bool | None) -> None:
    assert bundled_models().of(model, DAY).thinks is thinks


@pytest.mark.parametrize(
    ("model", "effort", "takes"),
    [
        ("openai/gpt-4o", None, True),
        ("openai/gpt-5", None, False),
        ("openai/gpt-5", "minimal", False),
        ("openai/o3", None, False),
        ("openai/gpt-5.2", None, True),
        ("openai/gpt-5.2", "high", False),
        ("openai/gpt-6.1-terra", None, False),
        ("openai/gpt-6.1-terra", "none", True),
        ("openrouter/openai/gpt-6.1-terra", "low", False),
        ("anthropic/claude-opus-4-6", None, True),
        ("anthropic/claude-opus-4-7", None, False),
        ("bedrock/us.anthropic.claude-opus-5-5-v1:0", None, False),
        ("gemini/gemini-3.1-pro-preview", None, True),
        # Its name is answered by 3.6 Flash.
        ("gemini/gemini-3.5-flash", None, False),
        ("openai/gpt-6.2-sol", "none", False),
        ("gemini/gemini-3.8-flash", None, False),
        ("mylab/unknown", None, True),
    ],
)
def test_whether_a_temperature_has_an_effect_depends_on_model_and_effort(
    model: str, effort: str | None, takes: bool
) -> None:
    assert bundled_models().of(model, DAY).takes_temperature(effort) is takes


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_the_simulated_models_are_known_with_the_length_at_which_they_are_cut(name: str) -> None:
    facts = bundled_models().of(f"sim/{name}", DAY)
    assert (facts.thinks, facts.max_output, facts.temperature) == (name == "thinking", OUTPUT_MAX, "taken")


def test_tokens_are_longer_or_shorter_by_family() -> None:
    of = bundled_models().of
    newer, older = of("anthropic/claude-opus-4-7", DAY), of("anthropic/claude-opus-4-6", DAY)
    assert of("bedrock/eu.anthropic.claude-haiku-5-5", DAY).characters == newer.characters < older.characters == 4.0


@pytest.mark.parametrize(
    "model",
    [
        "vertex/gemini-2.0-flash",
        "vertex/claude-3-5-haiku@20241022",
        "vertex/claude-opus-4@20250514",
        "vertex/meta/llama-3.1-405b-instruct-maas",
        "vertex/meta/llama-4-maverick-17b-128e-instruct-maas",
        "vertex/gemini-2.5-flash",
        "openai/gpt-4o",
        "openai/gpt-4o-mini",
        "openai-responses/gpt-4o-mini",
        "xai/grok-3",
        "xai/grok-3-mini",
    ],
)
def test_the_papers_models_have_a_price(model: str) -> None:
    price = Settings(clock=NOON).price_table().get(model)
    assert price is not None and 0 < price.input <= price.output


@pytest.mark.parametrize(
    "model",
    ["openrouter/anthropic/claude-opus-5.5", "bedrock/us.anthropic.claude-opus-5-5-v1:0", "azure/gpt-4o", "openai/no"],
)
def test_another_providers_price_is_no_price(model: str) -> None:
    assert Settings(clock=NOON).price_table().get(model) is None


SOURCES = {"list": PriceSource("2026-11-01", "a price list")}
NEW = ModelRow(
    source="list",
    thinks=True,
    prices=(
        PriceRow(1.0, 2.0, LongPrompts(100, 2.0, 4.0), source="list", until="2026-12-31"),
        PriceRow(3.0, 6.0, source="list", since="2027-01-01", until="2027-06-30"),
    ),
)
OLD = ModelRow(
    source="list",
    thinks=False,
    prices=(PriceRow(9.0, 9.0, source="list"),),
    retires="2026-12-01",
    answered_by="lab/new",
)
TABLE = ModelTable(
    vendors=("lab",),
    offering=("shop",),
    thinking_answer=(300, 3_000),
    same={},
    sources=SOURCES,
    models={
        "lab/new": NEW,
        "lab/old": OLD,
        "lab/gone": structs.replace(OLD, answered_by=None),
        "lab/best": ModelRow(source="list", answers_as="lab/old"),
    },
    families=(),
)


@pytest.mark.parametrize(
    ("model", "day", "thinks", "dollars"),
    [
        ("lab/old", "2026-11-30", False, 9.0),
        ("lab/old", "2026-12-01", True, 1.0),
        ("lab/old-20260101", "2026-12-01", True, 1.0),
        ("lab/old", "2027-01-01", True, 3.0),
        ("lab/best", "2026-11-30", False, 9.0),
        ("lab/best", "2026-12-01", True, 1.0),
        ("lab/gone", "2026-12-01", False, 9.0),
        ("lab/new", "2026-12-31", True, 1.0),
        ("lab/new", "2027-06-30", True, 3.0),
        ("lab/new", "2027-07-01", True, None),
        # Each provider retires its names on days of its own.
        ("shop/lab/old", "2026-12-01", False, None),
    ],
)
def test_from_its_day_on_a_retired_name_has_the_facts_and_the_price_of_the_model_that_answers(
    model: str, day: str, thinks: bool, dollars: float | None
) -> None:
    price = TABLE.price(model, day)
    assert TABLE.of(model, day).thinks is thinks
    assert (None if price is None else price.price.input) == dollars


def test_a_name_keeps_its_own_day_of_retirement() -> None:
    for day in ("2026-11-30", "2026-12-01"):
        facts = TABLE.of("lab/old", day)
        assert (facts.retires, facts.answered_by) == ("2026-12-01", "lab/new")
    assert TABLE.of("shop/lab/old", "2026-12-01").retires is None


def test_a_deployment_has_the_facts_of_the_model_that_it_stands_for_and_no_price_or_day_of_its_own() -> None:
    declared = {"azure/x": Facts(answers_as="openai/gpt-4o", window=50_000)}
    settings = Settings(models=declared, clock=NOON)
    facts = settings.facts_of("azure/x")
    assert (facts.thinks, facts.window, facts.max_output, facts.retires) == (False, 50_000, 16_384, None)
    assert settings.price_table().get("azure/x") is None
    assert Settings(clock=NOON).facts_of("azure/x").thinks is None


@pytest.mark.parametrize(
    ("model", "served"),
    [
        ("anthropic/claude-opus-4-0", "claude-opus-4-20250514"),
        ("anthropic/claude-sonnet-4-0", "claude-sonnet-4-20250514"),
        ("openai/gpt-4-turbo-preview", "gpt-4-0125-preview"),
        ("gemini/gemini-flash-latest", "gemini-3.8-flash"),
        ("deepseek/deepseek-v4-flash", "deepseek-flash"),
    ],
)
def test_an_alias_is_the_model_that_it_stands_for(model: str, served: str) -> None:
    settings = Settings(clock=NOON)
    facts = settings.facts_of(model)
    assert facts.answers_as is not None and facts.window is not None
    compared = compared_names([model], settings)[model]
    assert compared == facts.answers_as and bare_name(compared) == bare_name(served)
    target = settings.facts_of(facts.answers_as)
    assert (facts.thinks, facts.window, facts.retires) == (target.thinks, target.window, target.retires)
    assert settings.price_table().get(model) == settings.price_table().get(facts.answers_as)


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
    assert Settings(models={model: own}, environment={}, clock=NOON).output_max(model) == most
