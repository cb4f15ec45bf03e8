"""What a person may change of a run that goes on: pause it, let it go on, change calls in flight and its limit, end it.

Owns what is refused, and what lanes get that are opened later. Knows no file and no screen: a change is noted by the
function that is passed in, before it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from ..engine.routes import Route
from ..engine.runs.live import NotSteered
from .engine import Engine
from .file_limits import capped_by_files

Action = Literal["pause", "resume", "set", "stop"]
State = Literal["running", "paused", "ending"]


class Change(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A change that a person asks for. `concurrency`: calls in flight of each model's lane, `max_cost`: dollars; both
    are for `set` alone, and None leaves what holds."""

    action: Action
    concurrency: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    max_cost: Annotated[float, Meta(ge=0, le=1e9)] | None = None


class Steering:
    """The controls of one open engine. `lanes`: those of all models of the run, asked yet or not."""

    def __init__(self, engine: Engine, lanes: Sequence[str] = ()) -> None:
        self._engine = engine
        self._lanes = lanes
        self.concurrency: int | None = None
        self.is_paused = self.is_ending = False
        engine.scheduler.routes.on_open = self._open

    def __repr__(self) -> str:
        return f"<Steering [{self.state}, concurrency {self.concurrency}, limit {self._engine.budget.limit}]>"

    @property
    def state(self) -> State:
        return "ending" if self.is_ending else "paused" if self.is_paused else "running"

    @property
    def in_flight_max(self) -> int:
        """The most calls that all lanes together may have in flight."""
        return sum(map(self._most_of, self._lanes))

    def carry_out(self, change: Change, note: Callable[[], None]) -> None:
        """Makes a change. `note` is called when it is sure to be made, before it holds, and may raise to prevent it.
        Raises NotSteered if it can't be made."""
        self._check(change)
        before, self.concurrency = self.concurrency, change.concurrency or self.concurrency
        try:
            note()
        except BaseException:
            self.concurrency = before
            raise
        engine = self._engine
        if change.action == "stop":
            self.is_ending = True
            engine.halt("interrupted", "ended by `millstream ctl … stop`")
            return
        if change.action in ("pause", "resume"):
            self.is_paused = change.action == "pause"
        if change.max_cost is not None:
            engine.budget.set_limit(change.max_cost)
        for route in tuple(engine.scheduler.routes):
            self._open(route)
            route.lane.serve()
        if change.concurrency is not None:
            for widen in tuple(engine.scheduler.on_widen):
                widen()

    def _check(self, change: Change) -> None:
        engine, budget = self._engine, self._engine.budget
        is_empty = change.concurrency is None and change.max_cost is None
        if is_empty == (change.action == "set"):
            raise NotSteered("set needs --concurrency or --max-cost, and no other change takes them")
        if self.is_ending or engine.scheduler.routes.halted is not None:
            raise NotSteered("it is ending: calls in flight are finished, and nothing more is sent")
        if engine.settings.cluster is not None and change.action != "stop":
            raise NotSteered("the workers of a cluster (--ray) carry its calls: it can only be stopped")
        if change.max_cost is None:
            return
        if budget.limit is None or not budget.is_attached:
            raise NotSteered(
                "it began without --max-cost, so nothing is reserved for its calls: stop it, resume with one"
            )
        if (place := engine.settings.budget) is not None and place.beside:
            raise NotSteered("its --max-cost is shared with the other runs of its sweep: stop it, resume with another")
        if budget.is_exhausted:
            raise NotSteered("its --max-cost is reached and it is ending: resume it with another")
        if change.max_cost < (least := budget.charged + budget.reserved):
            spent = f"${budget.charged:.4f} is charged (spent, or may still be billed)"
            reserved = f"${budget.reserved:.4f} reserved for calls in flight"
            raise NotSteered(
                f"{spent} and {reserved}: the lowest --max-cost is ${ceil(1e4 * least) / 1e4:.4f}, got "
                f"${change.max_cost:.4f}"
            )

    def _open(self, route: Route) -> None:
        lane = route.lane
        lane.is_paused = self.is_paused
        if self.concurrency is None or route.is_retrieval or route.is_local or lane.lane.model not in self._lanes:
            return
        lane.lane = structs.replace(lane.lane, concurrency=self._capped(lane.lane.model))
        for key in lane.keys:
            if key.lane.concurrency != lane.lane.concurrency:
                key.lane = lane.lane
                key.growth.fix(lane.lane.in_flight_most)

    def _capped(self, model: str) -> int | None:
        """Returns the calls in flight for each API key of a model, as far as this process may open files."""
        settings, keys = self._engine.settings, len(self._engine.settings.key_variables.get(model, ("",)))
        return capped_by_files(structs.replace(settings.lane_of(model), concurrency=self.concurrency), keys).concurrency

    def _most_of(self, model: str) -> int:
        keys = len(self._engine.settings.key_variables.get(model, ("",)))
        before = self._engine.settings.concurrency_of(model)
        return before if self.concurrency is None else max(before, keys * (self._capped(model) or 0))
