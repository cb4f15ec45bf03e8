"""An address is shown without its user, its password, the values of its query and its fragment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.engine.page_urls import NO_ADDRESS, shown_address, with_shown_addresses

SECRET = "canary9d2e1b8c4e5f"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("https://{region}-aiplatform.googleapis.com", "https://{region}-aiplatform.googleapis.com"),
        ("http://u:SECRET@h:8/v1?key=SECRET&SECRET#SECRET", "http://***@h:8/v1?key=***&***#***"),
        ("http://SECRET@h", "http://***@h"),
        ("http://u:SEC@RET@h/v1", "http://***@h/v1"),
        ("http://u:SEC/RET@h/v1", "http://***@h/v1"),
        ("http://u:SEC?RET@h/v1", "http://***@h/v1"),
        ("http://u:SEC#RET@h/v1", "http://***@h/v1"),
        ("http://h/?a=SECRET=SECRET", "http://h/?a=***"),
        ("http://h/#SECRET?SECRET", "http://h/#***"),
        ("http://h/v1;token=SECRET=SECRET;x/a;b=SECRET", "http://h/v1;token=***;x/a;b=***"),
        ("redis://:SECRET@h/0", "redis://***@h/0"),
        ("u:SECRET@h/v1", NO_ADDRESS),
        ("SECRET", NO_ADDRESS),
        ("", NO_ADDRESS),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert shown_address(url) == shown


@given(st.text("abc:/?#@&=%+ é", max_size=12), st.text("abc:/?#&=%+", max_size=12))
def test_no_password_and_no_value_is_shown_whatever_stands_beside_it(before: str, after: str) -> None:
    for url in (f"http://{before}:{SECRET}{after}@host/v1", f"http://host/v1?{after.replace('=', '')}={SECRET}"):
        assert SECRET not in shown_address(url)


def test_addresses_within_a_text_are_shown_the_same_way() -> None:
    text = f'moved to "http://u:{SECRET}@h/v1?key={SECRET}" and (https://h/{{x}}); a://b'
    assert with_shown_addresses(text) == 'moved to "http://***@h/v1?key=***" and (https://h/{x}); a://b'
    assert with_shown_addresses("rules: none / any") == "rules: none / any"
