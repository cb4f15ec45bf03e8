"""How a MillStone run came about, told from its manifest: facts for a reader, and the command that asks the same again.

Owns these words. A report is handed on, so it names data sets and files without the folders they lay in.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..metrics.report.contents import Origin
from .benchmark_options import MillstoneOptions

NO_MANIFEST = "Records with no manifest, as other programs write them: how they were made is not known"
_SHOWN = 6


def origin_of(name: str, manifest: Mapping[str, Any] | None, answers: int, labels: str) -> Origin:
    """`labels`: which orientation labels were used. Raises KeyError or TypeError where the manifest is none of a
    MillStone run."""
    if manifest is None:
        return Origin(name, (("Made by", NO_MANIFEST), ("Labels", labels), ("Answers read", f"{answers:,}")))
    facts = (*_facts(manifest), ("Labels", labels), ("Answers read", f"{answers:,}"))
    return Origin(name, facts, _command(manifest))


def _facts(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    specification = manifest["specification"]
    dataset = manifest.get("dataset") or {}
    issues = specification["issues"]
    yield "Data set", f"{dataset.get('name', 'unnamed')}, {len(issues):,} of its issues asked"
    yield "Its digest", str(specification["data"])
    yield (
        "Protocol",
        f"{specification['protocol']}: {specification['templates']} templates, {specification['trials']} trials, "
        f"citations {specification['citations']}",
    )
    yield "Prompts and draws", f"version {specification['prompt_version']} and {specification['draw_version']}"
    for model in specification["models"]:
        endpoint = specification.get("endpoints", {}).get(model, "unknown")
        limit = specification.get("max_tokens", {}).get(model)
        yield "Model", f"{model} at {endpoint}, max_tokens {'not sent' if limit is None else limit}"
    heats = ["not sent" if heat is None else f"{heat:g}" for heat in specification["temperatures"]]
    yield "Temperature", ", ".join(heats)
    yield "Stances", f"read as the {specification['stance']} reading has it, unless told otherwise above"
    yield from times_and_versions(manifest)


def times_and_versions(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What every benchmark's manifest tells alike."""
    yield "Started", str(manifest.get("started") or "not noted")
    yield "Ended", str(manifest.get("ended") or "not yet")
    yield "Specification", str(manifest.get("specification_hash") or "no hash noted")
    if manifest.get("snapshot"):
        yield "Snapshot", str(manifest["snapshot"])
    versions = manifest.get("versions") or {}
    if versions:
        yield "Versions", ", ".join(f"{name} {number}" for name, number in versions.items())


def _command(manifest: Mapping[str, Any]) -> str:
    """With what a run was asked for, as far as it decides prompts and answers."""
    options = manifest.get("options") or {}
    kept, sending = options.get("millstone") or {}, options.get("sending") or {}
    if "model" not in kept:
        return ""
    words = ["millstream", "run", "millstone", "--model", *kept["model"]]
    if kept.get("temperature"):
        words += ["--temperature", *(f"{heat:g}" for heat in kept["temperature"])]
    if kept.get("dataset") is not None:
        words += ["--dataset", Path(kept["dataset"]).name]
    asked = {**kept, "issues": kept.get("issues_asked"), "limit": kept.get("limit_asked")}
    for name in (
        "max_tokens",
        "stance",
        "silence",
        "intervals",
        "protocol",
        "citations",
        "issues",
        "limit",
        "templates",
        "trials",
    ):
        value = asked.get(name)
        if value is not None and value != getattr(MillstoneOptions, name):
            words += [f"--{name.replace('_', '-')}", str(value)]
    if kept.get("fix_orientation"):
        words.append("--fix-orientation")
    if sending.get("base_url"):
        words += ["--base-url", sending["base_url"]]
    if sending.get("config"):
        words += ["--config", Path(sending["config"]).name]
    return f"{shlex.join(words)} --out DIR"
