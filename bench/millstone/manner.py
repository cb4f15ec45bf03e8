"""How a run's prompts were made and its answers read, by its manifest: the settings that comparable runs share.

Owns which fields of a specification these are, and their names for readers. Model, address and temperature are left to
others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...configuration.declared_options import kept_of, read_kept
from ...engine.pairs import Pair
from ...engine.runs.run_folder import MANIFEST, read_manifest
from ..evaluation.door.kept_options import kept_options
from ..evaluation.door.treatments import pairs_in, treatments_in
from .grid import default_max_tokens, limit_name
from .options import GridOptions

_VERSIONS = ("citations", "prompt_version", "draw_version")
_DIGITS = 12
_UNKNOWN = {"how it was asked": "not known, as no manifest tells"}


def manner_of(
    manifest: Mapping[str, Any] | None, pair: Pair, *, digest: str | None = None, is_recorded: bool = True
) -> dict[str, str]:
    """Returns these settings as names with texts. `digest`: of the data set with other labels than the run used (None:
    the run's own); `is_recorded`: stances are those of the records, so the run's reading of texts counts too."""
    if manifest is None:
        return dict(_UNKNOWN)
    specification = manifest["specification"]
    settings = _fields(specification)
    settings["data set"] = str(digest or specification.get("data"))[:_DIGITS]
    labels = (manifest.get("dataset") or {}).get("labels") or {}
    if labels.get("differ") and digest is None:
        settings["orientation labels"] = str(labels.get("used"))
    settings["max_tokens"] = _max_tokens(manifest, pair)
    if is_recorded:
        settings["stance reading"] = str(specification.get("stance", "not known"))
    return settings


def settings_of(manifest: Mapping[str, Any] | None, labels: str) -> dict[str, str]:
    """Returns the settings of a run for a reader, as names with texts. `labels`: the sentence on its orientation
    labels."""
    if manifest is None:
        return {}
    specification = manifest["specification"]
    limits = (specification.get("max_tokens") or {}).items()
    return {
        **_fields(specification),
        "max_tokens": ", ".join(f"{name} {'not sent' if limit is None else limit}" for name, limit in limits),
        "stance reading": str(specification.get("stance", "not known")),
        "labels": labels,
    }


def _fields(specification: Mapping[str, Any]) -> dict[str, str]:
    values = kept_of(read_kept(GridOptions, specification))
    values |= {field: specification.get(field, "not known") for field in _VERSIONS}
    return {field.replace("_", " "): str(value) for field, value in values.items()}


def _max_tokens(manifest: Mapping[str, Any], pair: Pair) -> str:
    """Returns a pair's max_tokens in a run as text, such as `1,000`: "not sent" if there was none, "the protocol's" if
    it was MillStone's own default, which differs by model, so that runs with their defaults are comparable."""
    limit = (manifest["specification"].get("max_tokens") or {}).get(limit_name(pair))
    kept = kept_options(manifest, "millstone")
    # For a model that thinks the protocol sends none, whatever its name.
    is_default = limit is None and "model" in kept and kept.get("max_tokens") is None
    if is_default or limit == default_max_tokens(pair.model):
        return "the protocol's"
    return "not sent" if limit is None else f"{limit:,}"


def manner_of_source(source: Path, scores: Mapping[str, Any], *, is_recorded: bool) -> dict[str, str]:
    """Returns the settings of a scored folder or table that must be equal for it to be compared, each by its name in
    reports. `is_recorded`: stances are those in the records, so that the reading is one of the settings."""
    settings = {"issues": _issues(scores["millstone"]["models"])}
    if not (source / MANIFEST).exists():
        return settings
    manifest = read_manifest(source)
    specification = manifest["specification"]
    each = [manner_of(manifest, pair, is_recorded=is_recorded) for pair in pairs_in(specification)]
    settings |= {what: " and ".join(sorted({manner[what] for manner in each})) for what in each[0]}
    return settings | {f"{name.lower()}s": text for name, text in treatments_in(specification).items()}


def _issues(models: Mapping[str, Any]) -> str:
    """Returns the number of issues and the first six digits of a digest of their names."""
    names = sorted({issue.casefold() for entry in models.values() for issue in entry["issues"]})
    return f"{len(names):,}, digest {hashlib.sha256('|'.join(names).encode()).hexdigest()[:6]}"
