"""The parts that searches and pages of one engine share: the corpus, the connections to hosts, the limits of all pages.

Built from allowed hosts and declared lanes; opens nothing before it is needed. The engine decides how calls are sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.endpoint import Endpoint
from ..engine.lane import Lane
from ..providers.access import ConfigurationError
from ..providers.pages.connections import PageConnections
from ..providers.pages.endpoint import PageEndpoint
from ..providers.pages.guard import Guard, parse_allowed
from ..providers.pages.page_limits import PageLimits
from ..providers.retrieval import CORPUS_LANE, NO_HOST
from ..providers.search.documents import CorpusError

if TYPE_CHECKING:
    from ..providers.search.corpus import Corpus


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
        self._folder = corpus
        self._corpus: Corpus | None = None

    def __repr__(self) -> str:
        return f"<WebRetrieval [{self._pages}; {self._corpus or 'no corpus'}]>"

    async def open(self) -> None:
        """Reads the corpus's folder, if there is one; raises ConfigurationError."""
        if self._folder is None:
            return
        from ..providers.search.corpus import Corpus  # numpy, which nothing else here needs

        try:
            self._corpus = await asyncio.to_thread(Corpus, self._folder)
        except CorpusError as error:
            raise ConfigurationError(str(error)) from error

    def page_endpoint(self, lane: str) -> Endpoint:
        """Returns the endpoint for a lane of pages: the corpus for the lane without a host if there is a corpus, else
        the web, under the limits that all hosts share."""
        if lane == NO_HOST and self._corpus is not None:
            from ..providers.search.corpus import CorpusEndpoint

            return CorpusEndpoint(self._corpus)
        if self._pages.together is None:
            self._pages.together = PageLimits(self._lane.in_flight_most, self._lane.rpm)
        return self._pages

    def corpus_search(self) -> Endpoint:
        if self._corpus is None:
            raise ConfigurationError(f"{CORPUS_LANE} needs a folder of documents: give one with --corpus")
        from ..providers.search.corpus import CorpusSearch

        return CorpusSearch(self._corpus)

    def close(self) -> None:
        self._connections.close()
        if self._corpus is not None:
            self._corpus.close()
            self._corpus = None
