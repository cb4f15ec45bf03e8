"""The engine's endpoint for one model at one address with one set of credentials: a protocol over the transport.

Secrets are removed from every response before it is decoded, cut or stored; an answer that holds one in pieces is
rejected. Knows no protocol in particular, and no kind of credentials.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import orjson
from msgspec import structs

from ...engine.call import Call, Reply
from ...engine.content import Part, ToolCall, texts_in
from ...engine.endpoint import Attempt, EncodeError, Fault, Receiver, Request, Response
from ...engine.limits import Limit
from ..credentials.authorizer import Authorizer
from ..llm.protocol import Target, WireProtocol
from ..llm.request_form import RequestForm, form_of, parameters_of, plain_prompt_of
from .rate_limit_headers import limits_of
from .secrets import SPELLED_OUT, Secrets

if TYPE_CHECKING:
    from .exchange import Channel
    from .transport import Transport

USER_AGENT = "millstream/0.1"
# A run has a few forms of calls; one with a seed of its own for each call has as many as calls.
_FORMS_KEPT = 64
# The wire protocols whose servers have a path in their address, mostly /v1.
_UNDER_V1 = ("openai", "openai-responses", "openai-completions")


class ModelEndpoint:
    """The endpoint of one model: encodes calls, sends them with credentials, and decodes responses without secrets.
    Without a transport it encodes and decodes only."""

    def __init__(
        self,
        protocol: WireProtocol,
        target: Target,
        authorizer: Authorizer,
        transport: Transport | None = None,
        timeout_s: float = 0.0,
    ) -> None:
        self._protocol = protocol
        self._target = target
        self._forms: dict[object, RequestForm] = {}
        self._secrets = Secrets(authorizer.secrets)
        headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT}
        headers |= {**protocol.headers(target), **target.headers, **(authorizer.fixed or {})}
        self._has_decoded = False
        self._channel: Channel | None = None
        if transport is not None:
            from .exchange import Channel  # here, since loading aiohttp takes longer than all of this

            self._channel = Channel(transport, headers, timeout_s, authorizer, self._secrets, protocol.listen)

    def __repr__(self) -> str:
        return f"<ModelEndpoint {self._target.model} at {self._target.base_url}, {self._protocol.kind}>"

    @property
    def base_url(self) -> str:
        return self._target.base_url

    def encode(self, call: Call) -> Request:
        text = plain_prompt_of(call) if self._protocol.is_verbatim else None
        if text is None:
            return self._encoded(call)
        parameters = parameters_of(call)
        form = self._forms.get(parameters)
        if form is not None:
            try:
                return form.filled(orjson.dumps(text))
            except orjson.JSONEncodeError:
                pass  # the protocol's encoder says what is wrong
        request = self._encoded(call)
        if (form := form_of(request, orjson.dumps(text))) is not None:
            if len(self._forms) >= _FORMS_KEPT:
                self._forms.clear()
            self._forms[parameters] = form
        return request

    def _encoded(self, call: Call) -> Request:
        if self._target.extra:
            call = structs.replace(call, extra={**self._target.extra, **(call.extra or {})})
        try:
            return self._protocol.encode(call, self._target)
        except (TypeError, ValueError, AttributeError, LookupError, RecursionError) as error:
            # A value in this call that can't be written fails this call alone, not the run.
            raise EncodeError(f"the call to {call.model} can't be written ({type(error).__name__}: {error})") from error

    def begin(self, request: Request, receiver: Receiver) -> Attempt:
        if self._channel is None:
            raise RuntimeError(f"{self} has no transport to send by")
        return self._channel.begin(request, receiver)

    def decode(self, response: Response) -> Reply | Fault:
        result = self._protocol.decode(response)
        if isinstance(result, Fault):
            return self._secrets.struck_fault(result if result.status != 404 else self._with_path_advice(result))
        self._has_decoded = True
        if (
            self._secrets.are_in(result.text)
            or ((result.citations or result.hits) and self._is_in_a_source(result))
            or (result.parts and any(map(self._secrets.are_in, _all_texts(result.parts))))
        ):
            # Its bytes hold the secret in pieces: a search for the whole does not find it, but a reader can join them.
            return SPELLED_OUT
        return result

    def limits(self, response: Response) -> tuple[Limit, ...]:
        return limits_of(response.headers, time.time(), self._target.provider)

    def _with_path_advice(self, fault: Fault) -> Fault:
        """Adds advice to a 404 from an address that lacks the path of OpenAI's API, unless it has answered before."""
        url = self._target.base_url
        if self._has_decoded or self._protocol.kind not in _UNDER_V1 or urlsplit(url).path.strip("/"):
            return fault
        advice = f"has no path: try {url.rstrip('/')}/v1"
        if self._channel is not None:
            self._channel.transport.unanswered.note_path(f"{url} answers 404, and {advice}")
        return structs.replace(fault, detail=f"{fault.detail} ({url} {advice})")

    def _is_in_a_source(self, reply: Reply) -> bool:
        cited = (f"{one.url} {one.title}" for one in reply.citations)
        hits = (f"{one.url} {one.title} {one.snippet}" for one in reply.hits)
        return any(map(self._secrets.are_in, (*cited, *hits)))


def _all_texts(parts: tuple[Part, ...]) -> Iterator[str]:
    """Yields every text of an answer's parts, ids of tool calls included."""
    yield from texts_in(parts)
    for part in parts:
        if isinstance(part, ToolCall):
            yield part.id
            if part.native is not None:
                yield from texts_in((part.native,))
