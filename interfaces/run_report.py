"""The report that a run writes once its scores are told: each folder's own, and one of all folders of a sweep.

Owns that a report can fail and a run can't by it: whatever goes wrong is told in a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..bench.millstone.records import RecordError
from ..engine.fault import LocalFault
from ..engine.run_folder import RECORDS
from .execution import Result
from .refusal import UsageError
from .reporting import AnyFolder, Report, read, write


def report(results: Sequence[Result]) -> Iterator[str]:
    """Lines about what was written; those that begin with `millstream: ` are remarks."""
    own = [result.prepared.out for result in results if result.answered]
    if own and any(result.signal is not None or result.fault is not None for result in results):
        yield f"millstream: no report, since the run was cut short; millstream report {own[0]} writes one"
        return
    folders: dict[Path, AnyFolder] = {}
    if own:
        yield "millstream: writing the report (--no-report leaves it out)"
    for out, paths in _wanted(own, results):
        try:
            for path in paths:
                if path not in folders:
                    folders[path] = read(path)
            written = _write([folders[path] for path in paths], out)
        except (UsageError, RecordError, LocalFault) as error:
            yield f"millstream: no report in {out}: {' '.join(str(error).split())}"
        except Exception as error:  # noqa: BLE001 (the run is over and told: its exit code must not hang on a picture)
            told = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            yield f"millstream: no report in {out}, by a defect of ours ({told}); the run itself is not touched by it"
        else:
            yield f"report: {written.page}"


def _write(folders: Sequence[AnyFolder], out: Path) -> Report:
    # In the order in which they were begun, whichever of them has just been resumed.
    begun = sorted(folders, key=lambda folder: (str((folder.manifest or {}).get("started")), folder.path))
    return write(begun, out, has_figures=False)


def _wanted(own: Sequence[Path], results: Sequence[Result]) -> Iterator[tuple[Path, list[Path]]]:
    """Each folder's own report; then, where folders are of one sweep, the one of all of them, beside them."""
    for path in own:
        yield path, [path]
    if own:
        first = results[0].prepared
        together = [first.out.parent / name for name in (first.out.name, *first.sweep)]
        if len(together := [path for path in together if (path / RECORDS).is_file()]) > 1:
            yield first.out.parent, together
