"""The rows of a report that say how a run was made, as far as the manifests of all benchmarks hold them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

NO_MANIFEST = "Records with no manifest, as other programs write them: how they were made is not known"


def times_and_versions(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the name and the text of each such row: times, specification, snapshot, versions."""
    yield "Started", str(manifest.get("started") or "not noted")
    yield "Ended", str(manifest.get("ended") or "not yet")
    yield "Specification", str(manifest.get("specification_hash") or "no hash noted")
    if manifest.get("snapshot"):
        yield "Snapshot", str(manifest["snapshot"])
    versions = manifest.get("versions") or {}
    if versions:
        yield "Versions", ", ".join(f"{name} {number}" for name, number in versions.items())
