"""The manifest of a folder at the beginning and at the end of a run in it.

Owns the fields that every run has: its id, its times, its kills, and the money that no record shows.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from ..engine.attempts.budget_file import BUDGET, Amounts, BudgetPlace
from ..engine.runs.run_folder import RunFolder
from .folder_budget import at_most_in, unsure_of
from .running import RunEnd
from .settings import Settings


class FolderCost(Struct, frozen=True, kw_only=True):
    """What the calls of a folder have cost: the dollars in its records, and what bounds calls that were in flight at a
    kill (`worst_call` returns the dollars of the dearest call). `beside`: other folders under the same limit; `budget`
    is the name of the file that counts the cost."""

    dollars: float
    worst_call: Callable[[], float]
    beside: Sequence[Path] = ()
    budget: str = BUDGET


def begin_run(
    folder: RunFolder, settings: Settings, cost: FolderCost, *, in_flight_max: int, is_done: bool, **fields: Any
) -> Settings:
    """Notes in the manifest that a run begins, with its own `fields`, and returns the settings of its engine. With a
    limit, the cost is counted from now on. `in_flight_max`: the most calls that a kill may find in flight; `is_done`:
    nothing is left to send. Raises LocalFault if the budget is damaged."""
    manifest = folder.manifest
    unsure = unsure_of(folder.folder, manifest, cost.dollars, cost.budget)
    budget = None
    if settings.max_cost is not None:
        at_most = Amounts(cost.dollars + unsure.at_worst(cost.worst_call), cost.dollars)
        beside = {other / BUDGET: at_most_in(other, cost.worst_call) for other in cost.beside}
        lock = folder.folder.parent if beside else None
        budget = BudgetPlace(folder.folder / cost.budget, at_most, beside, lock)
    # A killed process has noted no end: the calls that it had in flight may have been billed.
    was_killed = manifest.get("started") is not None and manifest.get("ended") is None
    kills = manifest.get("in_flight_at_kills", 0) + (manifest.get("in_flight_max", 0) if was_killed else 0)
    folder.write_manifest(
        maybe_billed_pending=manifest.get("maybe_billed_pending", 0),
        in_flight_at_kills=kills,
        in_flight_max=in_flight_max,
        **unsure.notes(has_budget=budget is not None),
        run_id=manifest.get("run_id") or uuid.uuid4().hex,
        started=manifest.get("started") or _now(),
        # A run that has ended keeps its end: asked again, it sends nothing.
        ended=manifest.get("ended") if is_done else None,
        **fields,
    )
    if budget is None:
        # The manifest has its amounts.
        with suppress(OSError):
            (folder.folder / cost.budget).unlink()
    started = datetime.fromisoformat(manifest["started"]).timestamp()
    return structs.replace(settings, run_id=manifest["run_id"], budget=budget, run_started=started)


def end_run(folder: RunFolder, end: RunEnd, **fields: Any) -> None:
    """Notes in the manifest that a run ended, with its own `fields`; adds to `end` what earlier processes left. Raises
    LocalFault if the manifest can't be written."""
    manifest = folder.manifest
    end.maybe_billed += manifest["maybe_billed_pending"]
    end.in_flight_at_kills = manifest["in_flight_at_kills"]
    folder.write_manifest(ended=manifest["ended"] or _now(), maybe_billed_pending=end.maybe_billed, **fields)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
