"""Every way in which official clients send a key, at the gateway's door."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import anthropic
import httpx
import openai
import pytest
from google import genai
from google.genai import errors, types
from google.oauth2.credentials import Credentials
from served import HELLO, PROVIDERS_KEY, TOKEN, Served

MODEL = "recorded/model"
TALK: Any = [{"role": "user", "content": HELLO}]


def by_openai(gateway: Served, token: str) -> str:
    with openai.OpenAI(api_key=token, base_url=gateway.base_url) as client:
        return client.chat.completions.create(model=MODEL, messages=TALK).choices[0].message.content or ""


def by_azure(gateway: Served, token: str) -> str:
    with openai.AzureOpenAI(api_key=token, azure_endpoint=gateway.origin, api_version="2024-10-21") as client:
        return client.chat.completions.create(model="azure-word", messages=TALK).choices[0].message.content or ""


def by_anthropic(gateway: Served, **key: str) -> str:
    with anthropic.Anthropic(base_url=gateway.origin, **key) as client:  # type: ignore[arg-type]
        block: Any = client.messages.create(model=MODEL, max_tokens=200, messages=TALK).content[0]
        return str(block.text)


def by_genai(gateway: Served, **key: Any) -> str:
    with closing(genai.Client(http_options=types.HttpOptions(base_url=gateway.origin), **key)) as client:
        return client.models.generate_content(model=MODEL, contents=HELLO).text or ""


def by_vertex(gateway: Served, token: str) -> str:
    made: Any = Credentials
    return by_genai(gateway, vertexai=True, project="some-project", location="global", credentials=made(token=token))


def by_address(gateway: Served, token: str) -> str:
    body = {"contents": [{"parts": [{"text": HELLO}]}]}
    url = f"{gateway.origin}/v1beta/models/{MODEL}:generateContent"
    answer = httpx.post(url, params={"key": token}, json=body)
    answer.raise_for_status()
    return str(answer.json()["candidates"][0]["content"]["parts"][0]["text"])


WAYS: dict[str, Callable[[Served, str], str]] = {
    "Authorization of OpenAI's": by_openai,
    "api-key of Azure's": by_azure,
    "x-api-key of Anthropic's": lambda gateway, token: by_anthropic(gateway, api_key=token),
    "Authorization of Anthropic's": lambda gateway, token: by_anthropic(gateway, auth_token=token),
    "x-goog-api-key of Google's": lambda gateway, token: by_genai(gateway, api_key=token, vertexai=False),
    "Authorization of Vertex AI's": by_vertex,
    "a key in the address": by_address,
}
REFUSED = (openai.AuthenticationError, anthropic.AuthenticationError, errors.ClientError, httpx.HTTPStatusError)


@pytest.mark.parametrize("way", WAYS)
def test_the_right_key_is_read_and_stays_here_and_a_wrong_one_is_refused(gateway: Served, way: str) -> None:
    sent = gateway.recorder.sent
    sent.clear()
    assert WAYS[way](gateway, TOKEN).startswith("position <<A>>")
    assert [(one.headers["authorization"], TOKEN in f"{one}") for one in sent] == [(f"Bearer {PROVIDERS_KEY}", False)]
    for token in ("token-of-nobody", f"{TOKEN}x", PROVIDERS_KEY):
        with pytest.raises(REFUSED) as raised:
            WAYS[way](gateway, token)
        error: Any = raised.value
        response = error.response
        assert response.status_code == 401
        assert token not in response.text
    assert len(sent) == 1
