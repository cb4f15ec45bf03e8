"""The parts that searches and pages of one engine share: the corpus, the connections to hosts, the limits of all pages.

Built from allowed hosts and declared lanes; opens nothing before it is needed. The engine decides how calls are sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from ..engine.attempts.money import ListedPrice, Price, PriceSource
from ..engine.call import WEB
from ..engine.endpoint import Endpoint
from ..engine.lane import CONCURRENCY_DEFAULT, Lane
from .access import ConfigurationError
from .pages.connections import PageConnections
from .pages.endpoint import PageEndpoint
from .pages.guard import Guard, parse_allowed
from .pages.page_limits import CONCURRENCY, HostEndpoint, PageLimits
from .search.access import is_search
from .search.documents import CorpusError
from .search.table import CORPUS, ENGINES, PROVIDER, READ_ON, SearchEngine, engine_of

if TYPE_CHECKING:
    from .search.corpus import Corpus

HOST_CONCURRENCY = 2
HOST_SPACING_S = 1.0
CORPUS_LANE = f"{PROVIDER}/{CORPUS}"
# Documents of the corpus have no host.
NO_HOST = f"{WEB}/"
# The name under which the default lane of every host is declared.
EVERY_HOST = f"{WEB}/*"


def is_page(lane: str) -> bool:
    return lane == WEB or lane.startswith(NO_HOST)


def is_host(lane: str) -> bool:
    return lane.startswith(NO_HOST) and lane != NO_HOST


def lane_of(name: str, declared: Lane | None, engine: SearchEngine | None = None) -> Lane:
    """Returns the lane of a search engine, of a host, or of all pages together: the declared values, and polite or
    documented defaults for the others. `engine` is the row of an engine that is not built in."""
    if is_search(name):
        row = engine_of(name) or engine
        default = Lane(name, concurrency=8) if row is None else structs.replace(row.lane, model=name)
    elif name == WEB:
        default = Lane(WEB, concurrency=CONCURRENCY)
    elif name == NO_HOST:
        default = Lane(name)
    else:
        default = Lane(name, concurrency=HOST_CONCURRENCY, spacing_s=HOST_SPACING_S)
    return default if declared is None else _over(declared, default)


def _over(declared: Lane, default: Lane) -> Lane:
    """Returns the declared lane, with the default's values where none are set. A declared `rpm` replaces spacing."""
    plain = Lane(declared.model)
    concurrency = default.concurrency if declared.concurrency == CONCURRENCY_DEFAULT else declared.concurrency
    return Lane(
        declared.model,
        rpm=default.rpm if declared.rpm is None else declared.rpm,
        concurrency=concurrency,
        timeout_s=default.timeout_s if declared.timeout_s == plain.timeout_s else declared.timeout_s,
        spacing_s=default.spacing_s if declared.rpm is None else 0.0,
    )


def search_prices() -> dict[str, ListedPrice]:
    """Returns the price of one request to each search engine, by its lane, from the engine's own price list."""
    listed = {
        f"{PROVIDER}/{name}": ListedPrice(price_of(row), PriceSource(READ_ON, row.price))
        for name, row in ENGINES.items()
    }
    return {**listed, CORPUS_LANE: ListedPrice(Price(0.0, 0.0), PriceSource(READ_ON, "free: a folder of your own"))}


def price_of(row: SearchEngine) -> Price:
    return Price(0.0, 0.0, call=row.dollars_per_1000 / 1000)


class WebRetrieval:
    """The web and the corpus for one engine. `allowed` lists hosts whose addresses need not be public; `lane` is the
    quota of all pages together."""

    def __init__(self, allowed: Sequence[str], lane: Lane, corpus: Path | None) -> None:
        try:
            guard = Guard(tuple(parse_allowed(one) for one in allowed))
        except ValueError as error:
            raise ConfigurationError(f"--allow-host {error}") from error
        self._connections = PageConnections(guard)
        self._pages = PageEndpoint(self._connections)
        self._lane = lane
        self._together: PageLimits | None = None
        self._folder = corpus
        self._corpus: Corpus | None = None

    def __repr__(self) -> str:
        return f"<WebRetrieval [{self._pages}; {self._corpus or 'no corpus'}]>"

    async def open(self) -> None:
        """Reads the corpus's folder, if there is one; raises ConfigurationError."""
        if self._folder is None:
            return
        from .search.corpus import Corpus  # numpy, which nothing else here needs

        try:
            self._corpus = await asyncio.to_thread(Corpus, self._folder)
        except CorpusError as error:
            raise ConfigurationError(str(error)) from error

    def page_endpoint(self, lane: str, spacing_s: Callable[[], float]) -> Endpoint:
        """Returns the endpoint for a lane of pages: the corpus for the lane without a host if there is a corpus, else
        the web, under the limits that all hosts share. `spacing_s` returns the present seconds between two calls to the
        host."""
        if lane == NO_HOST and self._corpus is not None:
            from .search.corpus import CorpusEndpoint

            return CorpusEndpoint(self._corpus)
        if self._together is None:
            self._together = PageLimits(self._lane.concurrency, self._lane.rpm)
        return HostEndpoint(self._pages, self._together, spacing_s)

    def corpus_search(self) -> Endpoint:
        if self._corpus is None:
            raise ConfigurationError(f"{CORPUS_LANE} needs a folder of documents: give one with --corpus")
        from .search.corpus import CorpusSearch

        return CorpusSearch(self._corpus)

    def close(self) -> None:
        self._connections.close()
        if self._corpus is not None:
            self._corpus.close()
            self._corpus = None
