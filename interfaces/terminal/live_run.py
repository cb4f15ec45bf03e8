"""A run as other processes see it in its folder, and their requests, which its owner carries out.

Owns what the state says, and the note in the manifest. How files pass between processes: engine/runs/live.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from ...bench.evaluation.door.watch import OpenRun
from ...engine.fault import LocalFault
from ...engine.runs.live import STEERED, LiveFolder, NotSteered
from .progress_lines import plain_line, waits_of
from .run_progress import RunView

if TYPE_CHECKING:
    from ...wiring.engine import Engine
    from ...wiring.steering import Change

TOLD_EVERY_S = 1.0


class LiveRun:
    """The owner's side of one run, until `close`."""

    def __init__(self, engine: Engine, run: OpenRun) -> None:
        from ...wiring.steering import Steering  # loads the engine, which is loaded where anything is sent

        self._budget = engine.budget
        self._run = run
        self._steering = Steering(engine, run.lanes)
        self._folder = LiveFolder(run.folder.folder)
        self._next = 0.0

    def turn(self, view: RunView, now: float, look: Callable[[], RunView]) -> None:
        """Carries out new requests, and says once a second how the run is. `look` returns it after a change."""
        for name, request in self._folder.requests():
            self._folder.answer(name, self._carried_out(name, request, look))
            self._next, view = 0.0, look()
        if now >= self._next:
            self._next = now + TOLD_EVERY_S
            self._folder.tell(self._state(view))

    def close(self) -> None:
        self._folder.close()

    def _carried_out(self, name: str, request: Any, look: Callable[[], RunView]) -> dict[str, Any]:
        from ...wiring.steering import Change

        try:
            change = msgspec.convert(request, Change)
            self._steering.carry_out(change, lambda: self._note(name, change))
        except (NotSteered, LocalFault, msgspec.ValidationError) as error:
            return {"error": " ".join(str(error).split())}
        return self._state(look())

    def _note(self, name: str, change: Change) -> None:
        folder = self._run.folder
        what = {field: value for field, value in structs.asdict(change).items() if value is not None}
        entry = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "request": name, **what}
        fields: dict[str, Any] = {STEERED: [*folder.manifest.get(STEERED, ()), entry]}
        if change.concurrency is not None:
            # The bound of what a kill may leave in flight holds before more are.
            fields["in_flight_max"] = max(folder.manifest.get("in_flight_max", 0), self._steering.in_flight_max)
        options = folder.manifest.get("options") or {}
        if change.max_cost is not None and "sending" in options:
            # `resume` goes on with the limit that holds.
            fields["options"] = {**options, "sending": {**options["sending"], "max_cost": change.max_cost}}
        folder.write_manifest(**fields)

    def _state(self, view: RunView) -> dict[str, Any]:
        return {
            "process": os.getpid(),
            "host": socket.gethostname(),
            "state": self._steering.state,
            "concurrency": self._steering.concurrency,
            "max_cost": self._budget.limit,
            "reserved": self._budget.reserved,
            "waits": waits_of(view),
            "line": plain_line(view),
            **{name: getattr(view, name) for name in _SHOWN},
            "lanes": [structs.asdict(lane) for lane in view.lanes],
        }


_SHOWN = (
    *("total", "done", "item", "elapsed_s", "per_s", "average_per_s", "in_flight", "cached", "spent", "expected"),
    *("left_s", "failures", "retries", "throttles"),
)
