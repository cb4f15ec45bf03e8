"""One address with one key, as the engine wants it: a protocol's encode and decode over the transport.

The only place where a key is held; nothing here prints, stores or hashes it, and it is struck out of
whatever an answer says about a fault.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, structs

from ..engine.call import Call, Reply
from ..engine.endpoint import Fault, Request, Response, SendError
from .llm import openai_chat
from .transport import Transport

USER_AGENT = "millstream/0.1"


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
        self._key = key
        self._transport = transport
        self._timeout_s = timeout_s
        self._headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT, **address.headers}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"

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
            return await self._transport.post(request, self._headers, self._timeout_s)
        except SendError as error:
            raise SendError(self._without_key(error.fault)) from None

    def decode(self, response: Response) -> Reply | Fault:
        result = openai_chat.decode(response)
        return self._without_key(result) if isinstance(result, Fault) else result

    def _without_key(self, fault: Fault) -> Fault:
        if self._key and self._key in fault.detail:
            return structs.replace(fault, detail=fault.detail.replace(self._key, "[key]"))
        return fault
