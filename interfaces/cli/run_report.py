"""Writes the reports of a run after its scores: one for each folder, and one for all folders of a sweep.

A report that fails does not fail the run: the error is reported in a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...bench.evaluation.page.reporting import BenchmarkFolder, read, write
from ...bench.evaluation.running.execution import RunResult
from ...bench.evaluation.running.journals import RecordError
from ...configuration.errors import UsageError
from ...engine.fault import LocalFault
from ...engine.runs.run_folder import RECORDS
from ...format import command_text


def report(results: Sequence[RunResult]) -> Iterator[str]:
    """Writes the reports and yields lines about the files; those that begin with `millstream: ` are remarks."""
    outs = [result.prepared.out for result in results if result.answered]
    if outs and any(result.end.signal is not None or result.end.fault is not None for result in results):
        yield f"millstream: no report, since the run was cut short; {command_text('report', outs[0])} writes one"
        return
    folders: dict[Path, BenchmarkFolder] = {}
    if outs:
        yield "millstream: writing the report (--no-report leaves it out)"
    for out, paths in _wanted(outs, results):
        try:
            for path in paths:
                if path not in folders:
                    folders[path] = read(path)
            # In the order in which they were begun, even if one of them has just been resumed.
            read_folders = sorted((folders[path] for path in paths), key=_begun)
            written = write(read_folders, out, has_figures=False)
        except (UsageError, RecordError, LocalFault) as error:
            yield f"millstream: no report in {out}: {' '.join(str(error).split())}"
        except Exception as error:  # noqa: BLE001 (the run is over and reported: its exit code must not hang on a picture)
            cause = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            yield f"millstream: no report in {out}, by a defect of ours ({cause}); the run itself is not touched by it"
        else:
            yield f"report: {written.page}"


def _begun(folder: BenchmarkFolder) -> tuple[str, Path]:
    return str((folder.manifest or {}).get("started")), folder.path


def _wanted(outs: Sequence[Path], results: Sequence[RunResult]) -> Iterator[tuple[Path, list[Path]]]:
    """Yields the folders of each report: each folder alone, then those of one sweep together."""
    for path in outs:
        yield path, [path]
    if outs:
        first = results[0].prepared
        together = [first.out.parent / name for name in (first.out.name, *first.sweep)]
        if len(together := [path for path in together if (path / RECORDS).is_file()]) > 1:
            yield first.out.parent, together
