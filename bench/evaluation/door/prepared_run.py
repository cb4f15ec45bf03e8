"""A run that is ready to begin."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ....engine.attempts.budget_file import BUDGET
from ....engine.pairs import Pair
from ....engine.runs.run_folder import RUN_FILES, RunFiles
from .benchmark import ItemBenchmark, RunBasis
from .item_line import ItemLine
from .run_items import highest_limits, other_calls, with_limit


class PreparedRun(RunBasis, frozen=True, kw_only=True):
    """A run that is ready to begin, with its benchmark and what its manifest will hold."""

    benchmark: ItemBenchmark[Any]
    """The benchmark."""
    dataset: Mapping[str, Any] = MappingProxyType({})
    """The data as the manifest describes them."""
    sweep: tuple[str, ...] = ()
    """The names of the folders beside it that share its --max-cost."""
    files: RunFiles = RUN_FILES
    """The names of its files."""
    budget_name: str = BUDGET
    """The name of the file that counts its cost."""
    command: str = ""
    """What goes on with it; empty: `millstream resume`."""

    @property
    def has_scores(self) -> bool:
        """Whether the run is scored: judgements of its answers, which are another run beside it, are not."""
        return self.files == RUN_FILES

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes of all models that are called, without repetition."""
        return tuple(self.max_tokens)

    @property
    def max_tokens(self) -> dict[str, int | None]:
        """The highest max_tokens of each model's calls; None where its calls set none."""
        return highest_limits(self.limits, other_calls(self.benchmark, self.options))

    @property
    def resume_command(self) -> str:
        """The command that goes on with the run, quoted for a shell."""
        return self.command or shlex.join(["millstream", "resume", str(self.out)])

    @property
    def retry_command(self) -> str:
        """The command that sends failed items again, quoted for a shell."""
        return self.command or shlex.join(["millstream", "retry", str(self.out)])

    @property
    def is_own(self) -> Callable[[ItemLine], bool] | None:
        """Tells whether a journal line is one of this run's: a file of judgements holds those of other judges too.
        None: every line is."""
        return None if self.has_scores else lambda line: line.pair in self.limits and line.item in self.items.steps

    def options_of(self, pair: Pair) -> Any:
        """Returns the options with the max_tokens of a pair's calls."""
        return with_limit(self.options, self.limits[pair])
