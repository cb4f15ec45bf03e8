"""An endpoint without retries, for load tests: they measure a server, not the engine's adaptation to it.

The engine would wait after a 429, lower its rate and send again; here a refusal ends the call, and limits in headers
are ignored. A fault that stops a lane (a dead key, an empty account, a redirect) still does. Knows no protocol.
"""

from __future__ import annotations

from contextvars import ContextVar

from msgspec import Struct, structs

from ...engine.call import Call, Reply
from ...engine.endpoint import Attempt, Endpoint, Fault, Receiver, Request, Response, SendError
from ...engine.limits import Limit
from ...engine.verdict import verdict


class AttemptReport(Struct, frozen=True):
    """The limits in the headers of one attempt, and the fault that it ended with; None if it succeeded."""

    limits: tuple[Limit, ...] = ()
    fault: Fault | None = None


listener: ContextVar[list[AttemptReport] | None] = ContextVar("listener", default=None)
"""Receives a report on each attempt of the task that sets it, with the fault before it was made final."""


class NoRetryEndpoint:
    """A wrapper of an endpoint, with which each of its faults ends the call."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def __repr__(self) -> str:
        return f"<NoRetryEndpoint {self._endpoint!r}>"

    @property
    def base_url(self) -> str:
        return self._endpoint.base_url

    def encode(self, call: Call) -> Request:
        return self._endpoint.encode(call)

    def begin(self, request: Request, receiver: Receiver) -> Attempt:
        return self._endpoint.begin(request, _Final(self._endpoint, receiver, listener.get()))

    def decode(self, response: Response) -> Reply | Fault:
        result = self._endpoint.decode(response)
        return final(result) if isinstance(result, Fault) else result

    def limits(self, response: Response) -> tuple[Limit, ...]:
        return ()


class _Final:
    """A receiver of one attempt, which reports on it and makes its fault final."""

    def __init__(self, endpoint: Endpoint, receiver: Receiver, reports: list[AttemptReport] | None) -> None:
        self._endpoint = endpoint
        self._receiver = receiver
        self._reports = reports
        self.clear = receiver.clear

    def received(self, response: Response) -> None:
        if self._reports is not None:
            try:
                result = self._endpoint.decode(response)
                fault = result if isinstance(result, Fault) else None
                self._reports.append(AttemptReport(self._endpoint.limits(response), fault))
            except Exception as error:  # noqa: BLE001 (the receiver decides what it means)
                self._receiver.broke(error)
                return
        self._receiver.received(response)

    def broke(self, error: Exception) -> None:
        if isinstance(error, SendError):
            if self._reports is not None:
                self._reports.append(AttemptReport(fault=error.fault))
            error = SendError(final(error.fault))
        self._receiver.broke(error)


def final(fault: Fault) -> Fault:
    """Returns the fault without a retry or a wait of its lane; a lack of this machine's own resources still waits."""
    is_repeated = verdict(fault).learns in ("failure", "refusal", "pause")
    return structs.replace(fault, action="never", retry_after_s=None, cuts_rate=False) if is_repeated else fault
