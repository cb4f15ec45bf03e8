"""Counts a run's journals: how each step ended, what failures hold back, tokens and cost.

One pass with constant work for each line. Summaries and exit codes are computed from these counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from ....engine.pairs import Pair
from ....engine.runs.proof import ANSWERED
from ....engine.runs.run_folder import RunFolder
from ....providers.search.access import is_search
from ....wiring.folder_budget import cost_of_retried
from ..door.item_line import ItemLine, StepTotals
from ..door.prepared_run import PreparedRun
from ..door.run_counts import RunCounts
from ..door.served_rows import ScoredRun
from .journals import decoded
from .scoring import scores_of
from .served import served_rows

_Counted = TypeVar("_Counted", bound=StepTotals)


def count_run(run: PreparedRun, folder: RunFolder) -> RunCounts:
    """Returns what the journals in a run's folder hold, and its scores."""
    benchmark = run.benchmark
    journals = {str(each.path): each.read() for each in (folder.records, folder.failures)}
    steps = None if benchmark.has_calls else dict.fromkeys(run.pairs, run.items.steps)
    counted = recount(benchmark.Totals(), journals, steps, benchmark.Line, run.is_own)
    rows = served_rows(counted.pairs, folder.manifest["answers_as"], folder.records.read)
    scored = ScoredRun(
        folder=folder.folder,
        manifest=rows.manifest(folder.manifest),
        readings=run.readings,
        rows=rows,
        source=str(folder.records.path),
    )
    scores = scores_of(benchmark, rows.lines(folder.records.read()), scored)
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
    )


def recount(
    counted: _Counted,
    journals: Mapping[str, Iterable[bytes]],
    steps: Mapping[Pair, Mapping[str, int]] | None = None,
    kind: type[ItemLine] = ItemLine,
    is_own: Callable[[ItemLine], bool] = lambda line: True,
) -> _Counted:
    """Adds the lines of journals, given by name, to the counts and returns these; `is_own` says which. `steps`: each
    item's number of steps, since a failure holds back the later ones (None: one step each). Raises RecordError for a
    line of another kind."""
    lines_of: dict[tuple[Pair, str], int] = {}
    failed: set[tuple[Pair, str]] = set()
    for name, lines in journals.items():
        for line in decoded(lines, kind, name):
            if not is_own(line):
                continue
            pair = line.pair
            counted.add(pair, line)
            if steps is None:
                continue
            key = (pair, line.item)
            lines_of[key] = lines_of.get(key, 0) + 1
            if line.status not in ANSWERED:
                failed.add(key)
    for pair, item in failed:
        has, of_pair = lines_of[pair, item], (steps or {}).get(pair, {})
        counted.pairs[pair].held += max(0, of_pair.get(item, has) - has)
    return counted
