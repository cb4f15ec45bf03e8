"""Turns a search engine's error into a fault, by the table that searches and models share.

Owns the words by which search engines name an empty account or a dead API key; llm.faults decides the rest. Pure.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import structs

from ...engine.endpoint import Fault, Response
from ...engine.page_urls import with_shown_addresses
from ..llm.errors import DETAIL_MAX, ErrorBody, error_of
from ..llm.faults import fault_of
from .results import plain

# What Brave's numbers say, whose code is that of a limit a second.
QUOTA_SPENT = "quota_limited"
# Exa's tags, Brave's codes.
_SPENT_CODES = frozenset({QUOTA_SPENT, "no_more_credits", "api_key_budget_exceeded", "team_budget_exceeded"})
# Serper has no code for it. Tavily has statuses of its own: for the plan's limit, and for the limit of pay-as-you-go.
_SPENT = re.compile(
    r"not enough credits|out of credits|credits? (?:are )?exhausted|exceeds? your (?:plan|pay[- ]as[- ]you[- ]go)"
    r"|(?:plan|usage|quota) limit (?:was |has been )?(?:exceeded|reached)",
    re.IGNORECASE,
)
_SPENT_STATUSES = (432, 433)
# Brave answers 422 to a wrong key.
_DEAD_KEY_CODES = frozenset({"subscription_token_invalid", "invalid_api_key"})


def error_in_answer(answer: dict[str, Any]) -> ErrorBody | None:
    """Returns the error in an answer, in any of the shapes that search engines use; None if there is none."""
    if not (answer.get("error") or answer.get("detail") or (answer.get("statusCode") and answer.get("message"))):
        return None
    error = error_of(answer)
    return structs.replace(error, message=plain(error.message, DETAIL_MAX))


def error_in_text(body: bytes) -> ErrorBody:
    """Returns the error for a body that is not JSON."""
    return ErrorBody((), plain(body.decode("utf-8", "replace"), DETAIL_MAX))


def search_fault(response: Response, error: ErrorBody) -> Fault:
    """Returns the fault of an error, by the response's status, or for a 200 by the status in its body."""
    status = response.status if response.status != 200 else error.status or 500
    detail = f"{response.status}: {error.message}"
    is_spent = status in _SPENT_STATUSES or not _SPENT_CODES.isdisjoint(error.codes)
    if is_spent or (status < 500 and _SPENT.search(error.message)):
        return Fault("rate_limited", f"the account can't pay, or its quota is used up: {detail}", "stop", status)
    if not _DEAD_KEY_CODES.isdisjoint(error.codes) and status < 500:
        return Fault("rejected", detail, "confirm", status)
    fault = fault_of(structs.replace(response, status=status), error)
    if fault.kind == "redirect":
        where = with_shown_addresses(response.headers.get("location", "elsewhere"))
        return structs.replace(
            fault, detail=f"{status}: the address redirects to {where}: set the engine's own variable for it to that"
        )
    return fault
