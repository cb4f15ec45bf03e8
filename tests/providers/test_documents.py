"""What docs/providers.md says of providers and errors is what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.faults import MEANINGS, fault_of
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
    kinds = ("openai", "openai-responses", "azure")
    assert {name for name, row in PROVIDERS.items() if row.kind in kinds} <= TOLD.keys()


def words_for(fault: Fault) -> tuple[str, str, str]:
    """How the table tells a fault."""
    follows = {
        "stop": "the lane stops",
        "confirm": "one probe, then the lane stops",
        "throttle": "the lane waits, as long as it is told, else it sends less",
        "retry": "tried again, and the lane sends less" if fault.cuts_rate else "tried again",
        "never": "never again",
    }[fault.action]
    is_pending = fault.action in ("stop", "confirm") and fault.kind != "redirect"
    return "pending" if is_pending else f"`{fault.kind}`", follows, "yes" if fault.is_billed_maybe else "no"


STATUSES = {int(status): row for row in rows_under("status") for status in row[0].split(", ")}


@pytest.mark.parametrize("status", STATUSES)
def test_a_status_means_what_is_told_of_it(status: int) -> None:
    assert tuple(STATUSES[status][1:]) == words_for(fault_of(Response(status, b"")))


def test_every_status_that_has_a_meaning_of_its_own_is_told() -> None:
    assert {*MEANINGS, 400, 402, 404, 413, 422, 429} <= STATUSES.keys()
