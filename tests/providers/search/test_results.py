"""What becomes of titles, snippets and addresses, however hostile."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hostile import hostile
from search_shapes import body, reply_in

from millstream.providers.search.results import SNIPPET_MAX, TITLE_MAX, address, plain
from millstream.providers.search.table import ENGINES

TEXTS = {
    "<strong>Blue</strong> whale": "Blue whale",
    "un<b>break</b>able": "unbreakable",
    "one<br>two<p>three</p>four": "one two three four",
    "Tom &amp; Jerry &#39;s &quot;x&quot; &lt;3": 'Tom & Jerry \'s "x" <3',
    "&lt;b&gt;twice&lt;/b&gt; &amp;amp;": "twice &amp;",
    "List<String> a < b and c > d": "List<String> a < b and c > d",
    "if x<y then <b>z": "if x<y then z",
    "<b <i>odd</i>": "<b odd",
    "<if<b>rame src=x>in</iframe>": "in",
    " much \n\t space \u00a0 here ": "much space here",
    "a\x00b\x1b[31mred\u202egnp\u202c": "a b [31mred gnp",
    "<!-- hidden -->seen": "seen",
    "half \ud83d sign": "half � sign",
    "&#xd800;&#x110000;&unknown;": "��&unknown;",
}


@pytest.mark.parametrize(("said", "read"), TEXTS.items())
def test_a_text_becomes_what_a_person_would_read(said: str, read: str) -> None:
    assert plain(said, 100) == read


@pytest.mark.parametrize("value", [None, 7, ["a"], {"a": "b"}, True])
def test_what_is_no_text_is_none(value: Any) -> None:
    assert plain(value, 100) == ""


def test_a_megabyte_is_cut_at_once() -> None:
    began = time.process_time()
    for text in ("x" * 1_000_000, "<b>" * 300_000, "<" * 1_000_000, "<!" * 500_000, "&" * 1_000_000, "<b " * 300_000):
        assert len(plain(text, TITLE_MAX)) <= TITLE_MAX
        assert len(plain(text, SNIPPET_MAX)) <= SNIPPET_MAX
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example",
        "https://a.example/x?y=1#z",
        "HTTPS://A.example:8443/",
        "https://ünïcode.example/ä",
        "http://[2001:db8::1]/x",
    ],
)
def test_an_address_of_a_page_is_kept_as_it_is(url: str) -> None:
    assert address(f"  {url}\n") == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "javascript:alert(1)",
        "data:text/html,x",
        "ftp://a.example/x",
        "file:///x",
        "corpus:x",
        "//a.example/x",
        "/x",
        "http://",
        "http:///x",
        "http://a.example:0/",
        "http://a.example:x/",
        "http://[::1",
        "http://a.example/a b",
        "http://a.example/\x00",
        "http://a.example/\ud800",
        "http://a.example/\u202e",
        "http://a.example/" + "x" * 9_000,
        None,
        7,
        ["http://a.example"],
    ],
)
def test_what_no_reader_could_follow_is_no_address(url: Any) -> None:
    assert address(url) is None


@pytest.mark.parametrize("name", ENGINES)
def test_results_without_an_address_are_left_out_and_told(name: str) -> None:
    good = {"url": "https://a.example/", "title": "Good", "snippet": "s"}
    bad = [{"url": url, "title": "t", "snippet": "s"} for url in (None, "javascript:alert(1)", 7)]
    reply = reply_in(name, body(name, [bad[0], good, *bad[1:]]))
    assert [(hit.rank, hit.url, hit.title) for hit in reply.hits] == [(1, "https://a.example/", "Good")]
    assert reply.text == "3 of 4 results without an address of a page left out"


@pytest.mark.parametrize("name", ENGINES)
def test_no_hostile_text_breaks_a_result_or_leaves_a_tag_in_it(name: str) -> None:
    given = [{"url": "https://a.example/", "title": text, "snippet": text} for text in hostile()]
    reply = reply_in(name, json.dumps(json.loads(body(name, given))).encode())
    assert len(reply.hits) == len(given)
    for hit in reply.hits:
        assert len(hit.title) <= TITLE_MAX and len(hit.snippet) <= SNIPPET_MAX
        for text in (hit.title, hit.snippet):
            assert text.isprintable() or re.fullmatch(r"[^\x00-\x1f\x7f-\x9f]*", text), text
            assert re.search(r"</?(?:b|img|script|svg|iframe|a|i)(?:\s[^<>]*)?>", text) is None, text
