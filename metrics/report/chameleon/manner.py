"""How runs were asked, as far as their manifests tell, and in what they differ from each other.

Owns what two runs must have in common for their rows to be a comparison, and how it is called. Knows no table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from ...chameleon.readings import ALLOWED
from ..labels import listed, plain
from .runs import Run

_NAMES = {
    "judge": "judge",
    "judge_prompt": "judge prompt",
    "judge_temperature": "judge temperature",
    "pages": "pages",
    "page_tokens": "page tokens",
    "keeps_pages": "old pages",
    "turns": "turns",
    "max_tokens": "max_tokens",
    "prompt_version": "prompt version",
}
_READINGS = tuple(ALLOWED)
_LONGEST, _DIGITS = 60, 8


def differences(runs: Sequence[Run]) -> list[str]:
    """What was not the same for all runs whose manner is known, each with its values and whose they are."""
    return _differing({run.label: dict(manner(run.specification)) for run in runs if run.specification})


def kind_of(run: Run) -> Hashable:
    """Runs that have the same were made alike; those that no manifest tells of are of one kind of their own."""
    return (frozenset(manner(run.specification)), run.data) if run.specification else None


def unlike(runs: Sequence[Run]) -> str:
    """In what runs were made differently, as a sentence; empty where all were made alike."""
    if len({kind_of(run) for run in runs}) < 2:
        return ""
    found = differences(runs)
    if (digests := data_sets(runs)) is not None:
        found.append(f"data set ({digests})")
    if unknown := [run.label for run in runs if not run.specification]:
        found.append(f"what is known of them (no manifest tells how {listed(unknown)} was made)")
    return (
        f"The runs were not made alike: they differ in {', '.join(found)}. Their models are not ranked among each "
        "other, and no figure is over all of them."
    )


def reading_differences(runs: Sequence[Run]) -> list[str]:
    """The same of the readings that the runs' own scores go by."""
    return _differing({run.label: dict(_readings(run.specification)) for run in runs if run.specification})


def _differing(every: Mapping[str, Mapping[str, str]]) -> list[str]:
    names = dict.fromkeys(name for own in every.values() for name in own)
    found = []
    for name in names:
        values = {label: own.get(name, "unknown") for label, own in every.items()}
        if len(set(values.values())) > 1:
            found.append(f"{name} ({_whose(values)})")
    return found


def data_sets(runs: Sequence[Run]) -> str | None:
    """The digests of what the runs were asked from, and whose they are, where they are not all the same."""
    values = {run.label: run.data[:_DIGITS] for run in runs if run.data is not None}
    return _whose(values) if len({run.data for run in runs if run.data is not None}) > 1 else None


def _whose(values: Mapping[str, str]) -> str:
    labels: dict[str, list[str]] = {}
    for label, value in values.items():
        labels.setdefault(value, []).append(label)
    return "; ".join(f"{value} in {listed(own)}" for value, own in labels.items())


def manner(specification: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What two runs must have in common, by the names that a reader is given."""
    for field, name in _NAMES.items():
        yield name, _shown(specification.get(field))
    yield "search", _search(specification)
    queries = specification.get("queries_by")
    yield "retrieval", "own" if queries is None else f"queries of {_shown(queries)}"
    yield "window", _window(specification)
    seed = specification.get("seed")
    yield "order", _shown(specification.get("order")) + ("" if seed is None else f" by seed {_shown(seed)}")


def _readings(specification: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    readings = specification.get("readings")
    for name in _READINGS:
        yield name, _shown(readings.get(name) if isinstance(readings, Mapping) else None)


def _search(specification: Mapping[str, Any]) -> str:
    """A corpus is told by its contents: two of them are two searches."""
    search, endpoints = specification.get("search"), specification.get("endpoints")
    address = endpoints.get(search) if isinstance(endpoints, Mapping) else None
    if isinstance(address, str) and address.startswith("corpus:"):
        return f"{_shown(search)} {address.partition(':')[2][:_DIGITS]}"
    return _shown(search)


def _window(specification: Mapping[str, Any]) -> str:
    """Tokens that a prompt to the models under test may have: as its run was told, where that is known."""
    if "window" in specification:
        given = specification["window"]
        return "each model's own" if given is None else f"{_shown(given)} tokens"
    tokens, pairs = specification.get("prompt_tokens"), specification.get("pairs") or ()
    if not isinstance(tokens, Mapping):
        return "unknown"
    own = {tokens[pair[0]] for pair in pairs if pair[0] in tokens}
    return " and ".join(f"{number:,}" for number in sorted(own)) + " tokens"


def _shown(value: Any) -> str:
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
            return " @ ".join(map(_shown, (each for each in value if each is not None)))
        case _:
            return plain(str(value), _LONGEST)
