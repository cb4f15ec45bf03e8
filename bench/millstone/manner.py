"""How a run's prompts were made and its answers read, as far as its manifest tells: what like runs have in common.

Owns which fields of a specification these are and what they are called. Who was asked, where and at which temperature
is told elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .grid import default_max_tokens

_FIELDS = {
    "protocol": "protocol",
    "templates": "templates",
    "trials": "trials",
    "citations": "citations",
    "prompt_version": "prompt version",
    "draw_version": "draw version",
}
_DIGITS = 12
_UNKNOWN = {"how it was asked": "not known, as no manifest tells"}


def manner_of(
    manifest: Mapping[str, Any] | None, model: str, *, digest: str | None = None, is_recorded: bool = True
) -> dict[str, str]:
    """By the names that a reader is given. `digest`: of the data set, where its labels are read otherwise than the run
    did; `is_recorded`: stances are taken as the run read them."""
    if manifest is None:
        return dict(_UNKNOWN)
    specification = manifest["specification"]
    found = {name: str(specification.get(field, "not known")) for field, name in _FIELDS.items()}
    found["data set"] = str(digest or specification.get("data"))[:_DIGITS]
    labels = (manifest.get("dataset") or {}).get("labels") or {}
    if labels.get("differ") and digest is None:
        found["orientation labels"] = str(labels.get("used"))
    found["max_tokens"] = _max_tokens(manifest, model)
    if is_recorded:
        found["stance reading"] = str(specification.get("stance", "not known"))
    return found


def _max_tokens(manifest: Mapping[str, Any], model: str) -> str:
    """The protocol has other limits for other models, which makes them no less comparable."""
    limit = (manifest["specification"].get("max_tokens") or {}).get(model)
    kept = (manifest.get("options") or {}).get("millstone") or {}
    # To a model that thinks the protocol sends none, whatever its name.
    is_default = limit is None and "model" in kept and kept.get("max_tokens") is None
    if is_default or limit == default_max_tokens(model):
        return "the protocol's"
    return "not sent" if limit is None else f"{limit:,}"
