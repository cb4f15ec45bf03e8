"""Requests with a blank for the prompt: calls that differ in a plain prompt alone are written by filling it in.

Pure. A protocol's encoder writes the first of such calls, and the others get the bytes that it would write for them.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from msgspec import Struct

from ...engine.call import Call
from ...engine.endpoint import Request

# What calls of one form have in common: all but the prompt, and what no request holds.
parameters_of = attrgetter(*(name for name in Call.__struct_fields__ if name not in ("input", "trial", "tag")))


class RequestForm(Struct, frozen=True):
    """A request around its prompt: the first one, and of its fields what stands before and after the prompt in them."""

    first: Request
    body: list[bytes]
    wire: list[bytes]
    prompt: list[bytes]
    instead: list[bytes]

    def filled(self, prompt: bytes) -> Request:
        """Returns the request with another prompt, given as JSON."""
        first, body = self.first, prompt.join(self.body)
        return Request(
            first.url,
            first.identity,
            body,
            body if first.wire is first.body else prompt.join(self.wire),
            prompt.join(self.prompt),
            first.params,
            first.stream,
            instead=None if first.instead is None else prompt.join(self.instead),
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
    every = request.body, request.wire, request.prompt, request.instead or b""
    # `rfind` finds places that overlap, too: a prompt may look like the JSON between two values.
    is_cut = all(whole.find(prompt) == whole.rfind(prompt) for whole in every)
    return RequestForm(request, *(whole.split(prompt) for whole in every)) if is_cut else None
