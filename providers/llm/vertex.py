"""Vertex AI: Gemini at the address of a project and a location, and other publishers' models through its endpoint for
OpenAI's protocol.

The project is in the path but not in cache keys, since it changes no answer. The meaning of errors: errors.
"""

from __future__ import annotations

from urllib.parse import quote

from msgspec import structs

from ...engine.call import Call, Reply
from ...engine.endpoint import Fault, Request, Response
from .google import generate as gemini
from .google.errors import google_refusal_or_fault
from .google.generate import version_of
from .openai import chat as openai_chat
from .protocol import Target, WireProtocol

# The API versions of Google's own client, and of Google's pages on the models of others.
GEMINI_VERSION = "v1beta1"
OPEN_VERSION = "v1"


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


GEMINI = structs.replace(gemini.PROTOCOL, kind="vertex", encode=encode_gemini)
OPEN = structs.replace(openai_chat.PROTOCOL, kind="vertex", encode=encode_open, decode=decode_open)


def protocol_of(model: str) -> WireProtocol:
    """Returns the protocol of a model on Vertex AI, by the publisher before its name: Gemini's for `google/` or none,
    OpenAI's for any other. Claude has an adapter of its own."""
    return GEMINI if "/" not in model or model.startswith("google/") else OPEN
