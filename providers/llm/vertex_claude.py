"""Claude through Vertex AI: Anthropic's bodies, but with the model in the path and the API's version in the body.

Answers are Anthropic's; errors are Anthropic's or Google's, depending on which of them found the error (errors).
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from msgspec import structs

from ...engine.call import Call, Reply
from ...engine.endpoint import Fault, Request, Response
from .anthropic import messages as anthropic
from .anthropic.turns import FAMILY, prompt_of
from .families import marked
from .faults import error_within, refusal_or_fault
from .google.errors import google_error_within, google_refusal_or_fault
from .protocol import Target, no_headers, request_of
from .repair import read_object
from .vertex import OPEN_VERSION, placed

# The version with sampling by the name that it has here.
OLDER_VERSION = "vertex-2023-10-16"
_STREAM = {"stream": True}
_OF_PATHS = re.compile(r"v\d+[a-z0-9]*")
_PUBLISHER = "anthropic/"


def is_claude(model: str) -> bool:
    return model.startswith((_PUBLISHER, "claude"))


def encode(call: Call, target: Target) -> Request:
    return marked(call, FAMILY, lambda variant: _written(variant, target))


def _written(call: Call, target: Target) -> Request:
    version = anthropic.VERSION
    if target.version is not None and not _OF_PATHS.fullmatch(target.version):
        # Anthropic's version, not the one that paths begin with.
        version, target = target.version, structs.replace(target, version=None)
    path, identity = placed(target, OPEN_VERSION)
    end = f"/publishers/anthropic/models/{quote(target.model.removeprefix(_PUBLISHER), safe='@')}"
    params = anthropic.params_of(call, target, version, OLDER_VERSION)
    params.setdefault("anthropic_version", version)
    return request_of(
        call,
        target,
        f"{path}{end}:rawPredict",
        params,
        prompt_of(call),
        streamed=_STREAM,
        stream_path=f"{path}{end}:streamRawPredict",
        identity=f"{identity}{end}:rawPredict",
    )


def decode(response: Response) -> Reply | Fault:
    """Returns the reply or the fault of a response."""
    if response.status == 200:
        return anthropic.read(response, _result_of)
    parsed = read_object(response.body)[0]
    if parsed is not None and _is_googles(parsed.get("error")):
        return google_refusal_or_fault(response)
    return refusal_or_fault(response)


def _result_of(response: Response, error: Any) -> Reply | Fault:
    return google_error_within(response, error) if _is_googles(error) else error_within(response, error)


def _is_googles(error: Any) -> bool:
    """Returns whether an error is Google's, which has a status, and not Anthropic's, which has none."""
    return isinstance(error, dict) and "status" in error


PROTOCOL = structs.replace(anthropic.PROTOCOL, kind="vertex", encode=encode, decode=decode, headers=no_headers)
