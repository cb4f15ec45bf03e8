"""An endpoint whose faults are final: for load tests, which want to see what a server does and not what helps.

The engine would wait out a 429, cut its rate and send again; here a refusal is the call's own end, and what headers
tell slows nothing down. What stops a lane (a dead key, an empty account, a redirect) still does. Knows no protocol.
"""

from __future__ import annotations

from contextvars import ContextVar

from msgspec import Struct, structs

from ...engine.call import Call, Reply
from ...engine.endpoint import Endpoint, Fault, Request, Response, SendError
from ...engine.limits import Limit


class Told(Struct, frozen=True):
    """What one attempt told of the provider: the limits that its headers name, and the fault that it ended with."""

    limits: tuple[Limit, ...] = ()
    fault: Fault | None = None


listener: ContextVar[list[Told] | None] = ContextVar("listener", default=None)
"""Whoever sets it in the task that asks is told of each attempt, as it was before it was made final."""


class Unadapted:
    """Stands before any endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def __repr__(self) -> str:
        return f"<Unadapted {self._endpoint!r}>"

    @property
    def base_url(self) -> str:
        return self._endpoint.base_url

    def encode(self, call: Call) -> Request:
        return self._endpoint.encode(call)

    async def send(self, request: Request) -> Response:
        heard = listener.get()
        try:
            response = await self._endpoint.send(request)
        except SendError as error:
            if heard is not None:
                heard.append(Told(fault=error.fault))
            raise SendError(final(error.fault)) from error
        if heard is not None:
            result = self._endpoint.decode(response)
            fault = result if isinstance(result, Fault) else None
            heard.append(Told(self._endpoint.limits(response), fault))
        return response

    def decode(self, response: Response) -> Reply | Fault:
        result = self._endpoint.decode(response)
        return final(result) if isinstance(result, Fault) else result

    def limits(self, response: Response) -> tuple[Limit, ...]:
        return ()


def final(fault: Fault) -> Fault:
    """The same fault, after which nothing is sent again and no lane waits. Our own machine's want still waits."""
    if fault.action in ("retry", "throttle"):
        return structs.replace(fault, action="never", retry_after_s=None, cuts_rate=False)
    return fault
