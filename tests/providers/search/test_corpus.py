"""The corpus as an endpoint: searches and documents without a network, and never on the loop."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.engine.call import Call, Outcome, Reply
from millstream.engine.endpoint import EncodeError, Fault, send
from millstream.engine.fault import LocalFault
from millstream.engine.key import key_of
from millstream.providers.search.bm25 import TextIndex
from millstream.providers.search.corpus import Corpus, CorpusEndpoint, CorpusSearch
from millstream.providers.search.documents import CorpusError
from millstream.providers.search.joined import search

PAGES = {
    "a.html": "<title>Blue whale</title><p>The blue whale is the largest animal.",
    "b.txt": "Sea\n\nThe sea is blue, and no whale sings in this one.",
    "c.md": "# Land\n\nNothing here.",
}


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text)
    return Corpus(tmp_path)


async def replied(endpoint: CorpusSearch | CorpusEndpoint, call: Call) -> Reply:
    reply = endpoint.decode(await send(endpoint, endpoint.encode(call)))
    assert isinstance(reply, Reply), reply
    return reply


def asked(endpoint: CorpusSearch | CorpusEndpoint, model: str, text: str, **extra: int) -> Reply:
    return asyncio.run(replied(endpoint, Call(model, text, extra=extra or None)))


def test_a_search_finds_documents_with_rank_address_title_and_snippet(corpus: Corpus) -> None:
    reply = asked(CorpusSearch(corpus), "search/corpus", "largest blue whale")
    assert [(hit.rank, hit.url, hit.title) for hit in reply.hits] == [
        (1, "corpus:a.html", "Blue whale"),
        (2, "corpus:b.txt", "Sea"),
    ]
    assert "largest animal" in reply.hits[0].snippet
    assert (reply.finish_reason, reply.text) == ("stop", "")
    assert asked(CorpusSearch(corpus), "search/corpus", "submarine").hits == ()


def test_a_snippet_stands_around_what_was_asked(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("title\n" + "word " * 500 + "the whale sings " + "word " * 500)
    (hit,) = asked(CorpusSearch(Corpus(tmp_path)), "search/corpus", "whale").hits
    assert "the whale sings" in hit.snippet and len(hit.snippet) <= 320 and hit.snippet.startswith("word")


def test_pages_of_results_are_joined_to_the_same_ranking(tmp_path: Path) -> None:
    for number in range(250):
        (tmp_path / f"{number:03}.txt").write_text("whale " * (250 - number) + "sea " * number)
    endpoint = CorpusSearch(Corpus(tmp_path))

    async def ask(call: Call) -> Outcome:
        return Outcome(call, await replied(endpoint, call), key=f"{dict(call.extra or {})}")

    found = asyncio.run(search(ask, "search/corpus", "whale", 150))
    assert [hit.url for hit in found.hits] == [f"corpus:{number:03}.txt" for number in range(150)]
    assert [hit.rank for hit in found.hits] == list(range(1, 151)) and len(found.keys) == 2
    second = asked(endpoint, "search/corpus", "whale", count=2, page=2)
    assert [hit.url for hit in second.hits] == ["corpus:002.txt", "corpus:003.txt"]
    assert (second.finish_reason, asked(endpoint, "search/corpus", "whale", count=50, page=5).finish_reason) == (
        "more",
        "stop",
    )
    few = asyncio.run(search(ask, "search/corpus", "whale", 20))
    assert (few.hits, len(few.keys)) == (found.hits[:20], 1)


def test_a_documents_address_gives_its_bytes(corpus: Corpus) -> None:
    fetched = asked(CorpusEndpoint(corpus), "web", "corpus:a.html").fetched
    assert fetched is not None
    assert (fetched.status, fetched.content_type, fetched.encoding, fetched.location) == (200, "text/html", "", None)
    assert fetched.body == PAGES["a.html"].encode()


@pytest.mark.parametrize(
    "name",
    ["none.txt", "../a.html", "./a.html", "/etc/passwd", "..", "", "A.HTML", "%2e%2e/x", "file:///etc/passwd", "x\x00"],
)
def test_no_other_address_gives_anything(corpus: Corpus, name: str) -> None:
    endpoint = CorpusEndpoint(corpus)
    fault = endpoint.decode(asyncio.run(send(endpoint, endpoint.encode(Call("web", f"corpus:{name}")))))
    assert isinstance(fault, Fault) and (fault.kind, fault.action, fault.status) == ("rejected", "never", 404)


def test_another_corpus_has_other_keys_and_the_same_one_elsewhere_has_the_same(tmp_path: Path) -> None:
    def keys(name: str, text: str) -> list[bytes]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text(text)
        corpus = Corpus(tmp_path / name)
        calls = [
            CorpusSearch(corpus).encode(Call("search/corpus", "q", extra={"count": 20})),
            CorpusSearch(corpus).encode(Call("search/corpus", "q", extra={"count": 20, "page": 2})),
            CorpusSearch(corpus).encode(Call("search/corpus", "r", extra={"count": 20})),
            CorpusEndpoint(corpus).encode(Call("web", "corpus:x.txt")),
            CorpusEndpoint(corpus).encode(Call("web", "corpus:y.txt")),
        ]
        return [key_of(request, 0) for request in calls]

    here, there, other = keys("here", "one"), keys("there", "one"), keys("other", "two")
    assert here == there and len({*here, *other}) == 10


def test_what_a_corpus_can_not_be_asked_is_refused(corpus: Corpus) -> None:
    for call in (
        Call("search/corpus", ""),
        Call("search/corpus", "q", extra={"count": 101}),
        Call("search/corpus", "q", extra={"language": "de"}),
    ):
        with pytest.raises(EncodeError):
            CorpusSearch(corpus).encode(call)
    for url in ("https://a.example/", "", "CORPUS:a.html"):
        with pytest.raises(EncodeError, match="begins with corpus:"):
            CorpusEndpoint(corpus).encode(Call("web", url))
    with pytest.raises(EncodeError, match="JSON"):
        CorpusEndpoint(corpus).encode(Call("web", "corpus:\ud800"))


def test_an_answer_cut_at_any_byte_is_never_one(corpus: Corpus) -> None:
    endpoint = CorpusSearch(corpus)
    response = asyncio.run(send(endpoint, endpoint.encode(Call("search/corpus", "blue whale"))))
    for cut in range(len(response.body)):
        fault = endpoint.decode(type(response)(200, response.body[:cut]))
        assert isinstance(fault, Fault) and fault.kind == "bad_json"
    assert json.loads(response.body)["total"] == 2


@pytest.mark.parametrize("act", ["search", "read"])
def test_a_corpus_that_changes_under_a_run_stops_it(corpus: Corpus, act: str) -> None:
    (corpus.folder / "a.html").write_text("<title>Red whale</title>")
    endpoint: CorpusSearch | CorpusEndpoint = CorpusSearch(corpus) if act == "search" else CorpusEndpoint(corpus)
    call = Call("search/corpus", "whale") if act == "search" else Call("web", "corpus:a.html")
    with pytest.raises(LocalFault, match="has changed"):
        asyncio.run(send(endpoint, endpoint.encode(call)))


def test_the_index_is_made_at_the_first_search_once_and_apart_from_the_loop(tmp_path: Path) -> None:
    for number in range(400):
        (tmp_path / f"{number}.txt").write_text(f"whale {number} " + "sea land sky " * 400)
    threads: list[int] = []
    indexes: list[TextIndex] = []

    class Watched(Corpus):
        def index(self) -> TextIndex:
            threads.append(threading.get_ident())
            indexes.append(super().index())
            return indexes[-1]

    watched = Watched(tmp_path)
    assert "400 documents, not indexed" in repr(watched)
    late: list[float] = []

    async def tick(is_over: Callable[[], bool]) -> None:
        while not is_over():
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            late.append(time.perf_counter() - began)

    async def run() -> None:
        endpoint = CorpusSearch(watched)
        calls = [asyncio.ensure_future(replied(endpoint, Call("search/corpus", f"whale {n}"))) for n in range(8)]
        await tick(lambda: all(call.done() for call in calls))
        assert [call.result().hits[0].url for call in calls] == [f"corpus:{n}.txt" for n in range(8)]

    asyncio.run(run())
    assert "400 documents, indexed" in repr(watched)
    assert len(indexes) == 8 and len({id(index) for index in indexes}) == 1
    assert len(set(threads)) == 1 and threads[0] != threading.get_ident()
    assert len(late) > 8 and sorted(late)[len(late) // 2] < 0.05


def test_a_search_that_is_given_up_takes_no_other_with_it(corpus: Corpus) -> None:
    async def run() -> Reply:
        endpoint = CorpusSearch(corpus)
        given_up = asyncio.ensure_future(replied(endpoint, Call("search/corpus", "whale")))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        return await replied(endpoint, Call("search/corpus", "whale"))

    assert len(asyncio.run(run()).hits) == 2
    corpus.close()


def test_a_corpus_that_is_closed_does_not_go_on_indexing(corpus: Corpus) -> None:
    corpus.close()
    with pytest.raises(CorpusError, match="was closed"):
        corpus.index()
