"""One search with any number of hits: requests pages of results and joins them.

The engine makes the calls; knows no address and no wire format.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct

from ...engine.call import Call, Failure, Hit, Outcome
from ...engine.page_urls import normalised_url
from .answer import LAST
from .query import Reach
from .table import reach_of

COUNT = 20
# On a page after the first these failures mean that there are no more pages: the hits so far are kept.
_NO_SUCH_PAGE = ("search_failed", "rejected")


class Found(Struct, frozen=True):
    """The results of one search."""

    model: str
    """The engine, such as `search/brave`."""
    query: str
    """The query."""
    hits: tuple[Hit, ...] = ()
    """The results; with a failure, those of the pages before it."""
    keys: tuple[str, ...] = ()
    """The cache keys of its calls."""
    failure: Failure | None = None
    """Why a page of results failed; None: none did."""
    cached: bool = False
    """Whether all its calls were answered from the cache."""
    attempts: int = 0
    """The number of attempts of all its calls."""
    maybe_billed: int = 0
    """The number of attempts that failed and may have been billed."""
    latency_ms: float | None = None
    """The sum of its calls' latencies in milliseconds; None: no call has one."""
    cost: float | None = None
    """The cost of all its calls in dollars; None: no price is known."""
    remarks: tuple[str, ...] = ()
    """Notes on results that may lack something: a query that was cut, an engine without an answer."""


async def search(
    ask: Callable[[Call], Awaitable[Outcome]],
    model: str,
    query: str,
    count: int = COUNT,
    reach: Reach | None = None,
) -> Found:
    """Returns the first `count` hits without duplicates, ranked from 1. `ask` makes one call; `reach` holds the limits
    of an engine that is not in our table."""
    if count < 1:
        raise ValueError(f"count ({count}) must be >= 1")
    reach = reach or reach_of(model) or Reach(count)
    outcomes: list[Outcome] = []
    hits: dict[str, Hit] = {}
    remarks = _cuts(model, query, reach)
    failure: Failure | None = None
    for page in range(1, _pages(count, reach) + 1):
        outcome = await ask(Call(model, query, extra=_extra(page, count, reach)))
        outcomes.append(outcome)
        if outcome.reply is None:
            failure = outcome.failure
            if failure is not None and hits and failure.kind in _NO_SUCH_PAGE:
                remarks[f"page {page}: {failure.detail}"] = None
                failure = None
            break
        before = len(hits)
        for hit in outcome.reply.hits:
            hits.setdefault(normalised_url(hit.url), hit)
        if outcome.reply.text:
            remarks[outcome.reply.text] = None
        if len(hits) >= count or len(hits) == before or outcome.reply.finish_reason == LAST:
            break
    ranked = tuple(Hit(rank, hit.url, hit.title, hit.snippet) for rank, hit in enumerate(hits.values(), 1))
    return _found(model, query, outcomes, ranked[:count], failure, tuple(remarks))


def _pages(count: int, reach: Reach) -> int:
    """Returns the most pages to request: as many as `count` hits need, and one more for duplicates and short pages."""
    return min(reach.pages_max, -(-count // reach.count_max) + 1)


def _extra(page: int, count: int, reach: Reach) -> dict[str, int]:
    """Returns `count` and `page` for a call. The count is the same on all pages, since some engines compute the offset
    from it."""
    extra = {"count": min(count, reach.count_max)}
    return extra if page == 1 else {**extra, "page": page}


def _cuts(model: str, query: str, reach: Reach) -> dict[str, None]:
    fitted = reach.fitted(query)
    is_cut = len("".join(fitted.split())) < len("".join(query.split()))
    return {f"{model} takes no longer query than this: {fitted}": None} if is_cut else {}


def _found(
    model: str,
    query: str,
    outcomes: list[Outcome],
    hits: tuple[Hit, ...],
    failure: Failure | None,
    remarks: tuple[str, ...],
) -> Found:
    costs = [outcome.cost for outcome in outcomes if outcome.cost is not None]
    latencies = [outcome.latency_ms for outcome in outcomes if outcome.latency_ms is not None]
    return Found(
        model,
        query,
        hits,
        tuple(outcome.key for outcome in outcomes if outcome.key),
        failure,
        all(outcome.cached for outcome in outcomes),
        sum(outcome.attempts for outcome in outcomes),
        sum(outcome.maybe_billed for outcome in outcomes),
        sum(latencies) if latencies else None,
        sum(costs) if costs else None,
        remarks,
    )
