"""A run before it begins: what its specification is made from, then its folder, work, settings and manifest."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from ....engine.attempts.budget_file import BUDGET
from ....engine.call import Call
from ....engine.runs.pairs import Pair
from ....engine.runs.run_folder import RUN_FILES, RunFiles
from ....wiring import Settings
from .item_set import ItemSet
from .work import BenchmarkRun


class RunBasis(Struct, frozen=True, kw_only=True):
    """What is decided of a run before its specification."""

    options: Any
    """The benchmark's options, settled."""
    readings: Any
    """The readings of the run's own scores."""
    limits: Mapping[Pair, int | None]
    """The models under test and their treatments, with the max_tokens of their calls; None: none is sent."""
    items: ItemSet
    """The items."""
    settings: Settings
    """The settings by which calls are sent."""
    endpoints: Mapping[str, str]
    """The address of each lane, as in the cache keys of its calls."""
    out: Path
    """The run's folder. What a run has begun with there stays, whatever the table of models says by now."""

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The models under test and their treatments."""
        return tuple(self.limits)


class PreparedRun(Struct, frozen=True, kw_only=True):
    """A run that is ready to begin: its folder (`out`), its benchmark's part (`work`), its settings, and what its
    manifest will hold. `sweep`: the folders beside it that share its --max-cost. `notes` concern its options and are
    printed once; `warnings` concern its data and are printed by every command. `files` and `budget_name` are the names
    of its files, `command` is what goes on with it (empty: `millstream resume`)."""

    out: Path
    work: BenchmarkRun
    settings: Settings
    specification: dict[str, Any]
    options: dict[str, Any]
    dataset: dict[str, Any]
    sweep: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    files: RunFiles = RUN_FILES
    budget_name: str = BUDGET
    command: str = ""

    @property
    def resume_command(self) -> str:
        """The command that goes on with the run, quoted for a shell."""
        return self.command or shlex.join(["millstream", "resume", str(self.out)])

    @property
    def retry_command(self) -> str:
        """The command that sends failed items again, quoted for a shell."""
        return self.command or shlex.join(["millstream", "retry", str(self.out)])

    @property
    def total(self) -> int:
        """The number of items over all pairs."""
        return self.work.items * len(self.work.pairs())


class ItemsOfPilot(Struct, frozen=True, kw_only=True):
    """The items of a run that a benchmark offers as a pilot."""

    run: PreparedRun
    """The run; where its items take several calls, with the pilot's alone."""
    items: int
    """The number of items of each pair in the pilot."""
    of: int
    """The number of items of each pair in the whole run."""
    noun: str = "item"
    """The noun for an item."""
    calls: Mapping[Pair, Sequence[Call]] = MappingProxyType({})
    """The calls of each pair, where an item is one call; empty: the run sends its items."""
    at_once: int = 1
    """The number of items of several calls that the run holds at once, over all pairs."""
    remark: str = ""
    """A sentence about the estimates."""

    @property
    def progress(self) -> tuple[int, int, str]:
        """The number of items to send, how many are done, and the noun for progress displays."""
        if self.calls:
            return sum(map(len, self.calls.values())), 0, ""
        return self.run.total, 0, self.run.work.item
