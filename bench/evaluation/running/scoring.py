"""Turns the lines of a run into the contents of scores.json: after a run, for `score`, for `verify` and for reports.

Owns which readings apply, which rows the answers have, and how an error of a benchmark's own code is reported. Knows no
benchmark by name, and computes no score.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson
from msgspec import structs

from ....configuration.errors import UsageError
from ....engine.folder_file import keep_whole
from ....engine.remarks import remark
from ....engine.runs.proof import NOT_COMPARABLE
from ....engine.runs.run_folder import MANIFEST, RECORDS, read_manifest
from ..door.benchmark import ItemBenchmark
from ..door.defect import BenchmarkDefect, benchmark_code
from ..door.rescored import require_whole
from ..door.served_rows import ScoredRun, Tally
from .journals import decoded, each_once
from .record_lines import record_lines
from .served import rows_in

SCORES = "scores.json"


def write_scores(folder: Path, scores: dict[str, Any]) -> None:
    keep_whole(folder / SCORES, orjson.dumps(scores, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def part_of(
    benchmark: ItemBenchmark[Any], lines: Iterable[bytes], run: ScoredRun, tally: Tally | None = None
) -> dict[str, Any]:
    """Returns the benchmark's part of scores.json. `tally` has the lines already; None: they are read now. Raises
    BenchmarkDefect if an author's code raises or returns no scores."""
    # What one of ours lacks in a manifest is the folder's fault, as the command says; another one's error is its own.
    is_ours = type(benchmark).__module__.partition(".")[0] == __package__.partition(".")[0]
    with nullcontext() if is_ours else benchmark_code(benchmark.title):
        if tally is None and (tally := benchmark.tally(run)) is not None:
            for record in decoded(lines, benchmark.Record, run.source):
                tally.add(record.pair, record)
        part = benchmark.score_lines(lines, run) if tally is None else tally.scores(run)
        if part is None:
            part = _score_decoded(benchmark, lines, run)
        if isinstance(part.get("models"), Mapping):
            part = benchmark.with_kept(part, run)
    if not isinstance(part.get("models"), Mapping):
        raise BenchmarkDefect(f"{benchmark.title}: score_records() must give `models`, a mapping of names to scores")
    return {**part, "unmeasured": list(part.get("unmeasured", ()))}


def scores_of(
    benchmark: ItemBenchmark[Any], lines: Iterable[bytes], run: ScoredRun, tally: Tally | None = None
) -> dict[str, Any]:
    """Returns the contents of scores.json, as `part_of` does."""
    return run.rows.scores({benchmark.scores_name(run.specification): part_of(benchmark, lines, run, tally)})


def _score_decoded(benchmark: ItemBenchmark[Any], lines: Iterable[bytes], run: ScoredRun) -> dict[str, Any]:
    """Decodes the lines and scores them with `score_records`, prompts read in part included."""
    from .reads import with_reads  # numpy, which no plan needs

    records: Iterator[Any] = decoded(lines, benchmark.Record, run.source)
    if run.is_each_once:
        records = each_once(records, run.source)
    return with_reads(
        lambda every: benchmark.score_records(every, run.readings, run.specification),
        records,
        getattr(run.readings, "read", None),
    )


def scored_run(
    benchmark: ItemBenchmark[Any],
    folder: Path,
    manifest: Mapping[str, Any] | None,
    chosen: Mapping[str, Any] = MappingProxyType({}),
    *,
    is_each_once: bool = True,
) -> ScoredRun:
    """Returns the run in a folder, ready to be scored. `chosen`: the readings that replace the run's own. Raises
    LocalFault where its records may have the scores of a rescoring that was killed."""
    if manifest is not None and is_each_once and "task" not in chosen:
        require_whole(folder, manifest)
    rows = rows_in(folder, manifest)
    return ScoredRun(
        folder=folder,
        manifest=rows.manifest(manifest),
        readings=structs.replace(benchmark.readings_of(manifest), **chosen),
        rows=rows,
        source=str(folder / RECORDS),
        is_each_once=is_each_once,
    )


def score_folder(benchmark: ItemBenchmark[Any], folder: Path, chosen: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Scores a folder's records with the given readings and returns the contents of scores.json, and what that file
    keeps in their place, for a remark (empty: these are the run's own readings)."""
    path = folder / RECORDS
    manifest = read_manifest(folder) if (folder / MANIFEST).exists() else None
    try:
        run = scored_run(benchmark, folder, manifest, chosen)
        scores = scores_of(benchmark, run.rows.lines(record_lines(path)), run)
    except OSError as error:
        raise UsageError(f"{path}: expected a readable file, got: {error.strerror}") from error
    if not benchmark.has_answers(scores[benchmark.scores_name(run.specification)]):
        raise UsageError(f"{path}: expected records, got none: nothing to score")
    for caveat in benchmark.caveats(manifest, run.readings):
        remark(f"{folder}: {caveat}")
    return scores, "" if run.readings == benchmark.readings_of(manifest) else benchmark.kept_instead


def scores_again(
    benchmark: ItemBenchmark[Any], folder: Path, manifest: Mapping[str, Any], tally: Tally | None = None
) -> dict[str, Any]:
    """Returns the contents that scores.json of our own run should have. `tally` has its records (None: they are
    read)."""
    run = _own_run(benchmark, folder, manifest)
    return scores_of(benchmark, run.rows.lines(record_lines(folder / RECORDS)), run, tally)


def tally_again(benchmark: ItemBenchmark[Any], folder: Path, manifest: Mapping[str, Any]) -> Tally | None:
    """Returns what gathers the records of our own run for `scores_again`; None: that reads them, or has nothing to be
    compared with."""
    if manifest.get("ended") is None or not (folder / SCORES).exists():
        return None
    with suppress(*NOT_COMPARABLE):
        run = _own_run(benchmark, folder, manifest)
        return None if run.rows.names else benchmark.tally(run)
    return None


def _own_run(benchmark: ItemBenchmark[Any], folder: Path, manifest: Mapping[str, Any]) -> ScoredRun:
    return structs.replace(scored_run(benchmark, folder, manifest, is_each_once=False), source=RECORDS)
