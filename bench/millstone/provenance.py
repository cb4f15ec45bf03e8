"""How a MillStone run was made, by its manifest: facts for a reader, and the command that runs it again.

Owns these words. Reports are passed on, so data sets and files are named without their folders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...configuration.declared_options import words_kept
from ...report.standings import RunOrigin
from ..evaluation.door.kept_options import command_again
from ..evaluation.door.treatments import pairs_in, treatments_in
from ..evaluation.page.provenance import NO_MANIFEST, times_and_versions
from .grid import limit_name
from .options import Options

_SHOWN = 6


def origin_of(name: str, manifest: Mapping[str, Any] | None, answers: int, labels: str) -> RunOrigin:
    """Returns the facts and the command for the page. `labels`: a sentence on which orientation labels were used.
    Raises KeyError or TypeError if the manifest is not a MillStone run's."""
    if manifest is None:
        return RunOrigin(name, (("Made by", NO_MANIFEST), ("Labels", labels), ("Answers read", f"{answers:,}")))
    facts = (*_facts(manifest), ("Labels", labels), ("Answers read", f"{answers:,}"))
    return RunOrigin(name, facts, _command(manifest))


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
    for name in dict.fromkeys(map(limit_name, pairs_in(specification))):
        endpoint = specification.get("endpoints", {}).get(name.partition(" @ ")[0], "unknown")
        limit = specification.get("max_tokens", {}).get(name)
        yield "Model", f"{name} at {endpoint}, max_tokens {'not sent' if limit is None else limit}"
    yield from treatments_in(specification).items()
    yield "Stances", f"read as the {specification['stance']} reading has it, unless told otherwise above"
    yield from times_and_versions(manifest)


def _command(manifest: Mapping[str, Any]) -> str:
    """Returns the command with the options that decide prompts and answers; empty if the manifest lacks them."""

    def words_of(kept: Mapping[str, Any]) -> list[str]:
        options = {**kept, "issues": kept.get("issues_asked"), "limit": kept.get("limit_asked")}
        return ["millstone", *words_kept(Options, options)]

    return command_again(manifest, "millstone", words_of)
