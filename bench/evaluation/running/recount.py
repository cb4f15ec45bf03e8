"""Counts a run's journals: how each step ended, what failures hold back, tokens and cost.

One pass with constant work for each line. Summaries and exit codes are computed from these counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Generic, TypeVar

from ....engine.pairs import Pair
from ....engine.runs.proof import ANSWERED
from ....engine.runs.run_folder import RunFolder
from ....providers.search.access import is_search
from ....wiring.folder_budget import cost_of_retried
from ..door.item_line import ItemLine, StepTotals
from ..door.prepared_run import PreparedRun
from ..door.rescored import require_whole
from ..door.run_counts import RunCounts
from ..door.served_rows import ScoredRun, Tally
from .journals import decoded
from .scoring import scores_of
from .served import served_rows

_Counted = TypeVar("_Counted", bound=StepTotals)


class Recount(Generic[_Counted]):
    """Counts lines one by one in `totals`. `steps`: each item's number of steps, since a failure holds back the later
    ones (None: one step each)."""

    def __init__(self, totals: _Counted, steps: Mapping[Pair, Mapping[str, int]] | None = None) -> None:
        self._totals = totals
        self._steps = steps
        self._lines_of: dict[tuple[Pair, str], int] = {}
        self._failed: set[tuple[Pair, str]] = set()

    def add(self, pair: Pair, line: ItemLine) -> None:
        self._totals.add(pair, line)
        if self._steps is None:
            return
        key = (pair, line.item)
        self._lines_of[key] = self._lines_of.get(key, 0) + 1
        if line.status not in ANSWERED:
            self._failed.add(key)

    def totals(self) -> _Counted:
        """Returns the counts of all lines, with what failures hold back."""
        for pair, item in self._failed:
            has, of_pair = self._lines_of[pair, item], (self._steps or {}).get(pair, {})
            self._totals.pairs[pair].held += max(0, of_pair.get(item, has) - has)
        self._failed.clear()
        return self._totals


class RunRecount:
    """Counts a run's journals, each record once: those that are there when it begins, and those that it writes."""

    def __init__(self, run: PreparedRun, folder: RunFolder) -> None:
        benchmark = run.benchmark
        self._run, self._folder = run, folder
        steps = None if benchmark.has_calls else dict.fromkeys(run.pairs, run.items.steps)
        self._recount = Recount(benchmark.Totals(), steps)

    @cached_property
    def _tally(self) -> Tally | None:
        """Made with the first record, since it loads numpy, which no call needs."""
        run, folder = self._run, self._folder
        manifest = {**folder.manifest, "options": run.kept, "dataset": run.dataset}
        return run.benchmark.tally(ScoredRun(folder=folder.folder, manifest=manifest, readings=run.readings))

    def add(self, pair: Pair, line: ItemLine) -> None:
        """Counts a line of the records."""
        self._recount.add(pair, line)
        if self._tally is not None:
            self._tally.add(pair, line)

    def counted(self) -> RunCounts:
        """Returns what the journals hold by now, and its scores."""
        run, folder, records = self._run, self._folder, self._folder.records
        if records.is_cut:
            # What was counted is no longer on the disk.
            records.rewind()
            return RunRecount(run, folder).counted()
        kind, before = run.benchmark.Line, records.lines_read
        for line in filter(run.is_own, decoded(records.read_on(), kind, str(records.path), before)):
            self.add(line.pair, line)
        for line in filter(run.is_own, decoded(folder.failures.read(), kind, str(folder.failures.path))):
            self._recount.add(line.pair, line)
        return _counts_of(run, folder, self._recount.totals(), self._tally)


def _counts_of(run: PreparedRun, folder: RunFolder, counted: StepTotals, tally: Tally | None) -> RunCounts:
    benchmark = run.benchmark
    require_whole(folder.folder, folder.manifest)
    rows = served_rows(counted.pairs, folder.manifest["answers_as"], folder.records.read)
    scored = ScoredRun(
        folder=folder.folder,
        manifest=rows.manifest(folder.manifest),
        readings=run.readings,
        rows=rows,
        source=str(folder.records.path),
    )
    # The tally has one row for each pair; which others there are was not known before the last line.
    scores = scores_of(benchmark, rows.lines(folder.records.read()), scored, None if rows.names else tally)
    part = scores[benchmark.scores_name(scored.specification)]
    prices = run.settings.price_table()
    unpriced = [lane for lane in run.lanes if not is_search(lane) and prices.get(lane) is None]
    sentences, details = counted.summary(folder.folder, folder.manifest, unpriced)
    remarks = [*sentences, *benchmark.remarks(part)]
    if (retried := cost_of_retried(folder.folder, folder.files)) > 0:
        aside = folder.files.failures.replace(".jsonl", "-1.jsonl")
        remarks.append(f"${retried:,.4f} more were paid for what failed and was asked again ({aside} and on)")
    return RunCounts(
        ended=counted.pairs,
        scores=scores if run.has_scores else rows.scores({}),
        remarks=(*remarks, *rows.remarks),
        details=details,
        unmeasured=(*part["unmeasured"], *rows.unmeasured),
        rows=rows,
        judges={pair: judging.cost for pair, judging in counted.judging.items() if judging.cost is not None},
    )


def recount(
    counted: _Counted,
    journals: Mapping[str, Iterable[bytes]],
    steps: Mapping[Pair, Mapping[str, int]] | None = None,
    kind: type[ItemLine] = ItemLine,
) -> _Counted:
    """Adds the lines of journals, given by name, to the counts and returns these; `steps` as in `Recount`. Raises
    RecordError for a line of another kind."""
    counting = Recount(counted, steps)
    for name, lines in journals.items():
        for line in decoded(lines, kind, name):
            counting.add(line.pair, line)
    return counting.totals()
