"""The table of search engines: complete, dated, and with limits that its lanes keep."""

from __future__ import annotations

import re

import pytest

from millstream.engine.page_urls import is_address
from millstream.providers.search.table import CORPUS_REACH, ENGINES, READ_ON, engine_of, reach_of
from millstream.providers.table import PROVIDERS

KEY = "canary-key-0123456789"
HEADERS = {
    "brave": {"X-Subscription-Token": KEY},
    "serper": {"X-API-KEY": KEY},
    "tavily": {"Authorization": f"Bearer {KEY}"},
    "exa": {"x-api-key": KEY},
    "searxng": {},
    "google": {"X-goog-api-key": KEY},
}


@pytest.mark.parametrize("name", ENGINES)
def test_a_key_stands_in_the_header_that_the_engine_wants_it_in(name: str) -> None:
    assert ENGINES[name].authorizer(KEY).fixed == HEADERS[name]


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_has_an_address_or_a_variable_limits_and_a_price(name: str) -> None:
    row = ENGINES[name]
    assert row.protocol.kind == name
    assert is_address(row.base_url) or (name == "searxng" and not row.base_url)
    assert re.fullmatch(r"[A-Z_]+_BASE_URL", row.url_variable)
    assert bool(row.key_variables) == (name != "searxng")
    assert row.lane.model == f"search/{name}"
    assert row.limits and row.limits_from and row.price and row.dollars_per_1000 >= 0


def test_no_two_engines_and_no_model_share_a_variable_for_an_address() -> None:
    variables = [row.url_variable for row in ENGINES.values()]
    models = {row.url_variable for row in PROVIDERS.values()}
    assert len(set(variables)) == len(variables) and models.isdisjoint(variables)
    assert "search" not in PROVIDERS


def test_lanes_keep_what_is_documented() -> None:
    assert {name: row.lane.rpm for name, row in ENGINES.items()} == {
        "brave": 50 * 60,
        "serper": 50 * 60,
        "tavily": 100,
        "exa": 10 * 60,
        "searxng": None,
        "google": 60,
    }
    # A limit that holds for a second lets no two leave together, and its minute is not lost to that.
    by_second = {name: round(1 / row.lane.spacing_s) for name, row in ENGINES.items() if row.lane.spacing_s}
    assert by_second == {"brave": 43, "serper": 43, "exa": 9}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", READ_ON)


def test_only_google_is_remarked_on_and_its_end_is_named() -> None:
    assert [name for name, row in ENGINES.items() if row.remark] == ["google"]
    assert "2027-01-01" in ENGINES["google"].remark and "no new customers" in ENGINES["google"].remark


def test_a_model_string_leads_to_its_row() -> None:
    assert engine_of("search/exa") is ENGINES["exa"]
    assert [engine_of(model) for model in ("search/corpus", "search/bing", "openai/exa", "web", "search")] == [None] * 5
    assert (reach_of("search/corpus"), reach_of("search/bing")) == (CORPUS_REACH, None)
