"""What is asked and what came: immutable, checked when made, and a failure is never a text."""

from __future__ import annotations

import msgspec
import pytest

from millstream.engine.call import Call, Failure, Message, Outcome, Reply, Usage


def test_a_bare_prompt_is_one_user_message() -> None:
    assert list(Call("a/b", "hi").messages()) == [Message("user", "hi")]
    turns = (Message("system", "be brief"), Message("user", "hi"))
    assert tuple(Call("a/b", turns).messages()) == turns


def test_nothing_is_set_that_was_not_asked_for() -> None:
    call = Call("a/b", "hi")
    unset = (call.temperature, call.max_tokens, call.top_p, call.stop, call.seed, call.extra, call.tag)
    newer = (call.reasoning_effort, call.json_schema, call.logprobs)
    assert unset + newer == (None,) * 10 and call.trial == 0 and call.stream is False


@pytest.mark.parametrize("name", ["model", "input", "temperature", "trial", "tag"])
def test_a_call_can_not_be_changed(name: str) -> None:
    with pytest.raises(AttributeError, match="immutable"):
        setattr(Call("a/b", "hi"), name, None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": "gpt-4o"}, r"model 'gpt-4o' must be provider/model, as in openai/gpt-6-luna"),
        ({"trial": -1}, r"trial \(-1\) must be >= 0"),
        ({"max_tokens": 0}, r"max_tokens \(0\) must be >= 1"),
        ({"temperature": -0.1}, r"temperature \(-0\.1\) must be >= 0"),
        ({"logprobs": -1}, r"logprobs \(-1\) must be >= 0, the number of alternatives for each token"),
    ],
)
def test_what_can_not_be_asked_is_refused_with_what_came_and_what_is_allowed(
    fields: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Call(**{"model": "a/b", "input": "hi", **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": "gemini/\ud800"}, r"model 'gemini/\ud800' must be text that UTF-8 can hold"),
        ({"model": 3}, "model must be text; came 3, a int"),
        ({"input": None}, "input must be text, or a list of messages; came None, a NoneType"),
        ({"input": ({"role": "user"},)}, "a message of the role user must have content; came ['role']"),
        ({"max_tokens": "9"}, "max_tokens must be a whole number; came '9', a str"),
        ({"max_tokens": 9.5}, "max_tokens must be a whole number; came 9.5, a float"),
        ({"max_tokens": True}, "max_tokens must be a whole number; came True, a bool"),
        ({"temperature": "hot"}, "temperature must be a number; came 'hot', a str"),
        ({"top_p": "x" * 1_000}, "top_p must be a number; came 'xxx"),
        ({"stop": "x"}, "stop must be a tuple of texts; came 'x', a str"),
        ({"stop": (1,)}, "stop must be a tuple of texts"),
        ({"seed": 1.5}, "seed must be a whole number; came 1.5, a float"),
        ({"extra": [1]}, "extra must be a mapping of names to values; came [1], a list"),
        ({"json_schema": "x"}, "json_schema must be a mapping of names to values; came 'x', a str"),
        ({"logprobs": True}, "logprobs must be a whole number; came True, a bool"),
        ({"reasoning_effort": 3}, "reasoning_effort must be text; came 3, a int"),
        ({"stream": "yes"}, "stream must be True or False; came 'yes', a str"),
        ({"trial": "1"}, "trial must be a whole number; came '1', a str"),
        ({"trial": 2**80}, "trial (1208925819614629174706176) must be <= 9223372036854775807"),
    ],
)
def test_what_is_of_another_kind_is_refused_where_it_is_made_in_one_line(
    fields: dict[str, object], message: str
) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        Call(**{"model": "a/b", "input": "hi", **fields})  # type: ignore[arg-type]
    assert message in str(refused.value)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 160


@pytest.mark.parametrize(("role", "content"), [("user", None), (1, "x")])
def test_a_message_is_of_texts(role: object, content: object) -> None:
    with pytest.raises(TypeError, match=r"a message's (role|content) must be text"):
        Message(role, content)  # type: ignore[arg-type]


def test_lists_are_kept_as_tuples() -> None:
    turns, stop = [Message("user", "hi")], ["x"]
    call = Call("a/b", turns, stop=stop)
    turns.clear()
    stop.clear()
    assert (call.input, call.stop) == ((Message("user", "hi"),), ("x",))


def test_the_web_needs_no_provider() -> None:
    assert Call("web", "https://example.com").model == "web"


def test_the_status_of_an_outcome_is_ok_refused_or_the_kind_of_failure() -> None:
    call = Call("a/b", "hi")
    assert Outcome(call, reply=Reply("A")).status == "ok"
    assert Outcome(call, reply=Reply("", refused=True)).status == "refused"
    assert Outcome(call, failure=Failure("timeout", "no answer within 600 s")).status == "timeout"


def test_a_usage_is_written_with_its_parts_only_where_there_are_any() -> None:
    assert msgspec.json.encode(Usage(0, 0)) == b'{"input":0,"output":0}'
    assert msgspec.json.encode(Usage(9, 5, 3, 2)) == b'{"input":9,"output":5,"reasoning":3,"cached_input":2}'
    assert msgspec.json.decode(b'{"input":9,"output":5}', type=Usage) == Usage(9, 5)


@pytest.mark.parametrize(("reason", "truncated"), [("length", True), ("stop", False), (None, False)])
def test_only_a_reply_that_ran_out_of_tokens_is_truncated(reason: str | None, truncated: bool) -> None:
    assert Reply("A", finish_reason=reason).truncated is truncated
