"""A transcript holds each message once, in a tree, and reads as the conversations that it is made from."""

from __future__ import annotations

import pytest
from msgspec import structs

import millstream as ms
from millstream.bench.task.messages import messages_in
from millstream.bench.task.transcript import AskedCall, Transcript, transcript_of
from millstream.engine.call import Call, Outcome, Reply
from millstream.engine.content import ToolCall, ToolResult


def answered(talk: list[ms.Message | Reply], reply: Reply) -> AskedCall:
    call = Call("lab/good", messages_in(talk))
    return AskedCall(call, "subject", outcome=Outcome(call, reply=reply, key=f"key of {reply.text}"))


def forked() -> Transcript:
    """A question, and two that go on from its answer."""
    question, first = ms.user("One?"), Reply("one")
    calls = [answered([question], first)]
    calls += [answered([question, first, ms.user(f"{word}?")], Reply(word)) for word in ("Two", "Three")]
    return transcript_of(calls)


def test_branches_of_a_conversation_share_what_came_before_them() -> None:
    transcript = forked()
    told = [(message.content, message.after) for message in transcript.messages]
    assert told == [("One?", None), ("one", 0), ("Two?", 1), ("Two", 2), ("Three?", 1), ("Three", 4)]
    assert [(call.input, call.reply) for call in transcript.calls] == [(0, 1), (2, 3), (4, 5)]
    assert transcript.conversation() == "user: One?\n\nassistant: one\n\nuser: Three?"
    assert "[call 3 begins with 2 messages of the one before]\n\nuser: Three?" in str(transcript)


def test_results_of_tools_stand_between_their_request_and_what_is_asked_next() -> None:
    wanted = tuple(ToolCall(f"c{n}", "look", "{}") for n in range(3))
    asking = Reply("", parts=wanted)
    results = [ms.Message("tool", (ToolResult(call.id, call.id, "look", is_error=call.id == "c1"),)) for call in wanted]
    tools = [AskedCall(call, result=result) for call, result in zip(wanted, results, strict=True)]
    tools.append(AskedCall(ToolCall("c3", "hangs")))
    first = answered([ms.user("Look.")], asking)
    transcript = transcript_of([first, *tools, answered([ms.user("Look."), asking, *results], Reply("seen"))])
    assert [message.after for message in transcript.messages] == [None, 0, 1, 2, 3, 4]
    assert [call.status for call in transcript.calls[1:5]] == ["ok", "failed", "ok", "unanswered"]
    assert transcript.calls[-1].input == transcript.calls[3].reply == 4


@pytest.mark.parametrize(
    ("messages", "call", "says"),
    [
        ({"after": 5}, {}, "messages that are not in it"),
        ({}, {"input": 6}, "messages that are not in it"),
        ({}, {"reply": -1}, "messages that are not in it"),
        ({}, {"key": "another"}, "not those of its keys"),
    ],
)
def test_a_transcript_that_contradicts_itself_is_named(
    messages: dict[str, int], call: dict[str, int | str], says: str
) -> None:
    whole = forked()
    keys = [each.key for each in whole.calls]
    assert whole.wrong_in(keys) is None
    forged = structs.replace(
        whole,
        messages=(structs.replace(whole.messages[0], **messages), *whole.messages[1:]),
        calls=(structs.replace(whole.calls[0], **call), *whole.calls[1:]),
    )
    assert says in str(forged.wrong_in(keys))
