"""One question to a gateway by each of the official clients for Python, whole or streamed."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
from google import genai
from google.genai import types
from served import HELLO


def by_chat(origin: str, token: str, streamed: bool, **given: Any) -> str:
    with openai.OpenAI(api_key=token, base_url=f"{origin}/v1") as client:
        answer: Any = client.chat.completions.create(
            messages=[{"role": "user", "content": HELLO}], stream=streamed, **given
        )
        if streamed:
            return "".join(choice.delta.content or "" for chunk in answer for choice in chunk.choices)
        return str(answer.choices[0].message.content)


def by_responses(origin: str, token: str, streamed: bool, **given: Any) -> str:
    with openai.OpenAI(api_key=token, base_url=f"{origin}/v1") as client:
        answer: Any = client.responses.create(input=HELLO, stream=streamed, **given)
        return str((list(answer)[-1].response if streamed else answer).output_text)


def by_anthropic(origin: str, token: str, streamed: bool, **given: Any) -> str:
    with anthropic.Anthropic(api_key=token, base_url=origin) as client:
        asked: Any = {"max_tokens": 200, "messages": [{"role": "user", "content": HELLO}], **given}
        if streamed:
            with client.messages.stream(**asked) as events:
                return events.get_final_text()
        return str(client.messages.create(**asked).content[0].text)


def by_genai(origin: str, token: str, streamed: bool, **given: Any) -> str:
    options = types.HttpOptions(base_url=origin, extra_body=given.pop("extra_body", None))
    with genai.Client(api_key=token, vertexai=False, http_options=options) as client:
        if streamed:
            return "".join(one.text or "" for one in client.models.generate_content_stream(contents=HELLO, **given))
        return client.models.generate_content(contents=HELLO, **given).text or ""
