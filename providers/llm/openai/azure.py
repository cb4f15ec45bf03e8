"""Azure OpenAI: chat completions at the addresses that Azure has for them.

Without a version, or with v1 or preview, requests go to the v1 API, where the deployment is the model; with a dated
version to the older API, where it stands in the path. Answers are OpenAI's; Azure's content filter shows in errors and
finish reasons.
"""

from __future__ import annotations

from urllib.parse import quote

from msgspec import structs

from ....engine.call import Call
from ....engine.endpoint import Request
from ..protocol import Target
from . import chat as openai_chat

_V1 = "/openai/v1"


def encode(call: Call, target: Target) -> Request:
    # People give the endpoint with and without the beginning of the path.
    endpoint = target.base_url.removesuffix("/v1").removesuffix("/openai")
    if endpoint != target.base_url:
        target = structs.replace(target, base_url=endpoint)
    return openai_chat.encode_to(call, target, path_of(target))


def path_of(target: Target) -> str:
    version = target.version
    if version is None or version == "v1":
        return _V1 + openai_chat.PATH
    if version[0].isdigit():
        return f"/openai/deployments/{quote(target.model, safe='')}{openai_chat.PATH}?api-version={quote(version)}"
    return f"{_V1}{openai_chat.PATH}?api-version={quote(version)}"


PROTOCOL = structs.replace(openai_chat.PROTOCOL, kind="azure", encode=encode)
