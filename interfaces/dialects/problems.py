"""What went wrong with a call, as the status and the one line that a client of any dialect gets.

Pure. The words around it are each dialect's own.
"""

from __future__ import annotations

from ...engine.admission import Stop
from ...engine.call import Failure
from .dialect import Problem

# What of the provider's own statuses a client can do something about.
_THEIRS = frozenset({400, 404, 413, 415, 422})
_OF_KINDS = {"rate_limited": 429, "timeout": 504, "not_cached": 404, "rejected": 400, "too_large": 502}
# None of them is the client's fault, and none goes away by asking at once again.
_OF_STOPS = {"budget": 429, "interrupted": 503, "local_fault": 500}


def problem_of_failure(failure: Failure) -> Problem:
    """A call that ended without a reply, after all the retries that it may have."""
    status = _OF_KINDS.get(failure.kind, 502)
    if failure.kind == "rejected" and failure.status in _THEIRS:
        status = failure.status
    return Problem(status, failure.kind, f"{failure.kind}: {failure.detail}")


def problem_of_stop(stop: Stop) -> Problem:
    """A lane that sends nothing more: the call was not sent."""
    kind = "over_budget" if stop.reason == "budget" else stop.reason
    return Problem(_OF_STOPS.get(stop.reason, 503), kind, stop.detail)
