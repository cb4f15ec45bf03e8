"""An endpoint and its transport for one test, and one call through it without an engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from millstream.engine.call import Call, Reply
from millstream.engine.endpoint import Fault, SendError, send
from millstream.providers.credentials.authorizer import Authorizer, bearer
from millstream.providers.llm.openai import chat as openai_chat
from millstream.providers.llm.protocol import Target, WireProtocol
from millstream.providers.transport.endpoint import ModelEndpoint
from millstream.providers.transport.transport import Transport

CANARY = "sk-canary/7f+3a=9d2e1b8c4e5f60718293a4b5c6"


@asynccontextmanager
async def transport() -> AsyncIterator[Transport]:
    opened = Transport()
    try:
        yield opened
    finally:
        await opened.close()


def endpoint(
    over: Transport,
    base_url: str,
    *,
    timeout_s: float = 5.0,
    fault: str = "",
    protocol: WireProtocol = openai_chat.PROTOCOL,
    authorizer: Authorizer | None = None,
    model: str = "steady",
) -> ModelEndpoint:
    """`fault` is asked of the simulated provider by a header, as no other call is."""
    target = Target(base_url, "sim", model, "sim", headers={"X-Sim-Fault": fault} if fault else {})
    return ModelEndpoint(protocol, target, authorizer or bearer(CANARY), over, timeout_s)


async def ask(at: ModelEndpoint, prompt: str = "hi", *, stream: bool = False) -> Reply | Fault:
    """One attempt, whatever comes of it."""
    request = at.encode(Call("sim/steady", prompt, stream=stream))
    try:
        return at.decode(await send(at, request))
    except SendError as error:
        return error.fault


def text_of(result: Reply | Fault) -> str:
    assert isinstance(result, Reply), result
    return result.text


def fault_in(result: Reply | Fault) -> Fault:
    assert isinstance(result, Fault), result
    return result
