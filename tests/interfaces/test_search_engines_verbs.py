"""Search engines and pages in `models` and `quota`: what each needs, whether it answers, and what holds for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import CommandLine
from simulated_outside import Outside

from millstream.providers.search.table import ENGINES

CANARY = "canary-0cc175b9c0f1b6a8"


@pytest.fixture
def brave(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> Outside:
    """Brave's API and SearXNG's, both the simulated one's."""
    monkeypatch.setenv("BRAVE_SEARCH_BASE_URL", f"{outside.web}/res/v1")
    monkeypatch.setenv("BRAVE_API_KEY", CANARY)
    monkeypatch.setenv("SEARXNG_BASE_URL", outside.web)
    return outside


def test_every_engine_is_told_with_what_it_needs_and_what_is_to_be_known(cli: CommandLine, brave: Outside) -> None:
    done = cli("models", "--json")
    found = {one["name"]: one for one in json.loads(done.out)["searches"]}
    assert set(found) == {*(f"search/{name}" for name in ENGINES), "search/corpus"}
    ready = {name for name, one in found.items() if one["is_ready"]}
    assert ready == {"search/brave", "search/searxng", "search/corpus"}
    assert (found["search/brave"]["set"], found["search/exa"]["set"]) == (["BRAVE_API_KEY"], [])
    assert found["search/google"]["id_variable"] == "GOOGLE_CSE_ID"
    told = cli("models")
    assert "BRAVE_API_KEY: set" in told.out and "EXA_API_KEY: not set" in told.out
    assert "GOOGLE_API_KEY: not set; GOOGLE_CSE_ID: not set" in told.out
    [remark] = [line for line in told.out.splitlines() if line.startswith("search/google: ")]
    assert "2027-01-01" in remark
    assert CANARY not in done.out + told.out + told.err


def test_a_check_makes_one_search_each_and_says_what_came(cli: CommandLine, brave: Outside) -> None:
    done = cli("models", "--check", "search/brave", "search/searxng", "search/exa")
    assert done.code == 4, done
    first, second, third = done.out.splitlines()
    assert first.startswith("search/brave (BRAVE_API_KEY): ok, ") and first.endswith("results, $0.005000")
    assert second.startswith("search/searxng: ok, ") and second.endswith("results, $0.000000")
    assert third == "search/exa: not sent: search 'search/exa' needs a key: set EXA_API_KEY"
    assert brave.searches() == 2
    assert CANARY not in done.out + done.err


def test_without_names_the_engines_that_are_ready_are_asked(cli: CommandLine, brave: Outside) -> None:
    found = json.loads(cli("models", "--check", "--json").out)["checks"]
    assert {one["model"]: one["status"] for one in found} == {"search/brave": "ok", "search/searxng": "ok"}
    assert all(one["results"] is not None and one["tokens"] is None for one in found)


def test_lanes_of_pages_are_no_models_to_be_checked(cli: CommandLine, brave: Outside, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[lanes."web/*"]\nrpm = 30\n[lanes."search/searxng"]\nrpm = 60\n')
    done = cli("models", "--check", "--config", "c.toml")
    assert (done.code, len(done.out.splitlines())) == (0, 1), done


def test_quota_tells_engines_and_what_holds_for_hosts(cli: CommandLine, brave: Outside, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(
        '[lanes.web]\nrpm = 1_800\n[lanes."web/*"]\nrpm = 30\n[lanes."web/a.org"]\nconcurrency = 4\n'
        '[lanes."search/brave"]\nrpm = 1_200\n'
    )
    done = cli("quota", "--config", "c.toml", "--cache", "cache")
    assert done.code == 0, done
    table, *pages = done.out.splitlines()[1:]
    assert table.split()[:4] == ["search/brave", "(BRAVE_API_KEY)", "requests", "1,200"]
    assert pages == [
        "pages together: 1,800 a minute, 64 in flight",
        "pages of each host: 30 a minute, 2 in flight",
        "pages of a.org: 1 s between two, 4 in flight",
    ]
    told = json.loads(cli("quota", "web/b.org", "--json").out)
    assert told == {"lanes": [], "pages": {"web/b.org": {"rpm": None, "spacing_s": 1.0, "concurrency": 2}}}
