"""Compares how runs were made, by their manifests.

Owns which settings two runs must share for their rows to be compared, and the settings' names. Knows no table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ....engine.runs.run_folder import MANIFEST, read_manifest
from ....metrics.chameleon.readings import ALLOWED
from ....report.labels import named_list, one_line
from ...evaluation.page import unlike_sources as sources
from .runs import ConversationRun

_NAMES = {
    "judge": "judge",
    "judge_prompt": "judge prompt",
    "judge_temperature": "judge temperature",
    "judge_effort": "judge effort",
    "pages": "pages",
    "page_tokens": "page tokens",
    "keeps_pages": "old pages",
    "turns": "turns",
    "max_tokens": "max_tokens",
    "prompt_version": "prompt version",
}
_READINGS = tuple(ALLOWED)
_LONGEST, _DIGITS = 60, 8


def differences(runs: Sequence[ConversationRun]) -> list[str]:
    """Returns a text for each setting that differs between runs with a manifest: its name, its values, and the runs
    that have them."""
    return sources.differences({run.label: dict(manner(run.specification)) for run in runs if run.specification})


def kind_of(run: ConversationRun) -> Hashable:
    """Returns a key that is equal for runs made alike; None for runs without a manifest."""
    return (frozenset(manner(run.specification)), run.data) if run.specification else None


def unlike(runs: Sequence[ConversationRun]) -> str:
    """Returns a sentence on how runs were made differently; empty if all were made alike."""
    if len({kind_of(run) for run in runs}) < 2:
        return ""
    texts = differences(runs)
    if (digests := data_sets(runs)) is not None:
        texts.append(f"data set ({digests})")
    if unknown := [run.label for run in runs if not run.specification]:
        texts.append(f"what is known of them (no manifest tells how {named_list(unknown)} was made)")
    return (
        f"The runs were not made alike: they differ in {', '.join(texts)}. Their models are not ranked among each "
        "other, and no figure is over all of them."
    )


def reading_differences(runs: Sequence[ConversationRun]) -> list[str]:
    """Returns a text for each reading that differs between the runs' own scores: its name, its values, and the runs
    that have them."""
    return sources.differences({run.label: dict(_readings(run.specification)) for run in runs if run.specification})


def data_sets(runs: Sequence[ConversationRun]) -> str | None:
    """Returns the digests of the runs' data sets, each with the runs that have it; None if all known ones are the
    same."""
    values = {run.label: run.data[:_DIGITS] for run in runs if run.data is not None}
    return sources.by_value(values) if len({run.data for run in runs if run.data is not None}) > 1 else None


def manner(specification: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields name and value of each setting that two runs must share to be compared."""
    for field, name in _NAMES.items():
        yield name, _value_text(specification.get(field))
    yield "search", _search(specification)
    queries = specification.get("queries_by")
    yield "retrieval", "own" if queries is None else f"queries of {_value_text(queries)}"
    yield "window", _window(specification)
    seed = specification.get("seed")
    yield "order", _value_text(specification.get("order")) + ("" if seed is None else f" by seed {_value_text(seed)}")


def _readings(specification: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    readings = specification.get("readings")
    for name in _READINGS:
        yield name, _value_text(readings.get(name) if isinstance(readings, Mapping) else None)


def _search(specification: Mapping[str, Any]) -> str:
    """Returns the search's name; for a corpus with a digest of its contents, since two corpora are two searches."""
    search, endpoints = specification.get("search"), specification.get("endpoints")
    address = endpoints.get(search) if isinstance(endpoints, Mapping) else None
    if isinstance(address, str) and address.startswith("corpus:"):
        return f"{_value_text(search)} {address.partition(':')[2][:_DIGITS]}"
    return _value_text(search)


def _window(specification: Mapping[str, Any]) -> str:
    """Returns as text the tokens that prompts to the models under test may have: the run's --window if it is known."""
    if "window" in specification:
        window = specification["window"]
        return "each model's own" if window is None else f"{_value_text(window)} tokens"
    tokens, pairs = specification.get("prompt_tokens"), specification.get("pairs") or ()
    if not isinstance(tokens, Mapping):
        return "unknown"
    limits = {tokens[pair[0]] for pair in pairs if pair[0] in tokens}
    return " and ".join(f"{number:,}" for number in sorted(limits)) + " tokens"


def _value_text(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "kept" if value else "dropped"
        case float():
            return f"{value:g}"
        case int():
            return f"{value:,}"
        case list():
            return " @ ".join(map(_value_text, (each for each in value if each is not None)))
        case _:
            return one_line(str(value), _LONGEST)


def manner_of_source(source: Path) -> dict[str, str]:
    """Returns the settings of a scored folder; empty without a manifest."""
    if not (source / MANIFEST).exists():
        return {}
    specification = read_manifest(source)["specification"]
    return dict(manner(specification)) | {"data set": str(specification.get("data"))[:12]}
