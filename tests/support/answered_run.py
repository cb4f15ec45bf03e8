"""The folder of a run whose answers a test wrote itself: a true manifest and true records, with nothing sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from run_sink import RunSink

from millstream.bench.evaluation.door.benchmark import RunBasis
from millstream.bench.evaluation.door.served_rows import ScoredRun
from millstream.bench.evaluation.running.journals import encode
from millstream.bench.millstone.benchmark import BENCHMARK
from millstream.bench.millstone.grid import Grid, GridItem
from millstream.bench.millstone.options import Options, Readings
from millstream.bench.millstone.records import read, record
from millstream.bench.millstone.recount import GridTally
from millstream.bench.millstone.work import GridItems
from millstream.engine.call import Call, Outcome, Reply
from millstream.engine.pairs import Pair
from millstream.engine.runs.run_folder import RunFolder
from millstream.metrics.millstone.answers import AnswerTally
from millstream.metrics.millstone.stance import Reading
from millstream.wiring import Settings

ISSUES = 2
# Six templates in eleven configurations, asked once each.
ANSWERS = ISSUES * 6 * 11


def calls(grid: Grid, pair: Pair, max_tokens: int | None = None) -> Iterator[Call]:
    """The calls of a whole grid to one pair."""
    options = Options(model=(pair.model,), max_tokens=max_tokens)
    return (BENCHMARK.call(item, options, pair) for item in grid)


def row(outcome: Outcome, reading: Reading = "paper") -> bytes:
    """The journal line of an outcome, without its newline."""
    return encode(record(outcome, reading))


def tally_of(lines: Iterable[bytes], source: str = "records.jsonl", *, is_each_once: bool = False) -> AnswerTally:
    """The tally of the answers in these lines, which are of no folder."""
    run = ScoredRun(folder=Path(), manifest=None, readings=Readings(), source=source, is_each_once=is_each_once)
    tally = GridTally(run)
    for line in read(lines, source):
        tally.add(line.pair, line)
    return tally.answers(run)


def specification_of(options: Options, pairs: tuple[Pair, ...], endpoint: str = "") -> dict[str, Any]:
    """What a manifest of a run with these options has."""
    basis = RunBasis(
        options=options,
        readings=None,
        limits={pair: BENCHMARK.max_tokens_of(options, pair, {}) for pair in pairs},
        items=GridItems(options),
        settings=Settings(),
        endpoints={pair.model: endpoint for pair in pairs if endpoint},
        out=Path(),
    )
    return BENCHMARK.specification(basis)


def answered_run(
    folder: Path,
    text_of: Callable[[GridItem], str],
    models: tuple[str, ...] = ("sim/open",),
    dataset: Path | None = None,
    fix_orientation: bool = False,
) -> Path:
    """`dataset` None: the sample data, as a run that names no other."""
    file = None if dataset is None else str(dataset)
    options = Options(model=models, dataset=file, limit=ISSUES, trials=1, fix_orientation=fix_orientation)
    pairs = tuple(Pair(model, None) for model in models)
    with RunFolder(folder, specification_of(options, pairs)) as run:
        run.write_manifest(options={"millstone": {"dataset": file, "fix_orientation": fix_orientation}})
        sink = RunSink(run, row)
        for pair in pairs:
            for call in calls(GridItems(options).grid, pair):
                sink.write(Outcome(call, Reply(text_of(call.tag))))
        sink.flush()
    return folder
