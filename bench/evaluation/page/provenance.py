"""The rows of a report that say how a run was made, as far as the manifests of all benchmarks hold them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....format import dollars, rough_minutes
from ....providers.model_remarks import retirement
from ....providers.models import bundled_models
from ....report.standings import RunOrigin
from ..door.rescored import rescorings_in
from ..door.treatments import treatments_in

if TYPE_CHECKING:
    from ..door.benchmark import ItemBenchmark

_DIGESTS = ("Its digest", "Specification")
# What may have several lines.
_TEXTS = ("Prompt", "System", "Rubric")

NO_MANIFEST = "Records with no manifest, as other programs write them: how they were made is not known"


def origin_of(
    benchmark: ItemBenchmark[Any],
    manifest: Mapping[str, Any] | None,
    name: str,
    answers: int,
    settings: Mapping[str, str] | None = None,
) -> RunOrigin:
    """Returns how a run was made, of which so many answers were read. `settings` are its options as texts by name;
    None: those in its specification."""
    read = ("Answers read", f"{answers:,}")
    if manifest is None:
        return RunOrigin(name, (("Made by", NO_MANIFEST), read))
    described = benchmark.described(manifest["specification"])
    facts = [*_facts(manifest, described or settings)]
    if described:  # which says more than a digest
        facts = [each for each in facts if each[0] not in _DIGESTS]
    texts = tuple((label, text) for label, text in facts if label.startswith(_TEXTS))
    facts = [each for each in facts if each not in texts]
    return RunOrigin(name, (*facts, read), benchmark.command_of(manifest), texts)


def _facts(manifest: Mapping[str, Any], settings: Mapping[str, str] | None) -> Iterator[tuple[str, str]]:
    specification = manifest["specification"]
    dataset = manifest.get("dataset") or {}
    items = specification.get("items") or len(specification.get("conversations") or specification.get("issues") or ())
    yield "Data", f"{dataset.get('name') or dataset.get('path', 'unnamed')}, {items or '?'} items"
    yield "Its digest", str(specification.get("data"))
    for model, endpoint in (specification.get("endpoints") or {}).items():
        yield "Model", f"{model} at {endpoint}"
    yield from treatments_in(specification).items()
    options = specification.get("options") or {} if settings is None else settings
    for option, value in options.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        word, space, name = option.partition(" ")
        # The name of a variant, a scorer or a judge's rubric stays as it was written.
        yield f"{word.replace('_', ' ').capitalize()}{space}{name}", "not given" if value in (None, []) else text
    yield "Started", str(manifest.get("started") or "not noted")
    yield "Ended", str(manifest.get("ended") or "not yet")
    yield "Specification", str(manifest.get("specification_hash") or "no hash noted")
    for each in rescorings_in(manifest):
        yield "Scored again", f"{each.at[:10]} by {each.file}; the earlier scores: {each.scores}"
    if manifest.get("snapshot"):
        yield "Snapshot", str(manifest["snapshot"])
    versions = manifest.get("versions") or {}
    if versions:
        yield "Versions", ", ".join(f"{name} {number}" for name, number in versions.items())


def run_facts(manifests: Iterable[Mapping[str, Any] | None]) -> str:
    """Returns when runs took place, how long they took from start to end, and what they cost; empty if no manifest says
    so. The cost of models without a price is told as unknown."""
    dated = [manifest for manifest in manifests if manifest is not None and manifest.get("started")]
    if not dated:
        return ""
    days = sorted({str(manifest["started"])[:10] for manifest in dated})
    parts = [days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"]
    spans = [_minutes(manifest) for manifest in dated]
    if None not in spans:
        parts.append(f"{rough_minutes(sum(span or 0.0 for span in spans))} from start to end")
    costs = [row.get("cost") for manifest in dated for row in manifest.get("counts") or ()]
    paid = sum(cost for cost in costs if cost is not None)
    if None not in costs:
        parts.append(f"cost {dollars(paid)}" if costs else "cost unknown so far")
    else:
        unpriced = "cost unknown: no model has a price"
        parts.append(f"cost {dollars(paid)} and more, since some models have no price" if any(costs) else unpriced)
    return "; ".join([*parts, *_retirements(dated)])


def _retirements(manifests: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns the sentences on models that were retired when a run began, or were to be soon."""
    sentences = []
    for manifest in manifests:
        with suppress(ValueError):  # another program's manifest may have any text as its start
            day = datetime.fromisoformat(str(manifest["started"])).date().isoformat()
            for model in map(str, (manifest.get("specification") or {}).get("endpoints") or ()):
                sentences.append(retirement(model, bundled_models().of(model, day), day))
    return list(filter(None, dict.fromkeys(sentences)))


def _minutes(manifest: Mapping[str, Any]) -> float | None:
    """Returns the minutes from a run's start to its end; None if it has not ended."""
    try:
        started, ended = (datetime.fromisoformat(str(manifest[name])) for name in ("started", "ended"))
    except (KeyError, ValueError):
        return None
    return (ended - started).total_seconds() / 60


def command_paths(labels: Mapping[Path, str]) -> list[str]:
    """Returns the run folders as a command names them: from the current folder for those within it, else by their
    labels, since a page that is mailed says nothing of other folders."""
    here = Path.cwd()
    return [str(path.relative_to(here)) if path.is_relative_to(here) else label for path, label in labels.items()]
