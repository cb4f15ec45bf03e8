"""A loop whose clock can be set forward, and what an authorizer of Google's gives there."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from google_server import CLIENT_SECRET, PEM, REFRESH_TOKEN

from millstream.engine.endpoint import Fault, Request, SendError
from millstream.providers.credentials.google import GoogleAuthorizer

T = TypeVar("T")
REQUEST = Request("", "", b"", b"{}", b"", b"")
SECRETS = (PEM, PEM.splitlines()[3], REFRESH_TOKEN, CLIENT_SECRET, "ya29.canary")


class ShiftedLoop(asyncio.SelectorEventLoop):
    """A clock that can be set forward."""

    shift_s = 0.0

    def time(self) -> float:
        return super().time() + self.shift_s


def run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=ShiftedLoop) as runner:
        return runner.run(work)


def later(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ShiftedLoop)
    loop.shift_s += seconds


async def token_of(authorizer: GoogleAuthorizer) -> str:
    return (await authorizer.headers(REQUEST))["authorization"].removeprefix("Bearer ")


async def fault_in(authorizer: GoogleAuthorizer) -> Fault:
    with pytest.raises(SendError) as raised:
        await authorizer.headers(REQUEST)
    fault = raised.value.fault
    assert "\n" not in fault.detail and not any(secret in repr(fault) for secret in SECRETS)
    assert fault.quota == "refund"
    return fault
