"""Six wire formats: what is asked, what a whole answer is, and every fault in each engine's own words."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_shapes import ERRORS, ROWS, SHAPES, Error, body, decoded, encoded, fault_in, reply_in, searxng, target

from millstream.engine.call import Call, Hit, Message, Reply
from millstream.engine.endpoint import EncodeError, Fault
from millstream.providers.search.table import ENGINES

in_each = pytest.mark.parametrize("name", ENGINES)
HITS = tuple(Hit(rank, row["url"], row["title"], row["snippet"]) for rank, row in enumerate(ROWS, 1))


def asked_by_url(name: str, query: str = "blue whale", **extra: Any) -> dict[str, str]:
    request = encoded(name, query, **extra)
    assert (request.method, request.wire) == ("GET", b"")
    return {key: values[0] for key, values in parse_qs(urlsplit(request.url).query).items()}


# --- what is asked ---


def test_brave_is_asked_for_web_pages_without_marks_and_pages_are_counted_from_nought() -> None:
    assert asked_by_url("brave", count=20, page=3, country="DE") == {
        "q": "blue whale",
        "count": "20",
        "offset": "2",
        "country": "DE",
        "result_filter": "web",
        "text_decorations": "false",
    }


def test_what_the_caller_sets_for_an_engine_goes_before_what_we_would_say() -> None:
    assert asked_by_url("brave", text_decorations=True)["text_decorations"] == "true"
    assert json.loads(encoded("exa", contents={"text": True}).body)["contents"] == {"text": True}


def test_serper_tavily_and_exa_are_asked_in_json() -> None:
    assert json.loads(encoded("serper", count=10, page=2, gl="de").body) == {
        "q": "blue whale",
        "num": 10,
        "page": 2,
        "gl": "de",
    }
    assert json.loads(encoded("tavily", count=20).body) == {"query": "blue whale", "max_results": 20}
    highlights = {"highlights": True}
    assert json.loads(encoded("exa", count=20).body) == {
        "query": "blue whale",
        "numResults": 20,
        "contents": highlights,
    }
    assert {encoded(name).url for name in ("serper", "tavily", "exa")} == {
        "https://google.serper.dev/search",
        "https://api.tavily.com/search",
        "https://api.exa.ai/search",
    }


def test_searxng_is_asked_for_json_and_not_for_a_number_that_it_does_not_know() -> None:
    assert asked_by_url("searxng", count=20, page=2, language="de") == {
        "q": "blue whale",
        "format": "json",
        "pageno": "2",
        "language": "de",
    }


@pytest.mark.parametrize(
    ("query", "sent"),
    [("!!g whale", "g whale"), (":de whale", "de whale"), ("<3 whale !ba", "3 whale ba"), ("a<b 5:3 wow! !", None)],
)
def test_no_word_of_a_query_is_a_command_to_searxng(query: str, sent: str | None) -> None:
    assert asked_by_url("searxng", query)["q"] == (query if sent is None else sent)


def test_google_reckons_in_results_and_is_told_whose_search_engine_it_is() -> None:
    asked = asked_by_url("google", count=10, page=2)
    assert asked == {"q": "blue whale", "cx": "cx-1", "num": "10", "start": "11"}
    assert asked_by_url("google", count=5, page=3)["start"] == "11"
    assert asked_by_url("google", page=3)["start"] == "21"
    with pytest.raises(EncodeError, match="GOOGLE_CSE_ID"):
        ENGINES["google"].protocol.encode(Call("search/google", "q"), target("brave"))


@in_each
def test_what_was_not_set_is_neither_sent_nor_part_of_the_key(name: str) -> None:
    plain, first = encoded(name), encoded(name, page=1)
    assert (plain.body, plain.identity, plain.url) == (first.body, first.identity, first.url)
    assert b"page" not in plain.body and b"count" not in plain.body and b"num" not in plain.body.lower()


@in_each
def test_every_part_of_the_question_is_part_of_the_key(name: str) -> None:
    asked = [encoded(name), encoded(name, "blue whales"), encoded(name, language="de")]
    assert len({request.body for request in asked}) == 3
    if ENGINES[name].reach.pages_max > 1:
        assert encoded(name, page=2).body not in {request.body for request in asked}


@in_each
@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"input": (Message("user", "q"),)}, "messages"),
        ({"input": " \n "}, "empty"),
        ({"temperature": 0.0}, "takes no temperature"),
        ({"extra": {"count": 0}}, "from 1 to"),
        ({"extra": {"count": 101}}, "from 1 to"),
        ({"extra": {"count": True}}, "from 1 to"),
        ({"extra": {"page": 11}}, "from 1 to"),
        ({"extra": {"q": "x", "query": "x"}}, "can't set"),
        ({"extra": {"odd": object()}}, "odd|can't be written"),
    ],
)
def test_what_an_engine_can_not_be_asked_is_refused_with_the_reason(name: str, call: Any, said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        ENGINES[name].protocol.encode(Call(f"search/{name}", **{"input": "q", **call}), target(name))


def test_a_query_is_cut_to_what_the_engine_takes_in_whole_words() -> None:
    words = [f"word{number}" for number in range(60)]
    assert asked_by_url("brave", " ".join(words))["q"].split() == words[:50]
    long = json.loads(encoded("tavily", "x" * 390 + " yyyyyyyyy zz").body)["query"]
    assert long == "x" * 390 + " yyyyyyyyy"
    assert json.loads(encoded("tavily", "x" * 500).body)["query"] == "x" * 400
    assert json.loads(encoded("exa", "x" * 5_000).body)["query"] == "x" * 5_000


@in_each
def test_a_query_with_half_a_sign_is_asked_all_the_same(name: str) -> None:
    assert "\\ud" not in encoded(name, "whale \ud83d and 🐋").body.decode()


# --- whole answers ---


@in_each
def test_all_engines_give_the_same_fields(name: str) -> None:
    reply = reply_in(name, body(name))
    assert reply.hits == HITS
    assert (reply.text, reply.usage, reply.raw, reply.refused) == ("", None, None, False)


@in_each
def test_an_answer_cut_at_any_byte_is_never_one(name: str) -> None:
    whole = body(name)
    for cut in range(len(whole)):
        fault = fault_in(name, whole[:cut])
        assert (fault.kind, fault.action, fault.is_billed_maybe) == ("bad_json", "retry", True)


@in_each
def test_an_honestly_empty_answer_is_one(name: str) -> None:
    assert reply_in(name, body(name, [], has_more=False)).hits == ()


@in_each
@pytest.mark.parametrize("said", ["{}", '{"results": {}}', '{"web": 1, "query": {}}', "[]", "null", '"x"', "7"])
def test_a_body_without_results_is_none(name: str, said: str) -> None:
    assert fault_in(name, said.encode()).kind == "bad_json"


@pytest.mark.parametrize(
    ("name", "more", "last"),
    [
        ("brave", "more", "stop"),
        ("google", "more", "stop"),
        ("tavily", "stop", "stop"),
        ("exa", "stop", "stop"),
        ("serper", None, None),
        ("searxng", None, None),
    ],
)
def test_whether_there_is_another_page_is_told_where_the_engine_tells_it(
    name: str, more: str | None, last: str | None
) -> None:
    assert reply_in(name, body(name, has_more=True)).finish_reason == more
    assert reply_in(name, body(name, has_more=False)).finish_reason == last


@in_each
def test_bytes_that_are_no_utf_8_are_replaced_and_kept(name: str) -> None:
    said = body(name).replace(b"Title 1", b"Ti\xfftle 1")
    reply = reply_in(name, said)
    assert (reply.hits[0].title, reply.raw) == ("Ti�tle 1", said)


def test_searxngs_silent_engines_are_a_remark_beside_results_and_a_failure_without() -> None:
    silent = [["bad", "timeout"], ["worse", "Suspended: too many requests"], ["odd"]]
    some = json.dumps(searxng(list(ROWS), has_more=False, silent=silent)).encode()
    assert reply_in("searxng", some).text == (
        "engines without an answer: bad (timeout), worse (Suspended: too many requests), odd"
    )
    none = json.dumps(searxng([], has_more=False, silent=silent)).encode()
    fault = fault_in("searxng", none)
    assert (fault.kind, fault.action, fault.is_billed_maybe) == ("search_failed", "retry", False)
    assert "bad (timeout)" in fault.detail


# --- faults ---


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: f"{error.engine}: {error.name}")
def test_an_error_has_the_meaning_that_the_engine_gives_it(error: Error) -> None:
    fault = fault_in(error.engine, error.body, error.status)
    assert (fault.kind, fault.action) == (error.kind, error.action), fault
    assert "<" not in fault.detail


@pytest.mark.parametrize(
    "error", [one for one in ERRORS if one.engine in ("brave", "google", "exa")], ids=lambda e: f"{e.engine}: {e.name}"
)
def test_an_error_within_200_is_never_an_answer(error: Error) -> None:
    fault = fault_in(error.engine, error.body)
    if error.engine == "exa" and error.name in ("wrong key", "too fast", "wrong parameter", "overloaded"):
        assert fault.kind in ("rejected", "server_error")  # its body names no status
    else:
        assert (fault.kind, fault.action) == (error.kind, error.action), fault


@in_each
@pytest.mark.parametrize(
    ("status", "kind", "action", "is_billed_maybe"),
    [
        (401, "rejected", "confirm", False),
        (402, "rate_limited", "stop", False),
        (403, "rejected", "confirm", False),
        (404, "rejected", "never", False),
        (413, "rejected", "never", False),
        (429, "rate_limited", "throttle", False),
        (500, "server_error", "retry", False),
        (502, "server_error", "retry", True),
        (503, "server_error", "retry", False),
        (504, "server_error", "retry", True),
        (529, "server_error", "retry", False),
        (302, "redirect", "stop", False),
    ],
)
def test_a_status_alone_means_what_it_means_for_models(
    name: str, status: int, kind: str, action: str, is_billed_maybe: bool
) -> None:
    for text in (b"", b"<html><body>Bad Gateway</body></html>", b'{"error": {}}', b"\xff{"):
        fault = fault_in(name, text, status)
        assert (fault.kind, fault.action, fault.is_billed_maybe) == (kind, action, is_billed_maybe), text
        assert fault.detail.startswith(str(status)) or status == 402
        assert "--base-url" not in fault.detail


@in_each
def test_a_server_that_fails_is_no_empty_account_whatever_it_says(name: str) -> None:
    fault = fault_in(name, b'{"message": "usage limit reached", "statusCode": 500}', 500)
    assert (fault.kind, fault.action) == ("server_error", "retry")


@in_each
def test_how_long_to_wait_is_taken_from_the_header(name: str) -> None:
    fault = fault_in(name, b"{}", 429, retry_after="7")
    assert (fault.action, fault.retry_after_s, fault.cuts_rate) == ("throttle", 7.0, False)


def test_whoever_is_refused_by_google_hears_that_its_search_ends() -> None:
    closed = next(one for one in ERRORS if one.name == "closed to newcomers")
    assert "2027-01-01" in fault_in("google", closed.body, closed.status).detail


# --- anything ---

_NAMES = [
    *("results", "web", "organic", "items", "url", "link", "title", "highlights", "unresponsive_engines"),
    *("error", "detail", "message", "statusCode", "code", "meta", "quota_limit", "quota_current", "status", "tag"),
    *("query", "kind", "queries", "searchInformation"),
]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(_NAMES),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@in_each
@settings(max_examples=60, deadline=None)
@given(said=_JSON, status=st.sampled_from([200, 400, 403, 422, 429, 500]))
def test_no_body_breaks_an_engines_reader(name: str, said: Any, status: int) -> None:
    result = decoded(name, json.dumps(said).encode(), status)
    assert isinstance(result, Fault) or (status == 200 and isinstance(result, Reply))
    assert SHAPES.keys() == ENGINES.keys()
