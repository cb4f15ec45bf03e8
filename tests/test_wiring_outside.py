"""Searches and pages as they are wired: their lanes, keys, addresses and prices, and reading them by the facade."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from recorder import recording

import millstream as ms
from millstream import wiring
from millstream.engine.lane import Lane
from millstream.engine.store.cache_policy import DAY_S

BRAVE = b'{"query":{"more_results_available":false},"web":{"results":[{"url":"https://a.example/","title":"A"}]}}'
KEY = "brave-canary-0123456789"


def settings(**changes: object) -> wiring.Settings:
    return wiring.Settings(**{"environment": {}, **changes})  # type: ignore[arg-type]


# Lanes


def test_a_host_is_spared_and_a_search_engine_held_to_its_documents_whatever_models_are_allowed() -> None:
    found = settings(default_lane=Lane("any", rpm=9, concurrency=99))
    assert found.lane_of("openai/m").rpm == 9
    host = found.lane_of("web/h.example")
    assert (host.rpm, host.concurrency, host.spacing_s) == (None, 2, 1.0)
    assert (found.lane_of("web").rpm, found.lane_of("web").concurrency) == (None, 64)
    assert (found.lane_of("search/tavily").rpm, found.lane_of("search/tavily").concurrency) == (100, 20)
    assert found.lane_of("search/searxng").rpm is None


def test_what_is_declared_for_a_host_goes_before_what_is_polite() -> None:
    lanes = Lane("web/h.example", rpm=120), Lane("web", rpm=1800, concurrency=9), Lane("search/brave", rpm=60)
    found = settings(lanes=lanes, environment={"BRAVE_API_KEY": KEY})
    host = found.lane_of("web/h.example")
    assert (host.rpm, host.concurrency, host.spacing_s) == (120, 2, 0.0)
    assert (found.lane_of("web").rpm, found.lane_of("web").concurrency) == (1800, 9)
    assert (found.lane_of("search/brave").rpm, found.lane_of("search/brave").timeout_s) == (60, 30)
    assert repr(ms.Engine(settings=found)) == "<Engine closed <CostBudget [$0.0000 spent, $0.0000 reserved, no limit]>>"


# Keys and addresses


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("search/brave", "needs a key: set BRAVE_API_KEY or BRAVE_SEARCH_API_KEY"),
        ("search/searxng", "has no address: set SEARXNG_BASE_URL"),
        ("search/altavista", "no search engine 'altavista'; known are brave, corpus,"),
    ],
)
def test_what_a_search_engine_lacks_is_told(model: str, message: str) -> None:
    with pytest.raises(ms.ConfigurationError, match=message):
        wiring.access_to(model, settings())


def test_the_flag_for_models_leads_no_search_elsewhere_and_its_own_variable_does() -> None:
    found = wiring.access_to("search/brave", settings(base_url="http://model/v1", environment={"BRAVE_API_KEY": KEY}))
    assert found.target.base_url == "https://api.search.brave.com/res/v1"
    environment = {"BRAVE_API_KEY": KEY, "BRAVE_SEARCH_BASE_URL": "http://127.0.0.1:1/"}
    found = wiring.access_to("search/brave", settings(environment=environment))
    assert (found.target.base_url, found.variable, found.credentials.key) == (
        "http://127.0.0.1:1",
        "BRAVE_API_KEY",
        KEY,
    )
    assert KEY not in repr(found) and found.proof == "the key in BRAVE_API_KEY"


def test_an_address_of_a_search_engine_is_held_to_what_the_flag_is_and_not_shown() -> None:
    environment = {"SEARXNG_BASE_URL": "http://bob:PassWord-77@127.0.0.1/"}
    with pytest.raises(ms.ConfigurationError, match="SEARXNG_BASE_URL must be an address such as") as told:
        wiring.access_to("search/searxng", settings(environment=environment))
    assert "PassWord" not in str(told.value)


def test_nothing_is_sent_in_mode_strict_so_no_key_is_needed(tmp_path: Path) -> None:
    async def main() -> list[str]:
        strict = settings(mode="strict", cache=tmp_path)
        async with ms.Engine(settings=strict) as engine:
            asked = [ms.Call("openai/m", "a"), ms.Call("search/brave", "a"), ms.Call("web", "http://h.example/")]
            return [(await engine.ask(call)).status for call in asked]

    assert asyncio.run(main()) == ["not_cached"] * 3


def test_a_host_that_can_not_be_allowed_is_refused_with_what_is_expected() -> None:
    with pytest.raises(ms.ConfigurationError, match="--allow-host 'h=no-address'"):
        ms.Engine(settings=settings(allow_hosts=("h=no-address",)))


def test_what_could_not_be_opened_leaves_nothing_open(tmp_path: Path) -> None:
    async def main() -> None:
        broken = settings(mode="strict", cache=tmp_path / "c", snapshot=tmp_path / "no-file")
        with pytest.raises(ms.LocalFault, match="can't be read"):
            async with ms.Engine(settings=broken):
                pass

    asyncio.run(main())
    assert not (tmp_path / "c").exists()


# Through the facade


def test_a_search_is_joined_paid_for_once_and_taken_again_while_it_is_young(tmp_path: Path) -> None:
    with recording(BRAVE) as server:
        environment = {"BRAVE_API_KEY": KEY, "BRAVE_SEARCH_BASE_URL": server.origin}

        async def main(**changes: object) -> tuple[bool, float | None, float]:
            async with ms.Engine(settings=settings(environment=environment, cache=tmp_path, **changes)) as engine:
                found = await engine.search("search/brave", "whales", 5)
                assert [(hit.rank, hit.url) for hit in found.hits] == [(1, "https://a.example/")]
                assert found.failure is None and len(found.keys) == 1
                return found.cached, found.cost, engine.budget.spent

        assert asyncio.run(main()) == (False, 0.005, 0.005)
        assert asyncio.run(main()) == (True, 0.0, 0.0)
        assert asyncio.run(main(max_age_s=0.0)) == (False, 0.005, 0.005)
        assert asyncio.run(main(max_age_s=0.0, run_started=1.0))[0]
        assert settings().max_age_s == DAY_S
        assert len(server.sent) == 2


def test_searches_count_against_the_limit_of_cost(tmp_path: Path) -> None:
    with recording(BRAVE) as server:
        environment = {"BRAVE_API_KEY": KEY, "BRAVE_SEARCH_BASE_URL": server.origin}

        async def main() -> None:
            limited = settings(environment=environment, cache=tmp_path, max_cost=0.012)
            async with ms.Engine(settings=limited) as engine:
                await engine.search("search/brave", "one")
                await engine.search("search/brave", "two")
                with pytest.raises(ms.Stopped, match=r"of --max-cost \$0\.0120 had been spent"):
                    await engine.search("search/brave", "three")

        asyncio.run(main())
        assert len(server.sent) == 2


@pytest.mark.process
def test_a_corpus_is_searched_and_read_without_a_network_and_only_where_there_is_one(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/whale.txt").write_text("The blue whale is the largest animal.")
    (tmp_path / "docs/ant.txt").write_text("The ant is small.")

    async def main() -> None:
        async with ms.Engine(settings=settings(cache=tmp_path / "c", corpus=tmp_path / "docs")) as engine:
            for is_cached in (False, True):
                found = await engine.search("search/corpus", "largest animal")
                assert found.hits[0].url == "corpus:whale.txt" and found.cached is is_cached
                page = await engine.read(found.hits[0].url)
                assert (page.status, page.cached) == ("ok", is_cached) and "blue whale" in page.text
        async with ms.Engine(settings=settings(cache=tmp_path / "c")) as engine:
            with pytest.raises(ms.ConfigurationError, match="give one with --corpus"):
                await engine.search("search/corpus", "whale")
            assert (await engine.read("corpus:whale.txt")).status == "unreachable"

    asyncio.run(main())


def test_a_closed_engine_reads_and_searches_nothing() -> None:
    for asked in (ms.Engine().read("http://h.example/"), ms.Engine().search("search/brave", "q")):
        with pytest.raises(RuntimeError, match="use it inside `async with Engine"):
            asyncio.run(asked)
