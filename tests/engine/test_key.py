"""The key of a call: pinned for ever, and moved by every field that makes another question."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from millstream.engine.endpoint import Request
from millstream.engine.key import KEY_VERSION, key_of

REQUEST = Request(
    url="https://api.example.com/v1/chat/completions",
    identity="https://api.example.com/v1/chat/completions",
    body=b'{"messages":[{"content":"Say A or B.","role":"user"}],"model":"m"}',
    wire=b"whatever goes over the wire",
    prompt=b"Say A or B.",
    params=b"{}",
)


def test_a_known_call_has_the_key_it_always_had() -> None:
    """A change of this value empties every cache there is: raise KEY_VERSION and say so in the changelog."""
    assert KEY_VERSION == 1
    assert key_of(REQUEST, 3).hex() == "42db288804b2a01f4e5c6d01b118c98f0cd798d2457f67e086f9024fcca6a3ce"


def test_the_key_is_the_sha256_of_version_endpoint_body_and_sample() -> None:
    text = "millstream key 1\0" + REQUEST.identity + "\0" + REQUEST.body.decode() + "\0" + "3"
    assert key_of(REQUEST, 3) == hashlib.sha256(text.encode()).digest()


def test_endpoint_body_and_sample_each_make_another_key() -> None:
    keys = {
        key_of(REQUEST, 0),
        key_of(REQUEST, 1),
        key_of(REQUEST, 10),
        key_of(structs.replace(REQUEST, identity="mylab"), 0),
        key_of(structs.replace(REQUEST, body=REQUEST.body + b" "), 0),
    }
    assert len(keys) == 5


def test_address_wire_form_and_streaming_do_not() -> None:
    for same in (
        structs.replace(REQUEST, url="http://127.0.0.1:8000/v1"),
        structs.replace(REQUEST, wire=b"other"),
        structs.replace(REQUEST, stream=True),
        structs.replace(REQUEST, prompt=b"", params=b""),
    ):
        assert key_of(same, 3) == key_of(REQUEST, 3)


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
questions = st.tuples(texts, texts, st.integers(0, 120))


@given(questions, questions)
def test_no_two_questions_run_together_into_one(one: tuple[str, str, int], other: tuple[str, str, int]) -> None:
    keys = [
        key_of(structs.replace(REQUEST, identity=identity, body=body.encode()), sample)
        for identity, body, sample in (one, other)
    ]
    assert (keys[0] == keys[1]) == (one == other)
