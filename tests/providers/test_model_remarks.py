"""What is said of a model before it is asked: its retirement, and what is assumed of it."""

from __future__ import annotations

import pytest

from millstream.providers.model_remarks import remarks_on, retirement
from millstream.providers.models import Facts, bundled_models

KNOWN = Facts(thinks=False, temperature="taken")


@pytest.mark.parametrize(
    ("day", "sentence"),
    [
        ("2026-10-15", ""),
        ("2026-10-16", "lab/x retires on 2027-01-14: nothing answers under its name from then on"),
        ("2027-01-13", "lab/x retires on 2027-01-14: nothing answers under its name from then on"),
        ("2027-01-14", "lab/x was retired on 2027-01-14: nothing answers under its name"),
    ],
)
def test_a_model_is_said_to_retire_ninety_days_before_its_day(day: str, sentence: str) -> None:
    assert retirement("lab/x", Facts(retires="2027-01-14"), day) == sentence


def test_who_answers_for_a_retired_model_is_named() -> None:
    facts = Facts(retires="2026-12-01", answered_by="lab/y")
    assert retirement("lab/x", facts, "2026-12-01") == "lab/x was retired on 2026-12-01: lab/y answers under its name"
    assert retirement("lab/x", facts, "2026-11-30").endswith("lab/y answers under its name from then on")


def test_a_known_model_that_stays_needs_no_word() -> None:
    assert list(remarks_on("lab/x", KNOWN, "2026-11-26", 100)) == []


def test_of_an_unknown_model_it_is_said_what_is_assumed_and_what_to_set() -> None:
    (line,) = remarks_on("lab/x", Facts(), "2026-11-26", 100)
    assert line == (
        "lab/x is not in the table of models: it is assumed that it answers without thinking (max_tokens 100 are sent) "
        'and takes a temperature; thinks and temperature under [models."lab/x"] in a --config file say otherwise'
    )
    (line,) = remarks_on("lab/x", Facts(temperature="refused"), "2026-11-26", None)
    assert "(no max_tokens are sent); " in line


@pytest.mark.parametrize(
    ("model", "near", "families"),
    [
        ("openai/gpt-6-lunar", " (nearest: openai/gpt-6-luna)", "gpt-(5-[5-9]|[6-9]).*"),
        (
            "anthropic/claude-sonnet-9",
            " (nearest: anthropic/claude-sonnet-5)",
            "claude-[a-z]+-(4-[7-9]|[5-9](-\\d+)?) and claude-[a-z]+-[5-9](-\\d+)?",
        ),
        ("openrouter/openai/gpt-7", "", "gpt-(5-[5-9]|[6-9]).*"),
    ],
)
def test_of_an_unknown_name_of_a_family_it_is_said_whose_facts_are_assumed(
    model: str, near: str, families: str
) -> None:
    facts = bundled_models().of(model, "2026-11-26")
    (line,) = remarks_on(model, facts, "2026-11-26", None)
    assert line == (
        f"{model} is not in the table of models{near}: what holds there of all named {families} is assumed; "
        f'thinks and temperature under [models."{model}"] in a --config file say otherwise'
    )
    assert list(remarks_on(model, facts, "2026-11-26", None, is_declared=True)) == []


@pytest.mark.parametrize("model", ["sim/open", "openai/gpt-6-luna-2026-09-01", "openrouter/anthropic/claude-opus-5.5"])
def test_a_name_that_the_table_has_needs_no_word(model: str) -> None:
    assert list(remarks_on(model, bundled_models().of(model, "2026-11-26"), "2026-11-26", None)) == []


def test_a_local_server_that_cuts_prompts_asks_for_its_window() -> None:
    facts = bundled_models().of("ollama/llama3.2", "2026-11-26")
    *_, line = remarks_on("ollama/llama3.2", facts, "2026-11-26", 100)
    assert "OLLAMA_CONTEXT_LENGTH" in line and "--window" in line
