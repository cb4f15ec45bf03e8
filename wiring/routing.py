"""Builds the routes of one engine: for each lane its endpoints, its quota and its price.

A lane's files are opened here, on first use. Which routes there are, and for how long, is the engine room's to know.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from ..bench.load.unadapted import Unadapted
from ..engine.admission import Admission
from ..engine.endpoint import Endpoint
from ..engine.estimate import TokenEstimate
from ..engine.events import Events
from ..engine.group import LaneGroup
from ..engine.lane import Lane
from ..engine.lane_files import open_lane_files
from ..engine.lane_note import LaneNote
from ..engine.ledger import Ledger
from ..engine.limits import declared_quota
from ..engine.money import Purse
from ..engine.scheduler import Route
from ..providers.access import Access, ConfigurationError, endpoint_to
from ..providers.authorizer import Authorizer
from ..providers.pages.endpoint import POLICY as PAGE_POLICY
from ..providers.retrieval import CORPUS_LANE, Retrieval, is_page
from ..providers.search.access import is_search, search_endpoint_to
from ..providers.transport import Transport
from .files import capped_by_files
from .settings import Settings
from .ways import accesses_to, keyless_endpoint_to, stem_of


class Routing:
    """One engine's. `first_page` is called when the first page is asked for."""

    def __init__(
        self, settings: Settings, purse: Purse, events: Events, retrieval: Retrieval, first_page: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._purse = purse
        self._events = events
        self._retrieval = retrieval
        self._first_page = first_page
        self._prices = settings.price_table()
        # Who measures a provider cuts answers on purpose.
        self._policy = structs.replace(settings.policy, cut_max=None) if settings.measures else settings.policy
        # Whoever measures a provider wants to see what each of its answers tells.
        self._transport = Transport(look_every_s=0.0) if settings.measures else Transport()
        self._authorizers: dict[object, Authorizer] = {}
        self._routed: set[str] = set()

    def __repr__(self) -> str:
        return f"<Routing by {self._settings}>"

    async def close(self) -> None:
        await self._transport.close()

    def route(self, lane: str) -> Route:
        return self._host_route(lane) if is_page(lane) else self._model_route(lane)

    def _model_route(self, model: str) -> Route:
        settings, is_engine = self._settings, is_search(model)
        if model in self._routed:
            # Opened anew: what was wrong with its credentials may have been mended, in a file of theirs too.
            self._authorizers.clear()
        self._routed.add(model)
        accesses = accesses_to(model, settings)
        lane = capped_by_files(settings.lane_of(model), len(accesses))
        price = self._prices.get(model)
        if settings.max_cost is not None and price is None:
            raise ConfigurationError(
                f"model {model!r} has no price, so --max-cost can't be kept: give it one under [prices.{model!r}]"
            )
        endpoints = tuple(self._endpoint_to(model, access, lane.timeout_s) for access in accesses)
        if settings.measures:
            endpoints = tuple(Unadapted(endpoint) for endpoint in endpoints)
        keys = [self._open_key(access, lane) for access in accesses]
        group = LaneGroup(keys, purse=self._purse, events=self._events)
        is_kept = not settings.measures
        return Route(endpoints, group, price, TokenEstimate(), is_retrieval=is_engine, is_kept=is_kept)

    def _endpoint_to(self, model: str, access: Access, timeout_s: float) -> Endpoint:
        if model == CORPUS_LANE:
            return self._retrieval.corpus_search()
        if self._settings.mode == "strict":
            return keyless_endpoint_to(access)
        if is_search(model):
            return search_endpoint_to(access, self._transport, timeout_s)
        return endpoint_to(access, self._transport, timeout_s, self._authorizers)

    def _host_route(self, name: str) -> Route:
        """Hosts are many and come and go: their last minute is kept in memory, and nobody is told of each."""
        self._first_page()
        lane = capped_by_files(self._settings.lane_of(name))
        events, purse = Events(), Purse()
        key = Admission(lane, ledger=Ledger(declared_quota(lane)), purse=purse, policy=PAGE_POLICY, events=events)
        endpoint = self._retrieval.page_endpoint(name, lambda: key.quota.spacing_s)
        group = LaneGroup([key], purse=purse, events=events)
        return Route((endpoint,), group, None, TokenEstimate(), policy=PAGE_POLICY, is_retrieval=True, is_page=True)

    def _open_key(self, access: Access, lane: Lane) -> Admission:
        note = LaneNote(lane.model, access.variable, access.target.base_url, lane)
        ledger, memory = open_lane_files(stem_of(access, self._settings), note)
        return Admission(
            lane,
            ledger=ledger,
            purse=self._purse,
            policy=self._policy,
            events=self._events,
            key=access.variable,
            proof=access.proof,
            # What answers told earlier slows nothing down where a provider is measured.
            memory=None if self._settings.measures else memory,
        )
