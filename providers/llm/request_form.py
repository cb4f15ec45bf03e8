"""Requests with a blank for the prompt: calls that differ in a plain prompt alone are written by filling it in.

Pure. A protocol's encoder writes the first of such calls, and the others get the bytes that it would write for them.
"""

from __future__ import annotations

from operator import attrgetter

from msgspec import Struct

from ...engine.call import Call
from ...engine.endpoint import Request

# What calls of one form have in common: all but the prompt, and what no request holds.
_PARAMETERS = attrgetter(*(name for name in Call.__struct_fields__ if name not in ("input", "trial", "tag")))


class RequestForm(Struct, frozen=True):
    """A request around its prompt: of each field that holds the prompt's JSON, what stands before and after it."""

    request: Request
    body: tuple[bytes, bytes]
    wire: tuple[bytes, bytes]
    prompt: tuple[bytes, bytes]
    instead: tuple[bytes, bytes] | None

    def filled(self, prompt: bytes) -> Request:
        """Returns the request with another prompt, given as JSON."""
        first, body = self.request, prompt.join(self.body)
        return Request(
            first.url,
            first.identity,
            body,
            body if self.wire is self.body else prompt.join(self.wire),
            prompt.join(self.prompt),
            first.params,
            first.stream,
            instead=None if self.instead is None else prompt.join(self.instead),
        )


def parameters_of(call: Call) -> tuple[object, ...] | None:
    """Returns what a call must have in common with others to be written by the same form; None: it is written by none.
    Mappings may be changed by their owner, and compare as equal where their JSON is not."""
    if call.input.__class__ is not str or not (call.extra is None and call.json_schema is None and call.tools is None):
        return None
    parameters: tuple[object, ...] = _PARAMETERS(call)
    return parameters


def form_of(request: Request, prompt: bytes) -> RequestForm | None:
    """Returns the form of a request that holds this prompt as it stands, given as JSON; None if another value of the
    request has the same bytes."""
    body, told, instead = _around(request.body, prompt), _around(request.prompt, prompt), None
    wire = body if request.wire is request.body else _around(request.wire, prompt)
    if request.instead is not None and (instead := _around(request.instead, prompt)) is None:
        return None
    return None if body is None or wire is None or told is None else RequestForm(request, body, wire, told, instead)


def _around(whole: bytes, prompt: bytes) -> tuple[bytes, bytes] | None:
    at = whole.find(prompt)
    # `rfind` finds places that overlap, too: a prompt may look like the JSON between two values.
    return (whole[:at], whole[at + len(prompt) :]) if at == whole.rfind(prompt) >= 0 else None
