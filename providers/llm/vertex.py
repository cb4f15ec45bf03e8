"""Vertex AI: Gemini at the address of a project and a location, and the models of others through its endpoint for
OpenAI's protocol.

The project stands in the path and not in keys of calls: it changes no answer. What errors mean: google_errors.
"""

from __future__ import annotations

from urllib.parse import quote

from msgspec import structs

from ...engine.call import Call, Reply
from ...engine.endpoint import Fault, Request, Response
from . import gemini, openai_chat
from .gemini import version_of
from .google_errors import google_refusal_or_fault
from .listening import listening, said_in_candidate, said_in_chat
from .protocol import Target, WireProtocol

# What Google's own client asks, and what Google's pages on the models of others ask.
GEMINI_VERSION = "v1beta1"
OPEN_VERSION = "v1"


def placed(target: Target, version: str) -> tuple[str, str]:
    """The beginning of the path, and what stands for it in keys. A project is wanted only where something is sent."""
    begun = version_of(target, version)
    location = f"/locations/{quote(target.region or 'global', safe='')}"
    return f"{begun}/projects/{quote(target.project or '-', safe=':')}{location}", f"{begun}{location}"


def encode_gemini(call: Call, target: Target) -> Request:
    path, identity = placed(target, GEMINI_VERSION)
    end = f"/publishers/google/models/{quote(target.model.removeprefix('google/'), safe='@')}"
    return gemini.encode_to(call, target, path + end, identity + end)


def encode_open(call: Call, target: Target) -> Request:
    """For Llama and whatever else has its publisher's name before its own, as `meta/` has."""
    path, identity = placed(target, OPEN_VERSION)
    end = f"/endpoints/openapi{openai_chat.PATH}"
    request = openai_chat.encode_to(call, target, path + end)
    return structs.replace(request, identity=target.identity + identity + end)


def decode_open(response: Response) -> Reply | Fault:
    return openai_chat.decode(response) if response.status == 200 else google_refusal_or_fault(response)


GEMINI = WireProtocol("vertex", encode_gemini, gemini.decode, listen=listening(said_in_candidate))
OPEN = WireProtocol("vertex", encode_open, decode_open, listen=listening(said_in_chat))


def protocol_of(model: str) -> WireProtocol:
    """By whose model it is: Google's has no publisher before it, or `google/`."""
    return GEMINI if "/" not in model or model.startswith("google/") else OPEN
