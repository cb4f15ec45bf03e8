"""Turns failures and stops into the status and the one line that a client of any dialect receives.

Pure. Each dialect words the rest of its error.
"""

from __future__ import annotations

from ...engine.call import Failure
from ...engine.fault import Stop
from .serve_dialect import Problem

# The provider's statuses that a client can do something about.
_THEIRS = frozenset({400, 404, 413, 415, 422})
_OF_KINDS = {"rate_limited": 429, "timeout": 504, "not_cached": 404, "rejected": 400, "too_large": 502}
# None of them is the client's fault, and none goes away with an immediate retry.
_OF_STOPS = {"budget": 429, "interrupted": 503, "local_fault": 500}


def problem_of_failure(failure: Failure) -> Problem:
    """Returns the problem of a call that ended without a reply, after all its retries."""
    status = _OF_KINDS.get(failure.kind, 502)
    if failure.kind == "rejected" and failure.status in _THEIRS:
        status = failure.status
    return Problem(status, failure.kind, f"{failure.kind}: {failure.detail}")


def problem_of_stop(stop: Stop) -> Problem:
    """Returns the problem of a call that was not sent, since its lane has stopped."""
    kind = "over_budget" if stop.reason == "budget" else stop.reason
    return Problem(_OF_STOPS.get(stop.reason, 503), kind, stop.detail)
