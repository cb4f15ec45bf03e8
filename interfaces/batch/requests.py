"""The request in a line of a batch, in the dialect of its URL, or what is wrong with it.

Owns the shape of a line and the codes of broken ones, as OpenAI's Batch API names them. Pure: models and their
protocols are passed in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import msgspec
import orjson
from msgspec import Struct, structs

from ...engine.call import Call
from ...providers.llm.serve_bounds import check_values
from ...providers.llm.serve_dialect import Dialect, RequestRefusal, ServedRequest
from ...providers.llm.serve_naming import request_for_family
from ...report.text import cut
from ..gateway.paths import ASKED, DIALECTS, GENERATE
from .input import LINE_MAX, InputLine

NO_JSON = "invalid_json_line"
_SHOWN_MAX = 60
_CODES = {"unknown_model": "model_not_found"}
# Equal bytes for two calls that ask the same, whatever the order of their fields.
_ENCODER = msgspec.json.Encoder(order="deterministic", enc_hook=dict)

_PATH = re.compile(r"/?(?:v1/)?(chat/completions|responses|messages)/?")
_GEMINI_PATH = re.compile(r"/?(?:v1|v1beta|v1beta1)/models/(.+):generateContent")
URLS = "/v1/chat/completions, /v1/responses, /v1/messages or /v1beta/models/MODEL:generateContent"


class Envelope(Struct, frozen=True):
    """The fields around a request in its line: its id, its dialect and its body."""

    line: int
    custom_id: str
    spoken: Dialect
    body: dict[str, Any]


class BatchRequest(Struct, frozen=True):
    """A line that holds a valid request: its number from 1, its id, its dialect and the request."""

    line: int
    custom_id: str
    spoken: Dialect
    asked: ServedRequest


class BadLine(Struct, frozen=True):
    """A line without a valid request: `said` is the message, `param` the wrong field (None: the whole line)."""

    line: int
    custom_id: str | None
    code: str
    said: str
    param: str | None = None


def envelope_of(line: InputLine) -> Envelope | BadLine:
    number, data = line
    if data is None:
        return BadLine(number, None, "line_too_long", f"expected at most {LINE_MAX >> 20} MiB, got more")
    try:
        check_values(data)
        row = orjson.loads(data)
    except RequestRefusal as refused:
        return BadLine(number, None, "line_too_long", refused.problem.message.replace("the body", "it", 1))
    except orjson.JSONDecodeError as error:
        return BadLine(number, None, NO_JSON, _json_problem(data, error))
    if not isinstance(row, dict):
        return BadLine(number, None, NO_JSON, f"expected a JSON object, got {_excerpt(row)}")
    if "custom_id" not in row:
        return _missing(number, None, "custom_id")
    custom_id = row["custom_id"]
    if not isinstance(custom_id, str) or not custom_id:
        return _wrong(number, None, "custom_id", "a text that is not empty", custom_id)
    for name in ("method", "url", "body"):
        if name not in row:
            return _missing(number, custom_id, name)
    if row["method"] != "POST":
        return _wrong(number, custom_id, "method", "POST", row["method"])
    body = row["body"]
    if not isinstance(body, dict):
        return _wrong(number, custom_id, "body", "a JSON object", body)
    spoken = _spoken_at(row["url"], body)
    if spoken is None:
        return _wrong(number, custom_id, "url", URLS, row["url"])
    return Envelope(number, custom_id, spoken, body)


def request_of(
    envelope: Envelope, named: Callable[[str, str], str], family_of: Callable[[str], str]
) -> BatchRequest | BadLine:
    """Returns the request of an envelope, or its BadLine. `named` returns the model of a client's name and family."""
    spoken = envelope.spoken
    try:
        served = spoken.read(envelope.body, lambda word: named(word, spoken.family))
        served = request_for_family(served, spoken.family, family_of(served.call.model))
    except RequestRefusal as refused:
        problem = refused.problem
        code = _CODES.get(problem.kind, "invalid_request")
        return BadLine(envelope.line, envelope.custom_id, code, f"body: {problem.message}", problem.param)
    if served.call.stream:
        # A row of a file has a whole answer.
        served = structs.replace(served, call=structs.replace(served.call, stream=False))
    return BatchRequest(envelope.line, envelope.custom_id, spoken, served)


def gist_of(call: Call) -> bytes:
    """Returns bytes that are equal for calls with the same content, whatever the order of their fields."""
    return _ENCODER.encode(call)


def _missing(number: int, custom_id: str | None, name: str) -> BadLine:
    message = f"{name}: expected one, got nothing: the field is missing"
    return BadLine(number, custom_id, "missing_required_parameter", message, name)


def _wrong(number: int, custom_id: str | None, name: str, expected: str, value: object) -> BadLine:
    message = f"{name}: expected {expected}, got {_excerpt(value)}"
    return BadLine(number, custom_id, f"invalid_{name}", message, name)


def _spoken_at(url: object, body: dict[str, Any]) -> Dialect | None:
    if not isinstance(url, str):
        return None
    if (path := _PATH.fullmatch(url)) is not None:
        return DIALECTS[ASKED[path[1]]]
    if (path := _GEMINI_PATH.fullmatch(url)) is not None:
        # The dialect reads it from the body, as it can't see the address.
        body["model"] = unquote(path[1])
        return DIALECTS[GENERATE]
    return None


def _json_problem(data: bytes, error: orjson.JSONDecodeError) -> str:
    try:
        data.decode()
    except UnicodeDecodeError as wrong:
        return f"expected UTF-8, got byte 0x{data[wrong.start]:02x} at offset {wrong.start}"
    return f"expected JSON, got something else at column {error.colno}: {error.msg}"


def _excerpt(value: object) -> str:
    return cut(orjson.dumps(value).decode(), _SHOWN_MAX)
