"""Requests with a blank for the prompt: calls that differ in a plain prompt alone are written by filling it in.

Pure. A protocol's encoder writes the first of such calls, and the others get the bytes that it would write for them.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from msgspec import Struct, structs

from ...engine.call import Call
from ...engine.endpoint import Request

# What calls of one form have in common: all but the prompt, and what no request holds.
parameters_of = attrgetter(*(name for name in Call.__struct_fields__ if name not in ("input", "trial", "tag")))


class RequestForm(Struct, frozen=True):
    """A request around its prompt: the first one without its bytes, which may be large, and of them what stands before
    and after the prompt. `wire` and `instead` None: that is `body` itself, or there is none."""

    first: Request
    body: list[bytes]
    wire: list[bytes] | None
    prompt: list[bytes]
    instead: list[bytes] | None

    def filled(self, prompt: bytes) -> Request:
        """Returns the request with another prompt, given as JSON."""
        first, body = self.first, prompt.join(self.body)
        return Request(
            first.url,
            first.identity,
            body,
            body if self.wire is None else prompt.join(self.wire),
            prompt.join(self.prompt),
            first.params,
            first.stream,
            instead=None if self.instead is None else prompt.join(self.instead),
        )


def plain_prompt_of(call: Call) -> str | None:
    """Returns the prompt of a call that a form can write: a text, or one turn of the user; None for any other call."""
    if call.extra is not None or call.json_schema is not None or call.tools is not None:
        return None  # their owner may change them, and they compare as equal where their JSON is not
    text: Any = call.input
    if text.__class__ is tuple and len(text) == 1 and text[0].role == "user":
        text = text[0].content
    return text if text.__class__ is str else None


def form_of(request: Request, prompt: bytes) -> RequestForm | None:
    """Returns the form of a request that holds this prompt as it stands, given as JSON; None if another value of the
    request has the same bytes."""
    wire = b"" if request.wire is request.body else request.wire
    every = request.body, wire, request.prompt, request.instead or b""
    # `rfind` finds places that overlap, too: a prompt may look like the JSON between two values.
    if any(whole.find(prompt) != whole.rfind(prompt) for whole in every):
        return None
    first = structs.replace(request, body=b"", wire=b"", prompt=b"", instead=None)
    body, wires, prompts, instead = (whole.split(prompt) for whole in every)
    return RequestForm(first, body, wires if wire else None, prompts, instead if request.instead else None)
