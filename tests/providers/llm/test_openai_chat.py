"""OpenAI's chat completions as bytes: what is sent, and what a key is made of."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torture import times

from millstream.engine.call import Call, Message
from millstream.engine.endpoint import EncodeError, Request
from millstream.engine.key import key_of
from millstream.providers.llm.openai.chat import encode
from millstream.providers.llm.protocol import Target

URL = "http://127.0.0.1:8000/v1"
MODEL = "openai/gpt-4o-mini"


def encoded(call: Call, *, base_url: str = URL, identity: str = URL, **known: Any) -> Request:
    provider, _, model = call.model.partition("/")
    return encode(call, Target(base_url, identity, model, provider, **known))


# --- what is sent ---


def test_everything_that_was_set_is_sent_in_the_order_of_the_alphabet() -> None:
    call = Call(
        MODEL,
        (Message("system", "Be brief."), Message("user", "Ä ✓")),
        temperature=0.5,
        max_tokens=100,
        top_p=1,
        stop=("\n", "END"),
        seed=7,
        extra={"zeta": {"b": 1, "a": [None, True]}, "logprobs": False},
        trial=9,
        tag="never sent",
    )
    assert encoded(call).body.decode() == (
        '{"logprobs":false,"max_tokens":100,"messages":[{"content":"Be brief.","role":"system"},'
        '{"content":"Ä ✓","role":"user"}],"model":"gpt-4o-mini","seed":7,"stop":["\\n","END"],'
        '"temperature":0.5,"top_p":1.0,"zeta":{"a":[null,true],"b":1}}'
    )


def test_the_callers_own_stream_options_are_kept() -> None:
    call = Call(MODEL, "x", stream=True, extra={"stream_options": {"include_usage": False}})
    assert orjson.loads(encoded(call).wire)["stream_options"] == {"include_usage": False}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (Call(MODEL, "x", seed=2**70), "can't be written as JSON"),
        (Call(MODEL, "x", extra={"stream": True}), "can't set stream"),
        (Call(MODEL, "x", extra={"model": "m", "messages": []}), "can't set messages, model"),
    ],
)
def test_a_call_that_json_or_the_protocol_can_not_hold_is_refused_before_it_is_sent(call: Call, said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        encoded(call)


# --- the key ---


def test_the_key_of_a_known_call_never_changes() -> None:
    request = encoded(Call(MODEL, "Say A or B.", temperature=0, max_tokens=100))
    body = (
        b'{"max_tokens":100,"messages":[{"content":"Say A or B.","role":"user"}],'
        b'"model":"gpt-4o-mini","temperature":0.0}'
    )
    by_hand = hashlib.sha256(
        b"millstream key 1\0" + b"http://127.0.0.1:8000/v1/chat/completions\0" + body + b"\0" + b"3"
    )
    assert key_of(request, 3).hex() == by_hand.hexdigest()
    assert key_of(request, 3).hex() == "8f17894ef6c0cfcad811c8ac29c6490b6e9563e2f8051860495de3c1e4ed5fba"


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_NUMBER = st.floats(0, 2, allow_nan=False).map(lambda number: number + 0.0)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=5,
)
_INPUT = _TEXT | st.lists(st.builds(Message, st.sampled_from(["system", "user"]), _TEXT), min_size=1, max_size=3).map(
    tuple
)
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "model": _TEXT.map(lambda name: f"any/{name}"),
    "input": _INPUT,
    "temperature": st.none() | _NUMBER,
    "max_tokens": st.none() | st.integers(1, 10_000),
    "top_p": st.none() | _NUMBER,
    "stop": st.none() | st.lists(_TEXT, max_size=3).map(tuple),
    "seed": st.none() | st.integers(-(2**63), 2**63 - 1),
    "extra": st.none() | st.dictionaries(_TEXT.map(lambda name: f"x_{name}"), _JSON, min_size=1, max_size=3),
    "trial": st.integers(0, 10_000),
    "reasoning_effort": st.none() | st.sampled_from(["none", "low", "high"]),
    "json_schema": st.none() | st.dictionaries(_TEXT, _JSON, max_size=3),
    "logprobs": st.none() | st.integers(0, 20),
}


def meaning(call: Call) -> str:
    """What a call asks, so that two spellings of one question are seen to be one."""
    messages = [(one.role, one.content) for one in call.messages()]
    extra = None if call.extra is None else orjson.dumps(call.extra, option=orjson.OPT_SORT_KEYS)
    fields = (call.model, messages, call.temperature, call.max_tokens, call.top_p, call.stop, call.seed, extra)
    schema = None if call.json_schema is None else orjson.dumps(call.json_schema)
    return repr((*fields, call.trial, call.reasoning_effort, schema, call.logprobs))


@settings(max_examples=times(200, 2_000), deadline=None)
@given(st.fixed_dictionaries(_FIELDS), st.sampled_from(sorted(_FIELDS)), st.data())
def test_every_field_that_changes_the_question_changes_the_key(
    fields: dict[str, Any], changed: str, data: st.DataObject
) -> None:
    one = Call(**fields)
    other = Call(**{**fields, changed: data.draw(_FIELDS[changed], label=changed)})
    same = key_of(encoded(one), one.trial) == key_of(encoded(other), other.trial)
    assert same == (meaning(one) == meaning(other))
