"""One address with one key, as the engine wants it: a protocol's encode and decode over the transport.

The only place where a key is held; nothing here prints, stores or hashes it, and it is struck out of
whatever comes back.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import quote

from msgspec import Struct, structs

from ..engine.call import Call, Reply
from ..engine.endpoint import Fault, Request, Response, SendError
from .llm import openai_chat
from .transport import Channel, Transport

USER_AGENT = "millstream/0.1"
# A shorter key is a word that a local server is given because it asks for one, and words stand in answers.
SECRET_MIN = 12
_STRUCK = "[key]"


class Address(Struct, frozen=True):
    """Where a provider is reached. `identity` stands for the address in keys of calls."""

    base_url: str
    identity: str
    max_tokens_name: str = "max_tokens"
    headers: Mapping[str, str] = {}


class ChatEndpoint:
    """A model behind an OpenAI-compatible address."""

    def __init__(self, address: Address, model: str, key: str | None, transport: Transport, timeout_s: float) -> None:
        self._address = address
        self._model = model
        self._secrets = _forms(key) if key is not None and len(key) >= SECRET_MIN else ()
        headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT, **address.headers}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        self._channel = Channel(transport, headers, timeout_s)

    def __repr__(self) -> str:
        return f"<ChatEndpoint {self._model} at {self._address.base_url}>"

    @property
    def base_url(self) -> str:
        return self._address.base_url

    def encode(self, call: Call) -> Request:
        return openai_chat.encode(
            call,
            self._model,
            base_url=self._address.base_url,
            identity=self._address.identity,
            max_tokens_name=self._address.max_tokens_name,
        )

    async def send(self, request: Request) -> Response:
        try:
            response = await self._channel.post(request)
        except SendError as error:
            raise SendError(structs.replace(error.fault, detail=self._struck(error.fault.detail))) from None
        return self._without_key(response)

    def decode(self, response: Response) -> Reply | Fault:
        return openai_chat.decode(response)

    def _without_key(self, response: Response) -> Response:
        """Struck out before anything is decoded, cut or stored: a server may echo what it was sent."""
        body = response.body
        for secret in self._secrets:
            body = body.replace(secret.encode(), _STRUCK.encode())
        if body is response.body and not response.headers:
            return response
        headers = {name: self._struck(value) for name, value in response.headers.items()}
        return structs.replace(response, body=body, headers=headers)

    def _struck(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, _STRUCK)
        return text


def _forms(key: str) -> tuple[str, ...]:
    """A key as it is, and as it would stand in a URL's query, its path, or in base64."""
    forms = (key, quote(key, safe=""), quote(key), b64encode(key.encode()).decode().rstrip("="))
    return tuple(dict.fromkeys(forms))
