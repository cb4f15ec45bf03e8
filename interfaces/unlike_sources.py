"""What `score` says where several folders or tables stand below each other that were not made alike.

Owns the sentence. Scores of each are computed and ranked alone, so there is nothing to leave out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..bench.millstone.manner import manner_of
from ..engine.run_folder import MANIFEST, read_manifest
from ..metrics.report.chameleon.manner import manner

_BENCHMARKS = {"millstone": "MillStone", "chameleon": "Chameleon"}


def unlike(scored: Mapping[str, Mapping[str, Any]], *, is_recorded: bool = True) -> str:
    """In what the sources differ, by their names; empty where they were made alike."""
    manners = {source: _manner(Path(source), scores, is_recorded=is_recorded) for source, scores in scored.items()}
    told = []
    for what in dict.fromkeys(what for own in manners.values() for what in own):
        values: dict[str, list[str]] = {}
        for source, own in manners.items():
            values.setdefault(own.get(what, "not known"), []).append(source)
        if len(values) > 1:
            shown = "; ".join(f"{value} in {', '.join(own)}" for value, own in values.items())
            told.append(f"{what} ({shown})")
    return f"these are no comparison, since they were not made alike: they differ in {', '.join(told)}" if told else ""


def _manner(source: Path, scores: Mapping[str, Any], *, is_recorded: bool) -> dict[str, str]:
    benchmark = "chameleon" if "chameleon" in scores else "millstone"
    found = {"benchmark": _BENCHMARKS[benchmark]}
    manifest = read_manifest(source) if (source / MANIFEST).exists() else None
    if benchmark == "chameleon":
        if manifest is None:
            return found
        data = str(manifest["specification"].get("data"))[:12]
        return found | dict(manner(manifest["specification"])) | {"data set": data}
    models = scores["millstone"]["models"]
    found["issues"] = _issues(models)
    if manifest is None:
        return found
    specification = manifest["specification"]
    each = [manner_of(manifest, model, is_recorded=is_recorded) for model in specification["models"]]
    found |= {what: " and ".join(sorted({own[what] for own in each})) for what in each[0]}
    heats = ["not sent" if heat is None else f"{heat:g}" for heat in specification["temperatures"]]
    return found | {"temperatures": ", ".join(heats)}


def _issues(models: Mapping[str, Any]) -> str:
    """How many, and a digest of their names."""
    names = sorted({issue.casefold() for entry in models.values() for issue in entry["issues"]})
    return f"{len(names):,}, digest {hashlib.sha256('|'.join(names).encode()).hexdigest()[:6]}"
