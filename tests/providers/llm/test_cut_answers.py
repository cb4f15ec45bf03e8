"""An answer that was cut off before its first word is whole, truncated and empty, in every provider's words."""

from __future__ import annotations

import anthropic_shapes
import bedrock_shapes
import chat_shapes
import gemini_shapes
import orjson
import pytest
import response_shapes

from millstream.engine.call import Reply
from millstream.engine.endpoint import Response
from millstream.providers.llm.anthropic import messages as anthropic
from millstream.providers.llm.bedrock import converse as bedrock
from millstream.providers.llm.google import generate as gemini
from millstream.providers.llm.openai import chat as openai_chat
from millstream.providers.llm.openai import completions as openai_completions
from millstream.providers.llm.openai import responses as openai_responses
from millstream.providers.llm.protocol import WireProtocol

THOUGHT = {"completion_tokens": 100, "prompt_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 100}}
CUT = chat_shapes.choice(finish_reason="length", message={"role": "assistant", "content": ""})
SILENT = chat_shapes.choice(finish_reason="length", message={"role": "assistant", "content": None})
INCOMPLETE = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
COMPLETION = {"choices": [{"index": 0, "text": "", "finish_reason": "length"}], "usage": {"prompt_tokens": 9}}
THINKING = {"type": "thinking", "thinking": "Well", "signature": "c2ln"}
REASONING = {"reasoningContent": {"reasoningText": {"text": "Well"}}}


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        (openai_chat.PROTOCOL, chat_shapes.whole(choices=CUT, usage=THOUGHT)),
        (openai_chat.PROTOCOL, chat_shapes.whole(choices=SILENT, usage=THOUGHT)),
        (openai_completions.PROTOCOL, orjson.dumps(COMPLETION)),
        (openai_responses.PROTOCOL, response_shapes.whole(output=[response_shapes.REASONING], **INCOMPLETE)),
        (openai_responses.PROTOCOL, response_shapes.whole(output=[], **INCOMPLETE)),
        (anthropic.PROTOCOL, anthropic_shapes.whole(content=[THINKING], stop_reason="max_tokens")),
        (anthropic.PROTOCOL, anthropic_shapes.whole(content=[], stop_reason="max_tokens")),
        (gemini.PROTOCOL, gemini_shapes.whole({"index": 0, "finishReason": "MAX_TOKENS"})),
        (gemini.PROTOCOL, gemini_shapes.whole(gemini_shapes.candidate("", "MAX_TOKENS"))),
        (bedrock.PROTOCOL, bedrock_shapes.whole(REASONING, stop="max_tokens")),
        (bedrock.PROTOCOL, bedrock_shapes.whole({"text": ""}, stop="max_tokens")),
    ],
)
def test_a_cut_answer_without_a_word_is_whole_and_truncated(protocol: WireProtocol, body: bytes) -> None:
    reply = protocol.decode(Response(200, body))
    assert isinstance(reply, Reply), reply
    assert (reply.text, reply.truncated, reply.refused, reply.is_cut_empty) == ("", True, False, True)
