"""Reading a page: robots, hops and text in their order, and a reason wherever there is no text."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise

import pytest
from msgspec import structs
from page_hosts import Kept
from scripted_web import NOT_FOUND, Answer, ExtractionHere, ScriptedWeb, failed, moved, said
from virtual_time import run_virtually

from millstream.engine.call import Call, PageResponse
from millstream.engine.fault import Stop, Stopped
from millstream.providers.pages.endpoint import CRAWL_DELAY_S, WITHIN_S
from millstream.providers.pages.page import Page, PageText
from millstream.providers.pages.reader import PageReader
from millstream.providers.pages.robots_rules import RobotsVerdict
from millstream.providers.pages.workers import WorkerFault

RULES = "http://a.com/robots.txt"
URL = "http://a.com/page"


def rules(text: str) -> Answer:
    return Answer(text.encode(), content_type="text/plain")


def read(web: ScriptedWeb, *urls: str, kept: Kept | None = None) -> list[Page]:
    """One after the other, by one reader."""

    async def work() -> list[Page]:
        reader = PageReader(web.ask, kept or Kept(), ExtractionHere())
        return [await reader.read(url) for url in urls]

    return run_virtually(work())


def test_rules_come_before_the_page_and_all_keys_and_the_hash_are_told() -> None:
    web = ScriptedWeb({URL: said("Ferries."), RULES: rules("User-agent: *\nAllow: /")})
    (page,) = read(web, " HTTP://A.com:80/page#part ")
    assert web.urls == [RULES, URL]
    assert (page.status, page.title, page.final_url) == ("ok", "T", URL)
    assert page.url == " HTTP://A.com:80/page#part " and "Ferries." in page.text
    assert len(page.keys) == 2 and len(page.hash) == 64 and not page.cached and page.detail == ""


def test_redirects_are_followed_each_under_the_rules_of_its_own_host() -> None:
    web = ScriptedWeb(
        {
            "http://a.com/page": moved("https://b.com/x"),
            "https://b.com/x": moved("y?z"),
            "https://b.com/y?z": said("There."),
            "https://b.com/robots.txt": rules("User-agent: *\nDisallow: /no"),
        }
    )
    (page,) = read(web, URL)
    assert web.urls == [RULES, URL, "https://b.com/robots.txt", "https://b.com/x", "https://b.com/y?z"]
    assert (page.status, page.final_url, page.url) == ("ok", "https://b.com/y?z", URL)
    assert len(page.keys) == 5


def test_a_redirect_into_what_rules_forbid_is_not_followed() -> None:
    web = ScriptedWeb({URL: moved("/no/x"), RULES: rules("User-agent: *\nDisallow: /no")})
    (page,) = read(web, URL)
    assert web.urls == [RULES, URL]
    assert (page.status, page.final_url) == ("disallowed", "http://a.com/no/x")
    assert page.detail == "http://a.com/robots.txt forbids it to robots"


def test_five_redirects_are_followed_and_a_sixth_is_not() -> None:
    chain = {f"http://a.com/{number}": moved(f"/{number + 1}") for number in range(6)}
    web = ScriptedWeb({**chain, "http://a.com/5": said("There.")})
    assert read(web, "http://a.com/0")[0].status == "ok"
    web = ScriptedWeb({**chain, "http://a.com/6": said("There.")})
    (page,) = read(web, "http://a.com/0")
    assert (page.status, page.detail) == ("unreachable", "more than 5 redirects, the last to http://a.com/6")
    assert "http://a.com/6" not in web.urls


@pytest.mark.parametrize(
    ("location", "detail"),
    [
        ("/page", "redirects in a circle, back to http://a.com/page"),
        (None, "302: a redirect that leads nowhere"),
        ("", "302: a redirect that leads nowhere"),
        ("ftp://a.com/", "not fetched: a URL of the scheme 'ftp', not http or https"),
        ("http://u:p@a.com/", "not fetched: a URL with a user or a backslash before its path"),
    ],
)
def test_a_redirect_that_leads_to_no_page_says_so(location: str | None, detail: str) -> None:
    (page,) = read(ScriptedWeb({URL: moved(location)}), URL)
    assert (page.status, page.detail, page.text) == ("unreachable", detail, "")


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        *((failed("rejected", status), "blocked") for status in (401, 402, 403, 407, 451)),
        *((failed("rejected", status), "unreachable") for status in (400, 404, 410)),
        *(
            (failed("rate_limited", 429), "blocked"),
            (failed("rate_limited"), "blocked"),
            (failed("timeout"), "timeout"),
        ),
        *((failed("too_large"), "too_large"), (failed("empty", 204), "empty"), (Answer(b""), "empty")),
        *((failed("dns"), "unreachable"), (failed("connect"), "unreachable"), (failed("disconnected"), "unreachable")),
        *((failed("incomplete"), "unreachable"), (failed("server_error", 500), "unreachable")),
        *((failed("not_cached"), "unreachable"), (failed("rejected"), "unreachable")),
    ],
)
def test_every_end_has_its_status_and_its_words(answer: Answer, status: str) -> None:
    (page,) = read(ScriptedWeb({URL: answer}), URL)
    assert page.status == status and not page.text and page.detail
    assert len(page.keys) == 2


@pytest.mark.parametrize(
    "url", ["", "nonsense", "ftp://a.com/", "http://", "javascript:alert(1)", "\x00", "http://[::1"]
)
def test_what_is_no_address_is_not_asked_for(url: str) -> None:
    web = ScriptedWeb({})
    (page,) = read(web, url)
    assert page.status == "unreachable" and page.detail.startswith("not fetched: ")
    assert web.asked == [] and page.keys == () and not page.cached


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (failed("rejected", 404), "ok"),
        (failed("rejected", 403), "ok"),
        (failed("rejected", 410), "ok"),
        (failed("empty", 204), "ok"),
        (rules(""), "ok"),
        (rules("<html>no rules at all</html>"), "ok"),
        (moved("/robots.txt"), "ok"),
        (moved("ftp://a.com/"), "ok"),
        (moved("/others.txt"), "disallowed"),
        (failed("server_error", 500), "disallowed"),
        (failed("timeout"), "disallowed"),
        (failed("disconnected"), "disallowed"),
        (failed("incomplete"), "disallowed"),
        (failed("too_large", 200), "disallowed"),
        (failed("dns"), "unreachable"),
        (failed("connect"), "unreachable"),
        (failed("rejected"), "unreachable"),
        (failed("not_cached"), "unreachable"),
        (failed("rate_limited", 429), "blocked"),
        (rules("User-agent: *\nDisallow: /"), "disallowed"),
        (rules("User-agent: millstream\nDisallow: /page"), "disallowed"),
    ],
)
def test_rules_that_can_not_be_had_mean_what_their_standard_says(answer: Answer, status: str) -> None:
    pages = {URL: said("Ferries."), RULES: answer, "http://a.com/others.txt": rules("User-agent: *\nDisallow: /")}
    web = ScriptedWeb(pages)
    (page,) = read(web, URL)
    assert page.status == status
    assert (URL in web.urls) == (status == "ok")
    assert page.status == "ok" or "robots" in page.detail or answer.kind in ("rejected",)


def test_rules_that_no_parser_can_judge_forbid_and_say_that_they_were_not_judged() -> None:
    compressed = structs.replace(rules("User-agent: *"), encoding="br")
    (page,) = read(ScriptedWeb({URL: said("Ferries."), RULES: compressed}), URL)
    assert page.status == "disallowed"
    assert page.detail == (
        f"{RULES} can't be judged, which forbids everything: compressed as 'br', which was not asked for"
    )


class Unable(ExtractionHere):
    """On a machine where no worker can be started."""

    async def extract(self, fetched: PageResponse) -> PageText:
        raise WorkerFault("no worker")

    async def judge(self, robots: PageResponse, url: str) -> RobotsVerdict:
        raise WorkerFault("no worker")


@pytest.mark.parametrize("has_rules", [True, False])
def test_where_no_worker_can_be_started_no_page_has_a_status_and_nothing_is_kept(has_rules: bool) -> None:
    web, kept = ScriptedWeb({URL: said("Ferries."), **({RULES: rules("User-agent: *")} if has_rules else {})}), Kept()
    with pytest.raises(WorkerFault):
        run_virtually(PageReader(web.ask, kept, Unable()).read(URL))
    assert kept.values == {}
    assert read(web, URL, kept=kept)[0].status == "ok"


def test_rules_are_read_once_a_host_however_many_pages_are_wanted_at_once() -> None:
    pages_there = {f"http://a.com/{number}": said(f"{number}") for number in range(9)}
    web = ScriptedWeb({RULES: rules("User-agent: *\nDisallow: /3"), **pages_there})

    async def work() -> list[Page]:
        reader = PageReader(web.ask, Kept(), ExtractionHere())
        return await asyncio.gather(*(reader.read(f"http://a.com/{n}") for n in range(9)))

    pages = run_virtually(work())
    assert web.urls.count(RULES) == 1
    assert [page.status for page in pages] == ["ok"] * 3 + ["disallowed"] + ["ok"] * 5
    assert {page.keys[0] for page in pages} == {pages[0].keys[0]}


def test_whoever_waits_for_rules_reads_them_when_the_first_reader_leaves() -> None:
    web = ScriptedWeb({RULES: rules("User-agent: *\nAllow: /"), URL: said("Ferries.")})

    async def work() -> Page:
        reader = PageReader(web.ask, Kept(), ExtractionHere())
        first = asyncio.create_task(reader.read(URL))
        second = asyncio.create_task(reader.read(URL))
        await asyncio.sleep(0.05)
        first.cancel()
        return await second

    assert run_virtually(work()).status == "ok"
    assert web.urls.count(RULES) == 2


def test_rules_of_many_hosts_take_a_bounded_place() -> None:
    hosts = [f"http://h{number}.com" for number in range(2_100)]
    web = ScriptedWeb({f"{host}/robots.txt": rules("User-agent: *\nDisallow: /" + "x" * 10_000) for host in hosts})

    async def work() -> str:
        reader = PageReader(web.ask, Kept(), ExtractionHere())
        for host in hosts:
            await reader.read(f"{host}/")
        return repr(reader)

    told = run_virtually(work())
    found = re.search(r"<Robots \[(\d+) hosts known, ([\d,]+) bytes\]>", told)
    assert found is not None
    assert 100 < int(found[1]) <= 2_000 and int(found[2].replace(",", "")) <= 8 << 20


def test_a_host_that_asks_for_pauses_is_asked_for_one_page_at_a_time_and_its_lane_is_told() -> None:
    pages = {f"http://a.com/{number}": said(f"{number}") for number in range(5)}
    web = ScriptedWeb({RULES: rules("User-agent: *\nCrawl-delay: 120"), **pages, "http://b.com/x": said("b")})

    async def work() -> None:
        reader = PageReader(web.ask, Kept(), ExtractionHere())
        await asyncio.gather(*(reader.read(url) for url in pages), *(reader.read("http://b.com/x?") for _ in range(3)))

    run_virtually(work())
    assert web.peak["web/a.com"] == 1
    assert [call.extra for call in web.asked if call.input in pages] == [{CRAWL_DELAY_S: 20.0}] * 5
    assert all(CRAWL_DELAY_S not in (call.extra or {}) for call in web.asked if call.input not in pages)


def test_a_page_has_twelve_seconds_for_all_its_hops() -> None:
    chain = {f"http://a.com/{number}": moved(f"/{number + 1}", took_s=3.5) for number in range(5)}
    web = ScriptedWeb(chain)
    (page,) = read(web, "http://a.com/0")
    assert (page.status, page.detail) == ("timeout", "its redirects and their hosts' rules took more than 12 s")
    assert [(call.extra or {}).get(WITHIN_S) for call in web.asked[1:]] == [None, 8.5, 5.0, 1.5]


def test_rules_and_hops_share_the_twelve_seconds_whoever_read_the_rules() -> None:
    # A host's rules count once a page.
    slow = Answer(b"User-agent: *\nAllow: /", content_type="text/plain", took_s=4.0)
    hosts = [f"http://{name}.com" for name in "abcde"]
    web = ScriptedWeb({f"{host}/robots.txt": slow for host in hosts})
    web.pages |= {f"{here}/": moved(f"{there}/") for here, there in pairwise(hosts)}
    web.pages |= {"http://a.com/1": moved("/2"), "http://a.com/2": said("There.")}
    first, short = read(web, "http://a.com/", "http://a.com/1")
    assert first.status == "timeout" and first.final_url == "http://c.com/" and "http://c.com/" not in web.urls
    assert short.status == "ok"
    judged = {call.input: (call.extra or {}).get(WITHIN_S) for call in web.asked}
    assert judged["http://a.com/1"] == pytest.approx(8.0, abs=0.5)
    assert judged["http://a.com/2"] == pytest.approx(7.9, abs=0.5)


def test_one_hosts_rules_have_five_seconds_for_all_their_redirects() -> None:
    chain = {f"http://a.com/r{number}": moved(f"/r{number + 1}", took_s=2.0) for number in range(5)}
    web = ScriptedWeb({RULES: moved("/r0", took_s=2.0), **chain})
    (page,) = read(web, URL)
    assert page.status == "disallowed" and page.detail.endswith("its redirects took more than 5 s")
    assert [(call.extra or {}).get(WITHIN_S) for call in web.asked] == [5.0, 3.0, 1.0]


def test_a_hop_that_was_tried_twice_counts_for_its_first_attempt_too() -> None:
    first = Answer(status=302, location="/1", took_s=1.0, attempts=2)
    web = ScriptedWeb({"http://a.com/0": first, "http://a.com/1": said("There.")})
    assert read(web, "http://a.com/0")[0].status == "ok"
    assert web.asked[-1].extra == {WITHIN_S: 9.0}


def test_a_text_is_found_once_for_a_body_and_type_whoever_asks_and_when() -> None:
    twins = {"http://a.com/1": said("Same."), "http://b.com/2": said("Same."), "http://c.com/3": said("Other.")}
    web, kept = ScriptedWeb(twins), Kept()

    async def work() -> list[int]:
        extraction = ExtractionHere()
        reader = PageReader(web.ask, kept, extraction)
        await asyncio.gather(*(reader.read(url) for url in (*twins, *twins)))
        counts = [len(extraction.extracted)]
        again = ExtractionHere()
        pages = [await PageReader(web.ask, kept, again).read(url) for url in twins]
        assert all("." in page.text for page in pages)
        return [*counts, len(again.extracted)]

    assert run_virtually(work()) == [2, 0]


def test_what_was_kept_and_can_not_be_read_is_found_again() -> None:
    web, kept = ScriptedWeb({URL: said("Ferries."), RULES: rules("User-agent: *\nDisallow: /no")}), Kept()
    read(web, URL, kept=kept)
    assert len(kept.values) == 2
    for key in kept.values:
        kept.values[key] = b"\xc1 damaged"
    assert read(web, URL, kept=kept)[0].status == "ok"


def test_a_document_of_the_corpus_has_no_host_to_ask() -> None:
    web = ScriptedWeb({"corpus:a/b.html": said("A document.")})
    page, missing = read(web, "corpus:a/b.html", "corpus:none")
    assert (page.status, page.final_url, len(page.keys)) == ("ok", "corpus:a/b.html", 1)
    assert missing.status == "unreachable"
    assert web.urls == ["corpus:a/b.html", "corpus:none"]


def test_a_run_that_has_to_stop_stops_here_too() -> None:
    def stop(call: Call) -> None:
        if call.input == URL:
            raise Stopped([Stop("web/a.com", "interrupted", "stopped by the test")])

    web = ScriptedWeb({URL: said("Ferries.")}, stop)
    with pytest.raises(Stopped):
        read(web, URL)


def test_pages_that_are_not_there_are_not_remembered_as_anything_else() -> None:
    web = ScriptedWeb({URL: NOT_FOUND})
    first, second = read(web, URL, URL)
    assert first == second and web.urls == [RULES, URL, URL]
