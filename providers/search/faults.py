"""Turns a search engine's error into a fault, by the table that searches and models share.

Owns the words by which search engines name an empty account or a dead API key; llm.faults decides the rest. Pure.
"""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Struct, structs

from ...engine.endpoint import Fault, Response
from ...engine.page_urls import with_shown_addresses
from ..llm.answer_values import as_text
from ..llm.faults import fault_of
from .results import plain

DETAIL_MAX = 400
# Exa's tags, Brave's codes.
_SPENT_CODES = frozenset({"no_more_credits", "api_key_budget_exceeded", "team_budget_exceeded", "quota_limited"})
# Serper has no code for it. Tavily has statuses of its own: for the plan's limit, and for the limit of pay-as-you-go.
_SPENT = re.compile(
    r"not enough credits|out of credits|credits? (?:are )?exhausted|exceeds? your (?:plan|pay[- ]as[- ]you[- ]go)"
    r"|(?:plan|usage|quota) limit (?:was |has been )?(?:exceeded|reached)",
    re.IGNORECASE,
)
_SPENT_STATUSES = (432, 433)
# Brave answers 422 to a wrong key.
_DEAD_KEY_CODES = frozenset({"subscription_token_invalid", "invalid_api_key"})


class EngineError(Struct, frozen=True):
    """An error in an engine's own words. `status` is the one that the body names, None if it names none. `is_spent`: a
    quota is used up that does not return within minutes."""

    message: str
    code: str = ""
    status: int | None = None
    is_spent: bool = False

    @classmethod
    def of_text(cls, body: bytes) -> EngineError:
        """Returns the error for a body that is not JSON."""
        return cls(plain(body.decode("utf-8", "replace"), DETAIL_MAX))


def error_in(answer: dict[str, Any]) -> EngineError | None:
    """Returns the error in an answer, in any of the shapes that search engines use; None if there is none."""
    error = answer.get("error")
    if isinstance(error, dict):
        message = error.get("detail") or error.get("message") or error.get("code")
        return EngineError(_text(message), as_text(error.get("code")), _status(error.get("status"), error.get("code")))
    if error:
        return EngineError(
            _text(error), as_text(answer.get("tag")), _status(answer.get("statusCode"), answer.get("status"))
        )
    if answer.get("statusCode") and answer.get("message"):
        return EngineError(_text(answer["message"]), status=_status(answer["statusCode"]))
    detail = answer.get("detail")
    if isinstance(detail, dict) and "error" in detail:
        detail = detail["error"]
    return EngineError(_text(detail)) if detail else None


def search_fault(response: Response, engine_error: EngineError) -> Fault:
    """Returns the fault of an error, by the response's status, or for a 200 by the status in its body."""
    status = response.status if response.status != 200 else engine_error.status or 500
    code = engine_error.code.lower()
    detail = f"{response.status}: {engine_error.message}"
    is_spent = engine_error.is_spent or status in _SPENT_STATUSES or code in _SPENT_CODES
    if is_spent or (status < 500 and _SPENT.search(engine_error.message)):
        return Fault("rate_limited", f"the account can't pay, or its quota is used up: {detail}", "stop", status)
    if code in _DEAD_KEY_CODES and status < 500:
        return Fault("rejected", detail, "confirm", status)
    error = {"message": engine_error.message, "code": engine_error.code or None, "status": str(status)}
    fault = fault_of(structs.replace(response, status=status, body=json.dumps({"error": error}).encode()))
    if fault.kind == "redirect":
        where = with_shown_addresses(response.headers.get("location", "elsewhere"))
        return structs.replace(
            fault, detail=f"{status}: the address redirects to {where}: set the engine's own variable for it to that"
        )
    return fault


def _text(value: Any) -> str:
    if isinstance(value, list):
        value = "; ".join(str(each.get("msg", each)) if isinstance(each, dict) else str(each) for each in value[:5])
    return plain(value if isinstance(value, str) else str(value), DETAIL_MAX)


def _status(*values: Any) -> int | None:
    for value in values:
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
            return value
    return None
