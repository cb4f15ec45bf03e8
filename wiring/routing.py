"""The routes to models and search engines: a lane's endpoints, its quota and its price.

Builds endpoints by `providers`. Opens a lane's files on first use. How long a route lives: engine/routes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from msgspec import structs

from ..engine.attempts.money import CostBudget
from ..engine.endpoint import Endpoint
from ..engine.estimate import TokenEstimate
from ..engine.events import Events
from ..engine.lane import TIMEOUT_DEFAULT_S, Lane
from ..engine.lanes.key_gate import KeyGate
from ..engine.lanes.lane_files import LaneNote, open_lane_files, open_memory
from ..engine.lanes.lane_queue import LaneQueue
from ..engine.lanes.ledger import LedgerFiles
from ..engine.limits import declared_quota
from ..engine.prices import Price
from ..engine.remarks import remark
from ..engine.scheduler import Route
from ..providers.access import Access, ConfigurationError, endpoint_to, keyless_endpoint_to
from ..providers.credentials.authorizer import Authorizer
from ..providers.pages.endpoint import POLICY as PAGE_POLICY
from ..providers.retrieval import CORPUS_LANE, is_page
from ..providers.search.access import is_search
from ..providers.tool_results import ToolEndpoint, is_tool, tool_lane
from ..providers.transport.no_retry_endpoint import NoRetryEndpoint
from ..providers.transport.transport import LOOK_EVERY_S, Transport
from .file_limits import capped_by_files, ledgers_max, sockets_max
from .lane_names import without_lane
from .reach import accesses_to, stem_of
from .settings import Settings, day_of
from .web_retrieval import WebRetrieval

if TYPE_CHECKING:
    from ..engine.shared.quota import SharedQuota

# The deadline of a call at a slower tier where none is set: OpenAI's and Google's advice.
FLEX_TIMEOUT_S = 900.0


class Router:
    """The builder of one engine's routes. `first_page` is called whenever the route of a web host is built."""

    def __init__(
        self,
        settings: Settings,
        budget: CostBudget,
        events: Events,
        retrieval: WebRetrieval,
        first_page: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._budget = budget
        self._events = events
        self._retrieval = retrieval
        self._first_page = first_page
        # A measurement cuts answers off on purpose.
        self._policy = structs.replace(settings.policy, cut_max=None) if settings.measures else settings.policy
        # A measurement reads the limits of every answer.
        look_every_s = 0.0 if settings.measures else LOOK_EVERY_S
        patience_s = self._policy.patience_s if self._policy.attempts_max > 1 and not settings.measures else None
        self._transport = Transport(look_every_s, patience_s, sockets_max())
        self._ledgers = LedgerFiles(ledgers_max())
        # Set while the engine shares its quotas with other machines.
        self.quota: SharedQuota | None = None
        self._authorizers: dict[object, Authorizer] = {}
        self._routed: set[str] = set()

    def __repr__(self) -> str:
        return f"<Router for {self._settings}>"

    @property
    def unanswered(self) -> tuple[str, ...]:
        """A message for each address that has never answered."""
        return self._transport.unanswered.texts

    async def look_at_addresses(self) -> None:
        """Logs which addresses of the declared lanes refuse connections."""
        models = [lane.model for lane in self._settings.lanes if not is_page(lane.model) and not is_search(lane.model)]
        urls = {access.target.base_url for model in models for access in accesses_to(model, self._settings)}
        await asyncio.gather(*map(self._transport.unanswered.look_at, urls))

    async def close(self) -> None:
        await self._transport.close()

    def route(self, lane: str) -> Route:
        if is_tool(lane):
            # A free lane without files: nothing is sent.
            queue = LaneQueue([KeyGate(tool_lane(lane), self._policy)])
            return Route((ToolEndpoint(),), queue, None, TokenEstimate(), is_retrieval=True, is_local=True)
        return self._host_route(lane) if is_page(lane) else self._model_route(lane)

    def _model_route(self, model: str) -> Route:
        settings, is_engine = self._settings, is_search(model)
        if model in self._routed:
            # Opened anew: its credentials may have been corrected, in their file too.
            self._authorizers.clear()
        elif settings.default_lane is None and (warning := without_lane(model, settings)):
            remark(warning)
        self._routed.add(model)
        accesses = accesses_to(model, settings)
        lane = capped_by_files(settings.lane_of(model), len(accesses))
        price = settings.price_table().get(model)
        if settings.max_cost is not None and price is None:
            raise ConfigurationError(
                f"model {model!r} has no price, so --max-cost can't be kept: give it one under [prices.{model!r}]"
            )
        is_slow = lane.timeout_s == TIMEOUT_DEFAULT_S and (settings.tier or "").startswith("flex")
        timeout_s = FLEX_TIMEOUT_S if is_slow else lane.timeout_s
        endpoints = tuple(self._endpoint_to(model, access, timeout_s) for access in accesses)
        if settings.measures:
            endpoints = tuple(NoRetryEndpoint(endpoint) for endpoint in endpoints)
        keys = [self._open_key(access, lane) for access in accesses]
        return Route(
            endpoints,
            LaneQueue(keys),
            price,
            TokenEstimate(),
            None,
            is_engine,
            is_kept=not settings.measures,
            prices_on=lru_cache(partial(self._prices_on, model, price)),
            clock=settings.clock,
        )

    def _prices_on(self, model: str, price: Price | None, day: float, other: float) -> tuple[Price | None, ...]:
        """Returns a model's price on a day and, if it is not the same, on another; where neither has one, `price`."""
        one, two = (self._settings.price_table(day_of(each)).get(model) for each in (day, other))
        # A price list that ends makes no call free.
        return (one, two) if one is not None and two is not None and one != two else (one or two or price,)

    def _endpoint_to(self, model: str, access: Access, timeout_s: float) -> Endpoint:
        if model == CORPUS_LANE:
            return self._retrieval.corpus_search()
        if self._settings.mode == "strict":
            return keyless_endpoint_to(access)
        return endpoint_to(access, self._transport, timeout_s, self._authorizers)

    def _host_route(self, name: str) -> Route:
        """Returns the route of a web host. Hosts are many, so their last minute is kept in memory only and no event
        reports them."""
        self._first_page()
        lane = capped_by_files(self._settings.lane_of(name))
        endpoint, queue = self._retrieval.page_endpoint(name), LaneQueue([KeyGate(lane, PAGE_POLICY)])
        return Route((endpoint,), queue, None, TokenEstimate(), policy=PAGE_POLICY, is_retrieval=True, is_page=True)

    def _open_key(self, access: Access, lane: Lane) -> KeyGate:
        note = LaneNote(lane.model, access.variable, access.target.base_url, lane)
        stem, shared = stem_of(access, self._settings), None
        if self.quota is None:
            ledger, memory = open_lane_files(stem, note, self._ledgers)
        else:
            ledger = shared = self.quota.ledger(stem.name, declared_quota(lane))
            memory = open_memory(stem, note)
        gate = KeyGate(
            lane,
            self._policy,
            ledger=ledger,
            budget=self._budget,
            events=self._events,
            key=access.variable,
            proof=access.proof,
            # Limits that earlier answers reported don't slow a measurement.
            memory=None if self._settings.measures else memory,
            grows=not self._settings.measures,
        )
        if shared is not None:
            shared.on_change = lambda: gate.on_change()  # a lane's queue sets it later
            if not self._settings.measures:
                shared.gate = gate
        return gate
