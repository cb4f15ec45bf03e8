"""The remark on runs that stand in one table or report but were not made in the same way.

Their scores are computed and ranked separately, so nothing has to be left out.
"""

from __future__ import annotations

from collections.abc import Mapping


def unlike(manners: Mapping[str, Mapping[str, str]]) -> str:
    """Returns a sentence on how sources differ; empty if they are alike. `manners`: by source, how its records were
    made, as names with texts."""
    told = []
    for what in dict.fromkeys(what for own in manners.values() for what in own):
        values: dict[str, list[str]] = {}
        for source, own in manners.items():
            values.setdefault(own.get(what, "not known"), []).append(source)
        if len(values) > 1:
            shown = "; ".join(f"{value} in {', '.join(own)}" for value, own in values.items())
            told.append(f"{what} ({shown})")
    return f"they were not made alike: they differ in {', '.join(told)}" if told else ""
