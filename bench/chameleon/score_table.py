"""Scores a folder's records for `score`, and formats Chameleon's scores.

Owns the table, the remarks on missing turns and on readings, and when scores.json is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...configuration.errors import UsageError
from ...engine.runs.pairs import NOT_SENT, Pair
from ...engine.runs.run_folder import MANIFEST, RECORDS, read_manifest
from ...metrics.chameleon.readings import Readings
from ...metrics.chameleon.scores import ZEROS, scores
from ...metrics.chameleon.traces import Asked, Traces
from ...metrics.read_in_part import RunReads
from ...report.interval_text import interval_cell, single_figures
from ...report.text import table
from ..evaluation.reads import reads_of
from ..evaluation.record_lines import record_lines
from ..evaluation.served import ONE_ROW_EACH, ServedRows, rows_in
from .readings import readings_of, words_of

COLUMNS = (
    "score",
    "95% interval over conversations",
    "rank",
    "scored",
    "SRR",
    "uncited turns",
    "confidence",
    "other confidence",
    "changes",
)
_HEADER = ("model", "temperature", *COLUMNS, "incomplete", "no change", "unclear turns")


def traces_in(path: Path, reads: RunReads | None = None, rows: ServedRows = ONE_ROW_EACH) -> Traces:
    """Returns the turns of a file of records, ours or another program's. Raises UsageError, which names the line, if it
    can't be read."""
    traces = Traces(reads)
    try:
        for number, written in enumerate(record_lines(path), 1):
            if line := rows.line(written).strip():
                try:
                    traces.add(line)
                except ValueError as error:
                    raise UsageError(f"{path} line {number}: {error}") from error
    except OSError as error:
        raise UsageError(f"{path}: expected a readable file, got: {error.strerror}") from error
    if traces.repeated:
        raise UsageError(f"{path}: {traces.repeated[0]} stands there twice: keep one")
    return traces


def score_folder(folder: Path, given: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    path = folder / RECORDS
    manifest = read_manifest(folder) if (folder / MANIFEST).exists() else None
    rows = rows_in(folder, manifest)
    asked, run = _asked(folder, rows)
    traces = traces_in(path, reads_of("chameleon", manifest, given.get("read")), rows)
    readings = readings_of(given, run)
    found = scores(traces, readings, asked, rows.is_ranked)
    if not found["chameleon"]["models"]:
        raise UsageError(f"{path}: expected records, got none: nothing to score")
    is_own = readings == run and not given.get("read")
    return rows.scores(found), "" if is_own else "the run's own readings; these scores are only shown"


def _asked(folder: Path, rows: ServedRows) -> tuple[Asked, Readings]:
    """Returns the planned turns and the run's readings; without a manifest, no turns and the default readings."""
    from .run_spec import asked_of, readings_of_run

    if not (folder / MANIFEST).exists():
        return {}, Readings()
    manifest = read_manifest(folder)
    try:
        return asked_of(rows.specification(manifest["specification"])), readings_of_run(manifest)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{folder}: its {MANIFEST} is no Chameleon run's ({error!r})") from error


def told(source: str, scores: Mapping[str, Any]) -> str:
    found = scores["chameleon"]
    rows: list[tuple[str, ...]] = [_HEADER]
    remarks: list[str] = []
    for model, by_temperature in found["models"].items():
        for temperature, entry in by_temperature.items():
            counts = (entry[name] for name in ("incomplete", "no_change", "unclear"))
            rows.append((model, temperature, *cells(entry), *(f"{count:,}" for count in counts)))
    remarks += [*remarks_of(scores), *found["unmeasured"]]
    remarks.append(f"read with {words_of(found['readings'])}")
    return "\n".join((source, table(rows), *remarks))


def entry_of(scores: Mapping[str, Any], pair: Pair) -> Mapping[str, Any]:
    entry: Mapping[str, Any] = scores["chameleon"]["models"].get(pair.model, {}).get(pair.treatment) or {}
    return entry


def cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the texts of a pair's row under COLUMNS."""
    if not entry:
        return ("-",) * len(COLUMNS)
    score, srr, confidence, changes = (_spread(entry[kind]) for kind in ("score", "srr", "confidence", "changes"))
    of_shifts = _spread(entry["confidence_shifts"])
    return (
        *(score, interval_cell(entry["score"], 3), "-" if entry["rank"] is None else str(entry["rank"])),
        f"{entry['conversations']:,} of {entry['conversations'] + entry['unscored'] + entry['incomplete']:,}",
        *(srr, _uncited(entry), confidence, f"shifts {of_shifts}" if of_shifts != "-" else "-", changes),
    )


def _uncited(entry: Mapping[str, Any]) -> str:
    """Returns the number of turns without a source, with the figures that 0 in their place gives."""
    srr, score = (entry[kind]["mean"] for kind in ZEROS)
    text = f"{entry['uncited_turns']:,}"
    return text if srr is None or text == "0" else f"{text} (as 0: SRR {srr:.3f}, score {score:.3f})"


def _spread(found: Mapping[str, Any]) -> str:
    mean, std = found["mean"], found["std"]
    return "-" if mean is None else f"{mean:.3f}" + ("" if std is None else f" ± {std:.3f}")


def remarks_of(scores: Mapping[str, Any]) -> Iterator[str]:
    """Yields the remarks of the scores, and those on intervals over few conversations."""
    yield from scores["chameleon"]["remarks"]
    for model, by_temperature in scores["chameleon"]["models"].items():
        for temperature, entry in by_temperature.items():
            held = scores["chameleon"]["conversations"].get(model, {}).get(temperature, {})
            figures = {name: found["score"] if found["complete"] else None for name, found in held.items()}
            name = model if temperature == NOT_SENT else f"{model} @ {temperature}"
            yield from single_figures(name, entry["score"], figures, 3)
