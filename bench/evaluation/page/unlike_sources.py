"""The remark on runs that stand in one table or report but were not made in the same way.

Their scores are computed and ranked separately, so nothing has to be left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....report.labels import named_list


def unlike(manners: Mapping[str, Mapping[str, str]]) -> str:
    """Returns a sentence on how sources differ; empty if they are alike. `manners`: by source, how its records were
    made, as names with texts."""
    differing = differences(manners)
    return f"they differ in {', '.join(differing)}" if differing else ""


def differences(manners: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Returns a text for each name whose texts differ between sources: the name, its texts, and who has them."""
    every = {
        name: {source: manner.get(name, "not known") for source, manner in manners.items()}
        for name in dict.fromkeys(name for manner in manners.values() for name in manner)
    }
    return [f"{name} ({by_value(values)})" for name, values in every.items() if len(set(values.values())) > 1]


def by_value(values: Mapping[str, str]) -> str:
    """Returns the values of sources in words, each once with the sources that have it."""
    sources: dict[str, list[str]] = {}
    for source, value in values.items():
        sources.setdefault(value, []).append(source)
    return "; ".join(f"{value} in {named_list(names)}" for value, names in sources.items())
