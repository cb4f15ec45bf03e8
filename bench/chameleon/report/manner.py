"""Compares how runs were made, by their manifests.

Owns which settings two runs must share for their rows to be compared, and their texts. Knows no table.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from ....engine.runs.run_folder import MANIFEST, read_manifest
from ....report.labels import named_list, one_line
from ...evaluation.door.kept_options import kept_options
from ...evaluation.page.unlike_sources import differences
from ..options import PromptOptions
from .runs import ConversationRun

_SETTINGS = (
    *("judge", "judge_temperature", "judge_effort", *PromptOptions.__struct_fields__),
    *("keeps_pages", "prompt_version", "queries_by"),
)
_LONGEST, _DIGITS = 60, 8


def kind_of(run: ConversationRun) -> Hashable:
    """Returns a key that is equal for runs made alike; None for runs without a manifest."""
    return None if run.manifest is None else frozenset(manner(run.manifest).items())


def unlike(runs: Sequence[ConversationRun]) -> str:
    """Returns a sentence on how runs were made differently; empty if all were made alike."""
    if len({kind_of(run) for run in runs}) < 2:
        return ""
    texts = differences({run.label: manner(run.manifest) for run in runs if run.manifest is not None})
    if unknown := [run.label for run in runs if run.manifest is None]:
        texts.append(f"what is known of them (no manifest tells how {named_list(unknown)} was made)")
    return (
        f"The runs were not made alike: they differ in {', '.join(texts)}. What lies between their rows may come of "
        "that alone. Their models are not ranked among each other, and no figure is over all of them."
    )


def reading_differences(runs: Sequence[ConversationRun]) -> list[str]:
    """Returns a text for each reading that differs between the runs' own scores: its name, its values, and the runs
    that have them."""
    return differences({run.label: to_builtins(run.readings) for run in runs if run.manifest is not None})


def manner(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Returns the settings that two runs must share to be compared, as texts by name."""
    specification, kept = manifest["specification"], kept_options(manifest, "chameleon")
    values = {name.replace("_", " "): _text(specification.get(name)) for name in _SETTINGS}
    # Two corpora are two searches.
    search = str(specification.get("search"))
    address = str((specification.get("endpoints") or {}).get(search, ""))
    corpus = f" {address.partition(':')[2][:_DIGITS]}" if address.startswith("corpus:") else ""
    window = _text(kept["window"]) if "window" in kept else "not known"
    data = str(specification.get("data"))[:_DIGITS]
    return {**values, "search": search + corpus, "window": window, "data set": data}


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " @ ".join(map(_text, (each for each in value if each is not None)))
    return "none" if value is None else one_line(str(value), _LONGEST)


def manner_of_source(source: Path) -> dict[str, str]:
    """Returns the settings of a scored folder; empty without a manifest."""
    return manner(read_manifest(source)) if (source / MANIFEST).exists() else {}
