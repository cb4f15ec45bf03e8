"""Pages of results joined: how many are asked, what is left out, and what a failure in the middle means."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from millstream.engine.call import Call, Failure, Hit, Outcome, Reply
from millstream.providers.search.joined import Found, search

Page = Sequence[str] | Failure


def hit(rank: int, url: str) -> Hit:
    return Hit(rank, url, f"title of {url}", f"snippet of {url}")


def numbered(start: int, stop: int) -> list[str]:
    return [f"https://pages.example/{number}" for number in range(start, stop)]


class Engine:
    """Gives its pages in their order, and writes down what it was asked. `finish` is what each answer ends with."""

    def __init__(self, *pages: Page, finish: str | None = None, remark: str = "", **outcome: Any) -> None:
        self._pages = pages
        self._finish = finish
        self._remark = remark
        self._outcome = outcome
        self.asked: list[dict[str, Any]] = []

    async def ask(self, call: Call) -> Outcome:
        extra = dict(call.extra or {})
        self.asked.append(extra)
        number = int(extra.get("page", 1))
        page: Page = self._pages[number - 1] if number <= len(self._pages) else ()
        key = f"key {number}"
        if isinstance(page, Failure):
            return Outcome(call, failure=page, key=key, attempts=6, maybe_billed=2)
        hits = tuple(hit(rank, url) for rank, url in enumerate(page, 1))
        reply = Reply(self._remark, finish_reason=self._finish, hits=hits)
        return Outcome(call, reply, key=key, **{"attempts": 1, "latency_ms": 10.0, **self._outcome})


def found(engine: Engine, model: str = "search/serper", query: str = "blue whale", count: int = 20) -> Found:
    return asyncio.run(search(engine.ask, model, query, count))


def test_pages_are_joined_up_to_the_number_wanted_and_ranked_anew() -> None:
    engine = Engine(numbered(0, 10), numbered(10, 20), numbered(20, 30), cost=0.001)
    result = found(engine)
    assert result == Found(
        "search/serper",
        "blue whale",
        tuple(hit(rank, f"https://pages.example/{rank - 1}") for rank in range(1, 21)),
        ("key 1", "key 2"),
        attempts=2,
        latency_ms=20.0,
        cost=0.002,
    )
    assert engine.asked == [{"count": 10}, {"count": 10, "page": 2}]


def test_one_page_is_enough_where_it_holds_them_all() -> None:
    engine = Engine(numbered(0, 20), finish="more")
    assert len(found(engine, "search/brave").hits) == 20
    assert engine.asked == [{"count": 20}]


def test_no_more_is_kept_than_was_wanted() -> None:
    engine = Engine(numbered(0, 40))
    result = found(engine, "search/searxng", count=7)
    assert [one.rank for one in result.hits] == [1, 2, 3, 4, 5, 6, 7]
    assert engine.asked == [{"count": 7}]


def test_a_page_that_two_results_lead_to_is_one_hit() -> None:
    first = ["https://a.example/x", "HTTPS://A.example:443/x/#there", "https://a.example/x?utm_source=y"]
    engine = Engine([*first, "https://a.example/y"], ["https://a.example/y", "https://a.example/z"])
    result = found(engine)
    assert [(one.rank, one.url) for one in result.hits] == [
        (1, "https://a.example/x"),
        (2, "https://a.example/y"),
        (3, "https://a.example/z"),
    ]


@pytest.mark.parametrize("last", [(), numbered(0, 9)], ids=["an empty page", "a page of nothing new"])
def test_what_brings_nothing_new_is_the_end(last: Page) -> None:
    engine = Engine(numbered(0, 9), last, numbered(20, 29))
    result = found(engine)
    assert (len(result.hits), len(engine.asked), result.failure) == (9, 2, None)


def test_an_engine_that_says_that_it_has_no_more_is_believed() -> None:
    engine = Engine(numbered(0, 9), numbered(9, 20), finish="stop")
    assert (len(found(engine).hits), len(engine.asked)) == (9, 1)


def test_pages_that_come_short_cost_one_more_and_not_all() -> None:
    engine = Engine(*(numbered(10 * page, 10 * page + 2) for page in range(10)))
    assert (len(found(engine).hits), len(engine.asked)) == (6, 3)


def test_an_engine_without_pages_is_asked_once_for_as_many_as_it_gives() -> None:
    engine = Engine(numbered(0, 20))
    assert len(found(engine, "search/tavily", count=50).hits) == 20
    assert engine.asked == [{"count": 20}]
    many = Engine(numbered(0, 50))
    assert len(found(many, "search/exa", count=50).hits) == 50
    assert many.asked == [{"count": 50}]


def test_nothing_found_is_found() -> None:
    result = found(Engine(()))
    assert (result.hits, result.failure, result.keys) == ((), None, ("key 1",))


def test_a_failure_of_the_first_page_is_the_searchs() -> None:
    failure = Failure("search_failed", "engines failed: bad (timeout)", 200)
    result = found(Engine(failure))
    assert (result.failure, result.hits, result.keys) == (failure, (), ("key 1",))
    assert (result.attempts, result.maybe_billed, result.latency_ms, result.cost) == (6, 2, None, None)


@pytest.mark.parametrize("kind", ["rate_limited", "timeout", "server_error", "bad_json", "not_cached"])
def test_a_search_that_broke_off_is_no_short_one(kind: Any) -> None:
    failure = Failure(kind, "no")
    result = found(Engine(numbered(0, 10), failure))
    assert (result.failure, len(result.hits), result.keys) == (failure, 10, ("key 1", "key 2"))


@pytest.mark.parametrize("kind", ["search_failed", "rejected"])
def test_a_further_page_that_an_engine_does_not_have_is_a_remark(kind: Any) -> None:
    result = found(Engine(numbered(0, 10), Failure(kind, "engines failed: bad")))
    assert (result.failure, len(result.hits)) == (None, 10)
    assert result.remarks == ("page 2: engines failed: bad",)


def test_what_an_answer_lacks_is_told_once() -> None:
    engine = Engine(numbered(0, 10), numbered(10, 20), remark="engines without an answer: bad")
    assert found(engine).remarks == ("engines without an answer: bad",)


def test_a_query_that_is_cut_is_told() -> None:
    words = " ".join(f"word{number}" for number in range(60))
    short = " ".join(f"word{number}" for number in range(50))
    result = found(Engine(numbered(0, 20)), "search/brave", words)
    assert result.remarks == (f"search/brave takes no longer query than this: {short}",)
    assert result.query == words
    assert found(Engine(numbered(0, 20)), "search/brave", " many   spaces \n here ").remarks == ()


def test_cached_is_what_was_cached_altogether() -> None:
    assert found(Engine(numbered(0, 20), cached=True)).cached
    assert not found(Engine(numbered(0, 20))).cached


def test_no_results_at_all_can_not_be_wanted() -> None:
    with pytest.raises(ValueError, match="must be >= 1"):
        found(Engine(), count=0)
