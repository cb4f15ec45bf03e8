"""Scores the lines of turns, and formats Chameleon's scores.

Owns the table, and the remarks on missing turns and on readings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import convert

from ...configuration.declared_options import kept_of
from ...configuration.errors import UsageError
from ...engine.pairs import NOT_SENT
from ...engine.runs.run_folder import MANIFEST
from ...metrics.chameleon.readings import Readings
from ...metrics.chameleon.scores import ZEROS, scores
from ...metrics.chameleon.traces import Traces
from ...metrics.read_in_part import RunReads
from ...report.interval_text import interval_cell, single_figures
from ...report.text import table
from ..evaluation.door.served_rows import ScoredRun
from ..evaluation.running.journals import RecordError
from ..evaluation.running.reads import reads_of
from .readings import flags_of, readings_of
from .run_spec import planned_turns

_BEFORE, _BEHIND = ("model", "temperature"), ("incomplete", "no change", "unclear turns")


def read_traces(journals: Mapping[str, Iterable[bytes]], reads: RunReads) -> Traces:
    """Returns the turns and failures in the lines, without their newlines, of whole files by name. Raises RecordError,
    which names file and line, if one can't be read."""
    traces = Traces(reads)
    for name, lines in journals.items():
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    traces.add(line)
                except ValueError as error:
                    raise RecordError(f"{name} line {number}: {error}") from error
    return traces


def score_lines(lines: Iterable[bytes], run: ScoredRun) -> Mapping[str, Any]:
    """Returns the scores of turns, ours or another program's. Raises UsageError if the manifest is not a Chameleon
    run's."""
    traces = read_traces({run.source: lines}, reads_of("chameleon", run.manifest, run.readings.read))
    if run.is_each_once and traces.repeated:
        raise RecordError(f"{run.source}: {traces.repeated[0]} stands there twice: keep one")
    try:
        planned = {} if run.specification is None else planned_turns(run.specification)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{run.folder}: its {MANIFEST} is no Chameleon run's ({error!r})") from error
    readings = readings_of(kept_of(run.readings))
    return scores(traces, readings, planned, run.rows.is_ranked)


def score_text(source: str, part: Mapping[str, Any], columns: tuple[str, ...]) -> str:
    rows: list[tuple[str, ...]] = [(*_BEFORE, *columns, *_BEHIND)]
    remarks: list[str] = []
    for model, by_temperature in part["models"].items():
        for temperature, entry in by_temperature.items():
            counts = (entry[name] for name in ("incomplete", "no_change", "unclear"))
            rows.append((model, temperature, *cells(entry), *(f"{count:,}" for count in counts)))
    remarks += [*remarks_of(part), *part["unmeasured"]]
    remarks.append(f"read with {', '.join(map(' '.join, flags_of(convert(part['readings'], Readings))))}")
    return "\n".join((source, table(rows), *remarks))


def cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the texts of a pair's row under the columns of the benchmark."""
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


def _spread(figure: Mapping[str, Any]) -> str:
    mean, std = figure["mean"], figure["std"]
    return "-" if mean is None else f"{mean:.3f}" + ("" if std is None else f" ± {std:.3f}")


def remarks_of(part: Mapping[str, Any]) -> Iterator[str]:
    """Yields the remarks of the scores, and those on intervals over few conversations."""
    yield from part["remarks"]
    for model, by_temperature in part["models"].items():
        for temperature, entry in by_temperature.items():
            held = part["conversations"].get(model, {}).get(temperature, {})
            figures = {name: figure["score"] if figure["complete"] else None for name, figure in held.items()}
            name = model if temperature == NOT_SENT else f"{model} @ {temperature}"
            yield from single_figures(name, entry["score"], figures, 3)
