"""The folder of a run whose answers a test wrote itself: a true manifest and true records, with nothing sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from millstream.bench.millstone.dataset import load, select
from millstream.bench.millstone.grid import Grid, GridItem, calls
from millstream.bench.millstone.records import row
from millstream.bench.millstone.sweep import GridSpec, specification
from millstream.bench.millstone.work import SAMPLE
from millstream.engine.call import Outcome, Reply
from millstream.engine.runs.pairs import Pair
from millstream.engine.runs.run_folder import RunFolder

ISSUES = 2
# Six templates in eleven configurations, asked once each.
ANSWERS = ISSUES * 6 * 11


def answered_run(
    folder: Path,
    text_of: Callable[[GridItem], str],
    models: tuple[str, ...] = ("sim/open",),
    dataset: Path | None = None,
) -> Path:
    """`dataset` None: the sample data, as a run that names no other."""
    grid = Grid(select(load(dataset or SAMPLE), limit=ISSUES), trials=1)
    asked = GridSpec(tuple(Pair(model, None) for model in models))
    with RunFolder(folder, specification(grid, asked, {})) as run:
        run.write_manifest(options={"millstone": {"dataset": None if dataset is None else str(dataset)}})
        sink = run.sink(lambda outcome: row(outcome, asked.reading))
        for pair in asked.pairs:
            for call in calls(grid, pair):
                sink.write(Outcome(call, Reply(text_of(call.tag))))
        sink.flush()
    return folder
