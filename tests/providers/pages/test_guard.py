"""The guard: what is refused before any name is looked up, and what an allowance covers."""

from __future__ import annotations

import pytest

from millstream.providers.pages.guard import ConnectionTarget, Guard, HostAllowance, PageRefusal, parse_allowed
from millstream.providers.pages.urls import parse_url


def way(url: str, *allowed: str) -> ConnectionTarget:
    return Guard(tuple(parse_allowed(one) for one in allowed)).way_to(parse_url(url))


NEVER_PUBLIC = """
http://localhost/ http://LOCALHOST./ http://a.localhost/ http://printer.local/ http://intranet/
http://x.internal/ http://metadata.google.internal/ http://127.0.0.1/ http://[::1]/ http://10.1.2.3/
http://169.254.169.254/latest http://example.com:22/ http://example.com:25/ http://example.com:6379/
http://example.com:11211/ http://8.8.8.8:53/
"""


@pytest.mark.parametrize("url", NEVER_PUBLIC.split())
def test_what_can_not_be_a_public_page_is_refused_before_any_lookup(url: str) -> None:
    with pytest.raises(PageRefusal):
        way(url)


@pytest.mark.parametrize(
    "url", ["http://example.com/", "https://example.com:8443/", "http://8.8.8.8:8080/", "http://a.b/"]
)
def test_a_public_host_is_held_against_its_address_later(url: str) -> None:
    assert not way(url).is_free


def test_an_allowed_host_is_free_at_its_port_alone() -> None:
    assert way("http://localhost:8000/", "localhost:8000").is_free
    assert way("http://127.0.0.1:9/", "127.0.0.1").is_free
    assert way("http://localhost:25/", "localhost").is_free
    for url, allowed in (
        ("http://localhost:8001/", "localhost:8000"),
        ("http://localhost/", "localhost:8000"),
        ("http://x.localhost/", "localhost"),
        ("http://localhost/", "*.localhost"),
        ("http://127.0.0.2/", "127.0.0.1"),
        ("https://localhost/", "localhost:80"),
    ):
        with pytest.raises(PageRefusal):
            way(url, allowed)


def test_pages_of_an_allowed_name_are_taken_from_the_address_beside_it() -> None:
    assert way("http://a.example/x", "*.example=127.0.0.1:8000") == ConnectionTarget("127.0.0.1", 8000, True, True)
    assert way("https://b.example:81/", "b.example:81=[::1]:8443") == ConnectionTarget("::1", 8443, True, True)
    assert way("http://b.example/", "b.example:81=[::1]:8443") == ConnectionTarget("b.example", 80, False, False)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("localhost", HostAllowance("localhost")),
        ("LOCALHOST:80", HostAllowance("localhost", 80)),
        ("a.example:443", HostAllowance("a.example", 443)),
        ("[::1]:99", HostAllowance("::1", 99)),
        ("*.a.example", HostAllowance("*.a.example")),
        (" a.example=127.0.0.1:80 ", HostAllowance("a.example", None, "127.0.0.1", 80)),
        ("*.a:1=[::1]:2", HostAllowance("*.a", 1, "::1", 2)),
    ],
)
def test_an_allowance_is_read(text: str, allowed: HostAllowance) -> None:
    assert parse_allowed(text) == allowed


# fmt: off
NO_ALLOWANCES = [
    "", "*", "*.", "a/b", "http://a", "a=b:80", "a=127.0.0.1", "a=[::1]", "a=127.0.0.1:0", "a:x", "a:0",
    "a=1.1.1.1:1/x", "u@a", "a b", "*.127.0.0.1", "*.1", "a=", "a=127.0.0.1:80=x", "*a.example", "a?", "a#",
]
# fmt: on


@pytest.mark.parametrize("text", NO_ALLOWANCES)
def test_what_is_no_allowance_is_told_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="must be") as refused:
        parse_allowed(text)
    assert "\n" not in str(refused.value)
