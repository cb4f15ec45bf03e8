"""What docs/providers.md says of providers and errors is what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fault_table import COMMAND, with_table

from millstream.providers.table import PROVIDERS

PAGE = (Path(__file__).parent.parent.parent / "docs" / "providers.md").read_text("utf-8")


def rows_under(head: str) -> list[list[str]]:
    """The cells of a table."""
    _, _, behind = PAGE.partition(f"| {head} |")
    lines = behind.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


TOLD = {row[0].strip("`"): row for row in rows_under("provider")}


@pytest.mark.parametrize("name", TOLD)
def test_a_provider_is_as_it_is_told(name: str) -> None:
    row = PROVIDERS[name]
    _, kind, key, address = TOLD[name]
    keys = re.findall(r"`(\w+)`", key)
    assert kind.strip("`") == row.kind
    assert keys == [variable for variable in (row.key_variable, *row.key_variables_too) if variable]
    assert ("none" in key) == (row.key_variable is None)
    assert address.strip("`") == (row.url_variable or "")


def test_every_provider_over_openais_protocols_is_told() -> None:
    kinds = ("openai", "openai-responses", "openai-completions", "azure")
    assert {name for name, row in PROVIDERS.items() if row.kind in kinds} <= TOLD.keys()


def test_the_table_of_faults_is_the_codes_own() -> None:
    assert with_table(PAGE) == PAGE, f"run `.venv/bin/{COMMAND}`"
