"""Claude on Amazon Bedrock from 4.7 on: Anthropic Messages at Bedrock's address, with Bedrock's credentials.

Bodies, answers and streams are Anthropic's; errors are Anthropic's, or AWS's where the request did not reach the model.
AWS names the version with sampling for all of these models, of which none takes sampling.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import structs

from ...engine.call import Call, Reply
from ...engine.endpoint import Fault, Request, Response
from .anthropic import messages as anthropic
from .bedrock import converse
from .bedrock.errors import bedrock_refusal_or_fault
from .protocol import Target, WireProtocol

# Converse is Anthropic's legacy integration: Opus 4.6 and before (platform.claude.com, Claude in Amazon Bedrock).
_OF_MESSAGES = re.compile(r"claude-[a-z]+-(?:4-[7-9]|[5-9]|preview)(?!\d)")


def encode(call: Call, target: Target) -> Request:
    base_url, identity = f"{target.base_url}/anthropic", f"{target.identity}/anthropic"
    return anthropic.encode(
        call, structs.replace(target, base_url=base_url, identity=identity, version=_version_of(target))
    )


def headers(target: Target) -> Mapping[str, str]:
    return {"anthropic-version": _version_of(target)}


def _version_of(target: Target) -> str:
    return target.version or anthropic.OLDER_VERSION


def decode(response: Response) -> Reply | Fault:
    return anthropic.decode(response) if response.status == 200 else bedrock_refusal_or_fault(response)


PROTOCOL = structs.replace(anthropic.PROTOCOL, kind="bedrock", encode=encode, decode=decode, headers=headers)


def protocol_of(model: str) -> WireProtocol:
    """Returns the protocol of a model on Bedrock: Anthropic's for newer models of Claude, else Converse."""
    return PROTOCOL if _OF_MESSAGES.search(model) is not None else converse.PROTOCOL
