"""One model at one address with one set of credentials, as the engine wants it: a protocol over the transport.

Secrets are struck out of whatever comes back, before anything is decoded, cut or stored. Nothing here knows a
protocol, or what kind of credentials there are.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import quote

from msgspec import structs

from ..engine.call import Call, Reply
from ..engine.endpoint import Fault, Request, Response, SendError
from ..engine.limits import Limit
from .authorizer import Authorizer
from .limits import limits_of
from .llm.protocol import Target, WireProtocol
from .transport import Channel, Transport

USER_AGENT = "millstream/0.1"
# A shorter key is a word that a local server is given because it asks for one, and words stand in answers.
SECRET_MIN = 12
_STRUCK = b"[key]"


class ModelEndpoint:
    """A model behind one wire protocol."""

    def __init__(
        self, protocol: WireProtocol, target: Target, authorizer: Authorizer, transport: Transport, timeout_s: float
    ) -> None:
        self._protocol = protocol
        self._target = target
        self._authorizer = authorizer
        self._secrets: tuple[str, ...] = ()
        self._forms: tuple[bytes, ...] = ()
        self._learn_secrets()
        headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT}
        headers |= {**protocol.headers(target), **target.headers, **(authorizer.fixed or {})}
        self._is_fixed = authorizer.fixed is not None
        self._channel = Channel(transport, headers, timeout_s)

    def __repr__(self) -> str:
        return f"<ModelEndpoint {self._target.model} at {self._target.base_url}, {self._protocol.kind}>"

    @property
    def base_url(self) -> str:
        return self._target.base_url

    def encode(self, call: Call) -> Request:
        return self._protocol.encode(call, self._target)

    async def send(self, request: Request) -> Response:
        try:
            if self._is_fixed:
                response = await self._channel.send(request)
            else:
                response = await self._channel.send(request, await self._made_anew(request))
        except SendError as error:
            raise SendError(structs.replace(error.fault, detail=self._struck(error.fault.detail))) from None
        if response.status == 401:
            self._authorizer.refused()
        return self._without_secrets(response)

    def decode(self, response: Response) -> Reply | Fault:
        return self._protocol.decode(response)

    def limits(self, response: Response) -> tuple[Limit, ...]:
        return limits_of(response.headers, time.time(), self._target.provider)

    async def _made_anew(self, request: Request) -> Mapping[str, str]:
        try:
            return await self._authorizer.headers(request)
        finally:
            self._learn_secrets()

    def _learn_secrets(self) -> None:
        secrets = self._authorizer.secrets
        if secrets is not self._secrets:
            self._secrets = secrets
            found = [form for secret in secrets if len(secret) >= SECRET_MIN for form in _forms_of(secret)]
            self._forms = tuple(form.encode() for form in dict.fromkeys(found))

    def _without_secrets(self, response: Response) -> Response:
        """A server may echo what it was sent."""
        body = response.body
        for form in self._forms:
            body = body.replace(form, _STRUCK)
        if body is response.body and not response.headers:
            return response
        headers = {name: self._struck(value) for name, value in response.headers.items()}
        return structs.replace(response, body=body, headers=headers)

    def _struck(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form.decode(), _STRUCK.decode())
        return text


def _forms_of(key: str) -> tuple[str, ...]:
    """A secret as it is, and as it would stand in a URL's query, its path, or in base64."""
    return (key, quote(key, safe=""), quote(key), b64encode(key.encode()).decode().rstrip("="))
