"""The search engines by name: address, variables for API key and address, documented limits as lanes, prices.

Each limit has the place and the date where it was read. Reads no environment. `--base-url` is for models; only an
engine's own variable changes its address.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, structs

from ...engine.lane import Lane
from ..credentials.authorizer import NO_CREDENTIALS, Authorizer, bearer, key_in
from ..llm.protocol import WireProtocol
from . import brave, google, posting, searxng
from .query import Reach

PROVIDER = "search"
CORPUS = "corpus"
# Of the addresses of its documents.
SCHEME = "corpus:"
CORPUS_REACH = Reach(100, 10)
# The date on which the limits were read on the engines' pages; Brave's and Serper's were quoted by others in September
# and August.
READ_ON = "2026-11-21"
_TIMEOUT_S = 30.0


class SearchEngine(Struct, frozen=True, kw_only=True):
    """One search engine: how it is reached, its documented limits and its price."""

    protocol: WireProtocol
    """Its wire protocol."""
    reach: Reach
    """The limits of its queries and pages."""
    authorizer: Callable[[str | None], Authorizer]
    """Returns the authorizer for an API key, or for None."""
    base_url: str
    """Its address; empty: `url_variable` must be set."""
    url_variable: str
    """The variable that replaces the address; empty: there is none."""
    key_variables: tuple[str, ...] = ()
    """The variables of its API key, of which the first that is set is used; empty: it takes no key."""
    id_variable: str | None = None
    """The variable of the id that some engines need beside the API key; None: it needs none."""
    lane: Lane
    """The quota that its documents state."""
    limits: str
    """That quota in words."""
    limits_from: str
    """The page where that was read."""
    price: str
    """Its price in words."""
    dollars_per_1000: float
    """Dollars for 1,000 requests at list price."""
    remark: str = ""
    """What its users should know."""
    identity: str | None = None
    """The text that replaces the address in cache keys; None: the address itself."""


# How many seconds later than the request before it a request may arrive; matters for a limit per second.
_LATE_S = 0.15


def _lane(name: str, rpm: float | None, concurrency: int) -> Lane:
    return Lane(f"{PROVIDER}/{name}", rpm=rpm, concurrency=concurrency, timeout_s=_TIMEOUT_S)


def _lane_by_second(name: str, limit: float, concurrency: int) -> Lane:
    """Returns the lane of an engine with a limit a second: `limit` spaced requests take more than a second."""
    return structs.replace(_lane(name, 60 * limit, concurrency), spacing_s=(1 + _LATE_S) / limit)


def no_key(key: str | None) -> Authorizer:
    return NO_CREDENTIALS


ENGINES: dict[str, SearchEngine] = {
    "brave": SearchEngine(
        protocol=brave.PROTOCOL,
        reach=brave.REACH,
        authorizer=lambda key: key_in("X-Subscription-Token", key),
        base_url="https://api.search.brave.com/res/v1",
        url_variable="BRAVE_SEARCH_BASE_URL",
        key_variables=("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"),
        lane=_lane_by_second("brave", 50, 50),
        limits="50 requests a second on the Search plan; its headers give what an older plan allows",
        limits_from="brave.com/search/api",
        price="$5 per 1,000 requests; $5 of them free each month",
        dollars_per_1000=5.0,
    ),
    "serper": SearchEngine(
        protocol=posting.SERPER,
        reach=posting.SERPER_REACH,
        authorizer=lambda key: key_in("X-API-KEY", key),
        base_url="https://google.serper.dev",
        url_variable="SERPER_BASE_URL",
        key_variables=("SERPER_API_KEY",),
        lane=_lane_by_second("serper", 50, 50),
        limits="50 requests a second with the smallest package, up to 300 with the largest; no headers give the limit",
        limits_from="serper.dev",
        price="$1.00 to $0.30 per 1,000 pages of ten results, by package",
        dollars_per_1000=1.0,
    ),
    "tavily": SearchEngine(
        protocol=posting.TAVILY,
        reach=posting.TAVILY_REACH,
        authorizer=bearer,
        base_url="https://api.tavily.com",
        url_variable="TAVILY_BASE_URL",
        key_variables=("TAVILY_API_KEY",),
        lane=_lane("tavily", 100, 20),
        limits="100 requests a minute with a development key; a production key has 1,000",
        limits_from="docs.tavily.com/documentation/rate-limits",
        price="one credit for a basic search, $0.008 or less",
        dollars_per_1000=8.0,
    ),
    "exa": SearchEngine(
        protocol=posting.EXA,
        reach=posting.EXA_REACH,
        authorizer=lambda key: key_in("x-api-key", key),
        base_url="https://api.exa.ai",
        url_variable="EXA_BASE_URL",
        key_variables=("EXA_API_KEY",),
        lane=_lane_by_second("exa", 10, 20),
        limits="10 requests a second",
        limits_from="exa.ai/docs/reference/rate-limits",
        price="$7 per 1,000 requests of ten results, and $1 for every 1,000 results beyond: $17 with twenty",
        dollars_per_1000=17.0,
    ),
    "searxng": SearchEngine(
        protocol=searxng.PROTOCOL,
        reach=searxng.REACH,
        authorizer=no_key,
        base_url="",
        url_variable="SEARXNG_BASE_URL",
        lane=_lane("searxng", None, 8),
        limits="the instance's own; its settings.yml must list `json` under search, formats",
        limits_from="docs.searxng.org/dev/search_api",
        price="free: an instance of your own",
        dollars_per_1000=0.0,
    ),
    "google": SearchEngine(
        protocol=google.PROTOCOL,
        reach=google.REACH,
        authorizer=lambda key: key_in("X-goog-api-key", key),
        base_url="https://customsearch.googleapis.com",
        url_variable="GOOGLE_CSE_BASE_URL",
        key_variables=("GOOGLE_API_KEY",),
        id_variable="GOOGLE_CSE_ID",
        lane=_lane("google", 60, 10),
        limits="100 requests a day free, 10,000 with billing; 100 in 100 seconds; 100 results a query",
        limits_from="developers.google.com/custom-search/v1/overview",
        price="$5 per 1,000 requests of ten results",
        dollars_per_1000=5.0,
        remark=f"{google.ENDS}: choose another engine for runs that you want to repeat",
    ),
}


def engine_of(model: str) -> SearchEngine | None:
    """Returns the engine of `search/NAME`; None if there is none, and for the corpus, which has no address."""
    provider, _, name = model.partition("/")
    return ENGINES.get(name) if provider == PROVIDER else None


def reach_of(model: str) -> Reach | None:
    """Returns the reach of `search/NAME`, the corpus included; None if there is no such engine."""
    row = engine_of(model)
    return row.reach if row is not None else CORPUS_REACH if model == f"{PROVIDER}/{CORPUS}" else None
