"""URLs: one spelling for each, no second reading of any, and where a redirect leads."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from millstream.providers.pages.urls import URL_MAX, UrlError, WebUrl, join_url, parse_url


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("http://example.com", "http://example.com/"),
        ("  HTTPS://Example.COM:443/A?b=C#d ", "https://example.com/A?b=C"),
        ("http://example.com:80", "http://example.com/"),
        ("http://example.com:", "http://example.com/"),
        ("http://example.com:8080?q", "http://example.com:8080/?q"),
        ("https://example.com./x", "https://example.com/x"),
        ("http://münchen.example/ü ü?ß=%C3%A9", "http://xn--mnchen-3ya.example/%C3%BC%20%C3%BC?%C3%9F=%C3%A9"),
        ("http://example.com/a/./b/../c/%2E%2e/d/.", "http://example.com/a/d/"),
        ("http://example.com/../../x", "http://example.com/x"),
        ("http://example.com/a\\b", "http://example.com/a%5Cb"),
        ("http://a_b.example.com/%zz", "http://a_b.example.com/%zz"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://0177.0.0.01/", "http://127.0.0.1/"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://127.0.0.1./", "http://127.0.0.1/"),
        ("http://１２７．０．０．１/", "http://127.0.0.1/"),
        ("http://127。0。0。1/", "http://127.0.0.1/"),
        ("http://ⓛocalhost/", "http://localhost/"),
        ("http://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
        ("http://[0:0::1]:8080/", "http://[::1]:8080/"),
    ],
)
def test_a_url_has_one_spelling(text: str, spelling: str) -> None:
    assert parse_url(text).text == spelling


REFUSED = """
ftp://example.com/ file:///etc/passwd gopher://example.com/ data:text/html,x javascript:alert(1) dict://x:11211/
//example.com/ example.com /path http:example.com http:/example.com http:\\\\example.com http:// http:///x
http://?q http://user@example.com/ http://user:pass@example.com/ http://example.com\\@127.0.0.1/
http://example.com%2f/ http://%31%32%37.0.0.1/ http://127.0.0.1%00.example.com/ http://example.com:99999/
http://example.com:0/ http://example.com:8o/ http://example.com:-1/ http://example.com:٨٠/ http://[::1/
http://[::1]x/ http://[fe80::1%25eth0]/ http://[::1%lo]/ http://[127.0.0.1]/ http://1.2.3.4.5/ http://256.1.1.1/
http://1.1.1.256/ http://4294967296/ http://09.1.1.1/ http://a..b/ http://-a.com/ http://.example.com/
http://example.com../ http://*/ http://exa$mple.com/ http://exa<mple.com/ blob:http://x/ view-source:http://x/
jar:http://x!/ ws://x/ HTTP1://x/
"""
REFUSED_TOO = [
    *["", "   ", "http://exa mple.com/", "http://example.com/\n/x", "http://exam\tple.com/", "http://e\x00.com/"],
    *["http://example.com/" + "a" * URL_MAX, "http://" + "a" * 64 + ".com/", "http://" + "a." * 130 + "com/"],
]


@pytest.mark.parametrize("text", [*REFUSED.split(), *REFUSED_TOO])
def test_what_could_be_read_in_two_ways_is_refused(text: str) -> None:
    with pytest.raises(UrlError):
        parse_url(text)


@given(st.text(max_size=60) | st.from_regex(r"https?://[a-zA-Z0-9.\[\]:%@\\/?#-]{1,40}", fullmatch=True))
@example("http://a/%2e%2E/..%2f?%")
@example("http://a/\ud800")
def test_a_spelling_is_read_as_itself(text: str) -> None:
    try:
        found = parse_url(text)
    except UrlError:
        return
    assert parse_url(found.text) == found
    assert found.text.isascii() and found.text.isprintable()


BASE = parse_url("https://example.com/a/b?c")


@pytest.mark.parametrize(
    ("location", "leads_to"),
    [
        ("/x", "https://example.com/x"),
        ("x", "https://example.com/a/x"),
        ("?y", "https://example.com/a/b?y"),
        ("//other.example/z", "https://other.example/z"),
        ("http://other.example", "http://other.example/"),
        (" /with space ", "https://example.com/with%20space"),
        ("/\udce9", "https://example.com/%EF%BF%BD"),
        ("/\udcc3\udca9", "https://example.com/%C3%A9"),
        ("\\\\127.0.0.1\\x", "https://example.com/a/%5C%5C127.0.0.1%5Cx"),
        ("#part", "https://example.com/a/b?c"),
    ],
)
def test_a_redirect_leads_where_a_browser_goes_or_to_the_same_host(location: str, leads_to: str) -> None:
    assert join_url(BASE, location).text == leads_to


@pytest.mark.parametrize(
    "location", ["ftp://x/", "http://[::1", "http://a@b/", "javascript:1", "http:\\\\x", "file:///x"]
)
def test_a_redirect_to_what_is_no_web_page_is_refused(location: str) -> None:
    with pytest.raises(UrlError):
        join_url(BASE, location)


def test_the_rules_for_robots_stand_at_the_origin() -> None:
    assert parse_url("https://Example.com:8443/a/b?c").robots == "https://example.com:8443/robots.txt"
    assert parse_url("http://[2a00::1]/x").robots == "http://[2a00::1]/robots.txt"
    assert WebUrl("http", "a", 81, "/").authority == "a:81"
