"""Turns Bedrock's errors into the form that faults reads: AWS names an error in a header, a body, or a stream.

Owns the statuses that its names stand for and the sign of a day's quota; what its phrases mean stands in errors. Pure:
values in, values out, never an exception.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import structs

from ....engine.call import Reply
from ....engine.endpoint import Fault, Response
from ..errors import DETAIL_MAX, ErrorBody
from ..faults import refusal_or_fault
from ..repair import mended, read_object

NAME_HEADER = "x-amzn-errortype"
# The errors by the status that they mean: one within a stream has the response's own status, 200.
_NAMES = {
    429: "ThrottlingException Throttling TooManyRequestsException RequestLimitExceeded ModelNotReadyException "
    "ServiceQuotaExceededException",
    408: "ModelTimeoutException RequestTimeoutException",
    409: "ConflictException",
    500: "ModelErrorException ModelStreamErrorException InternalServerException InternalServerError InternalFailure",
    503: "ServiceUnavailableException ServiceUnavailable",
    400: "ValidationException ValidationError SerializationException",
    404: "ResourceNotFoundException UnknownOperationException",
    403: "AccessDeniedException AccessDenied OptInRequired SubscriptionRequiredException NotAuthorized "
    "UnrecognizedClientException InvalidClientTokenId ExpiredTokenException ExpiredToken RequestExpired "
    "RequestTimeTooSkewed InvalidSignatureException SignatureDoesNotMatch IncompleteSignature "
    "IncompleteSignatureException MissingAuthenticationToken MissingAuthenticationTokenException",
}
STATUSES = {name: status for status, names in _NAMES.items() for name in names.split()}
# The errors of a model behind Bedrock that name the model's own status; only _REJECTED ones blame the request.
_MODEL_ERRORS = ("ModelErrorException", "ModelStreamErrorException")
_REJECTED = (400, 404, 413, 422)
_CLOCK = re.compile(r"signature (?:expired|not yet current)", re.IGNORECASE)
_CLOCK_NAMES = ("RequestTimeTooSkewed", "RequestExpired")
_EXPIRED = ("ExpiredTokenException", "ExpiredToken")
_PER_DAY = re.compile(r"\b(?:tokens|requests) (?:per|a) day\b", re.IGNORECASE)


def bedrock_refusal_or_fault(response: Response) -> Reply | Fault:
    """Returns the reply or the fault of an error response."""
    fields = read_object(response.body)[0] or {}
    name = name_of(response.headers.get(NAME_HEADER)) or name_within(fields)
    return refusal_or_fault(response) if name is None else result_of(response, name, fields)


def name_within(fields: dict[str, Any]) -> str | None:
    """Returns the name of the error in a body, None without one. AWS sends 200 with one for an unknown operation."""
    output = fields.get("Output")
    for holder in (fields, output if isinstance(output, dict) else {}):
        if "__type" in holder:
            return name_of(holder["__type"]) or "UnknownError"
    return None


def name_of(value: Any) -> str | None:
    """Returns an error's name without its name space and address; None if it has none."""
    if not isinstance(value, str):
        return None
    return value.partition(":")[0].rpartition("#")[2].strip() or None


def result_of(response: Response, name: str, fields: dict[str, Any]) -> Reply | Fault:
    """Returns the reply or the fault of the error `name`, which may stand in a response with status 200."""
    text = next((fields[one] for one in ("message", "Message", "errorMessage") if isinstance(fields.get(one), str)), "")
    name, message = mended(name[:80]), mended(text)[:DETAIL_MAX]
    status = _status_of(name, fields, response.status)
    detail = f"{name}: {message}" if message else name
    if status == 429 and _PER_DAY.search(message):
        say = f"{response.status}: the day's quota is used up: {detail} (go on tomorrow, or ask AWS for more)"
        return Fault("rate_limited", say, "stop", 429)
    if name in _CLOCK_NAMES or _CLOCK.search(message):
        detail += " (is this machine's clock right?)"
    elif name in _EXPIRED:
        detail += " (the credentials have ended: set new ones)"
    error = ErrorBody((str(status),), detail[:DETAIL_MAX])
    return refusal_or_fault(structs.replace(response, status=200 if response.status == 200 else status), error)


def _status_of(name: str, fields: dict[str, Any], status: int) -> int:
    if name in _MODEL_ERRORS and fields.get("originalStatusCode") in _REJECTED:
        return 400
    return STATUSES.get(name, 500 if status == 200 else status)
