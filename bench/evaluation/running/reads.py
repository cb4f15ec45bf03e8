"""Joins the rule of prompts read in part to runs: their manifests, the table of models, and scores of any shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import to_builtins

from ....metrics.read_in_part import RunReads
from ....wiring import Settings
from ..door.kept_options import kept_options
from ..door.record import Record
from ..door.run_counts import entry_of


def reads_of(benchmark: str, manifest: Mapping[str, Any] | None, read: str | None = None) -> RunReads:
    """Returns the empty counts of a run. `read`: the given reading; None: the run's own."""
    is_literal = (read or kept_options(manifest, benchmark).get("read")) == "literal"
    return RunReads(is_literal=is_literal, characters_of=lambda model: Settings().facts_of(model).characters)


def with_reads(
    score: Callable[[Iterator[Any]], Mapping[str, Any]], records: Iterable[Record], read: str | None
) -> dict[str, Any]:
    """Scores records, and adds `read_in_part` to the entries of models, with its sentences; an unread model keeps
    counts alone."""
    reads = reads_of("", None, read)

    def noted() -> Iterator[Record]:
        for record in records:
            reads.add(record.pair, record.long_prompts or ())
            yield record

    scores = dict(score(noted()))
    for pair in reads.pairs() if isinstance(scores.get("models"), Mapping) else ():
        part, entry = reads.of(pair), entry_of(scores, pair)
        names = [name for name, other in scores["models"].items() if other is entry]
        if part is None or not names:
            continue
        entry = {**(_without_figures(entry) if part.is_unread else entry), "read_in_part": to_builtins(part)}
        scores["models"] = {**scores["models"], names[0]: entry}
        kind = "unmeasured" if part.is_unread else "remarks"
        scores[kind] = [*scores.get(kind, ()), *filter(None, [part.remark(names[0])])]
        if part.is_unread:
            scores["pairs"] = [each for each in scores.get("pairs", ()) if names[0] not in (each["a"], each["b"])]
            scores["compared"] = [each for each in scores.get("compared", ()) if names[0] not in each]
    return scores


def _without_figures(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_figures(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_figures(each) for each in value]
    return None if isinstance(value, float) else value
