"""Vertex AI: Gemini at the address of a project and a location, Claude there with Anthropic's bodies, and other
publishers' models through its endpoint for OpenAI's protocol.

The project is in the path but not in cache keys, since it changes no answer. Claude's model is in the path too, and the
API's version in the body; its errors are Anthropic's or Google's, depending on which of them found the error (errors).
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from msgspec import structs

from ...engine.call import Call, Reply
from ...engine.endpoint import Fault, Request, Response
from .anthropic import messages as anthropic
from .anthropic.turns import FAMILY as ANTHROPIC
from .anthropic.turns import prompt_of
from .families import marked
from .faults import error_within, refusal_or_fault
from .google import generate as gemini
from .google.errors import google_error_within, google_refusal_or_fault
from .google.generate import version_of
from .openai import chat as openai_chat
from .protocol import Target, WireProtocol, no_headers, request_of
from .repair import read_object

# The API versions of Google's own client, and of Google's pages on the models of others.
GEMINI_VERSION = "v1beta1"
OPEN_VERSION = "v1"
# The version with sampling by the name that it has here.
OLDER_VERSION = "vertex-2023-10-16"
_STREAM = {"stream": True}
_OF_PATHS = re.compile(r"v\d+[a-z0-9]*")
_PUBLISHER = "anthropic/"


def placed(target: Target, version: str) -> tuple[str, str]:
    """Returns the start of the path, and the text that replaces it in cache keys, which hold no project."""
    begun = version_of(target, version)
    location = f"/locations/{quote(target.region or 'global', safe='')}"
    return f"{begun}/projects/{quote(target.project or '-', safe=':')}{location}", f"{begun}{location}"


def encode_gemini(call: Call, target: Target) -> Request:
    path, identity = placed(target, GEMINI_VERSION)
    end = f"/publishers/google/models/{quote(target.model.removeprefix('google/'), safe='@')}"
    return gemini.encode_to(call, target, path + end, identity + end)


def encode_open(call: Call, target: Target) -> Request:
    """Returns the request for a model of another publisher, whose name precedes the model's, as in `meta/`."""
    path, identity = placed(target, OPEN_VERSION)
    end = f"/endpoints/openapi{openai_chat.PATH}"
    request = openai_chat.encode_to(call, target, path + end)
    return structs.replace(request, identity=target.identity + identity + end)


def decode_open(response: Response) -> Reply | Fault:
    return openai_chat.decode(response) if response.status == 200 else google_refusal_or_fault(response)


def encode_claude(call: Call, target: Target) -> Request:
    return marked(call, ANTHROPIC, lambda variant: _claude_written(variant, target))


def _claude_written(call: Call, target: Target) -> Request:
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


def decode_claude(response: Response) -> Reply | Fault:
    if response.status == 200:
        return anthropic.read(response, _claude_result)
    parsed = read_object(response.body)[0]
    if parsed is not None and _is_googles(parsed.get("error")):
        return google_refusal_or_fault(response)
    return refusal_or_fault(response)


def _claude_result(response: Response, error: Any) -> Reply | Fault:
    return google_error_within(response, error) if _is_googles(error) else error_within(response, error)


def _is_googles(error: Any) -> bool:
    """Returns whether an error is Google's, which has a status, and not Anthropic's, which has none."""
    return isinstance(error, dict) and "status" in error


GEMINI = structs.replace(gemini.PROTOCOL, kind="vertex", encode=encode_gemini)
OPEN = structs.replace(openai_chat.PROTOCOL, kind="vertex", encode=encode_open, decode=decode_open)
CLAUDE = structs.replace(
    anthropic.PROTOCOL, kind="vertex", encode=encode_claude, decode=decode_claude, headers=no_headers
)


def protocol_of(model: str) -> WireProtocol:
    """Returns the protocol of a model on Vertex AI, by the publisher before its name: Anthropic's for Claude, with or
    without it, Gemini's for `google/` or none, OpenAI's for any other."""
    if model.startswith((_PUBLISHER, "claude")):
        return CLAUDE
    return GEMINI if "/" not in model or model.startswith("google/") else OPEN
