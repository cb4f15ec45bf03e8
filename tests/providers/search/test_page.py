"""What docs/providers.md says of search engines is what the table says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from millstream.providers.search import bm25
from millstream.providers.search.results import SNIPPET_MAX, TITLE_MAX
from millstream.providers.search.table import CORPUS, CORPUS_REACH, ENGINES, READ_ON

PAGE = (Path(__file__).parents[3] / "docs" / "providers.md").read_text("utf-8")
SECTION = PAGE.partition("## Search engines\n")[2].partition("\n## ")[0]
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in SECTION.splitlines() if line[:3] == "| `"]
TOLD = {row[0].strip("`"): row for row in ROWS}


def test_every_engine_is_told_and_no_other() -> None:
    assert TOLD.keys() == {*ENGINES, CORPUS}


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_is_as_it_is_told(name: str) -> None:
    row = ENGINES[name]
    _, key, address, reach, limits, price = TOLD[name]
    assert re.findall(r"`(\w+)`", key) == [*row.key_variables, *([row.id_variable] if row.id_variable else [])]
    assert re.findall(r"`(\w+)`", address) == [row.url_variable]
    assert ("must be set" in address) == (not row.base_url)
    results = "the instance's" if name == "searxng" else str(row.reach.count_max)
    assert reach == f"{results}, {row.reach.pages_max}"
    assert (limits, price) == (row.limits, row.price)
    assert row.limits_from in SECTION


def test_figures_and_the_day_are_the_codes_own() -> None:
    assert f"read on {READ_ON}" in SECTION
    assert f"cut at {TITLE_MAX} and {SNIPPET_MAX:,} characters" in SECTION
    assert f"(k1 {bm25.K1}, b {bm25.B})" in SECTION
    assert TOLD[CORPUS][3] == f"{CORPUS_REACH.count_max}, {CORPUS_REACH.pages_max}"
    brave, tavily = ENGINES["brave"].reach, ENGINES["tavily"].reach
    assert f"{brave.words_max} words or {brave.characters_max} characters" in SECTION
    assert f"Tavily {tavily.characters_max} characters" in SECTION
    assert "ends on 2027-01-01 and takes no new customers" in SECTION
