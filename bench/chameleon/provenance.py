"""How a Chameleon run was made, by its manifest: facts for a reader, and the command that repeats it.

Owns these texts. A report is shared with others, so it names data sets and files without their folders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...configuration.declared_options import words_kept
from ...engine.runs.pairs import Pair
from ...report.standings import RunOrigin
from ..evaluation.door.kept_options import command_again
from ..evaluation.door.treatments import pairs_in, treatments_in
from ..evaluation.page.provenance import NO_MANIFEST, times_and_versions
from .options import Options, Readings


def origin_of(name: str, manifest: Mapping[str, Any] | None, turns: int, sent: Iterable[float | None]) -> RunOrigin:
    """Returns the facts and the command for the page. `sent` are the temperatures that the judge was sent (None:
    none). Raises KeyError or TypeError if the manifest is not a Chameleon run's."""
    if manifest is None:
        return RunOrigin(name, (("Made by", NO_MANIFEST), ("Turns read", f"{turns:,}")))
    return RunOrigin(name, (*_facts(manifest, sent), ("Turns read", f"{turns:,}")), _command(manifest))


def _facts(manifest: Mapping[str, Any], sent: Iterable[float | None]) -> Iterator[tuple[str, str]]:
    specification = manifest["specification"]
    dataset, endpoints = manifest.get("dataset") or {}, specification["endpoints"]
    yield (
        "Data set",
        f"{dataset.get('name', 'unnamed')}, {len(specification['conversations']):,} of its conversations held",
    )
    yield "Its digest", str(specification["data"])
    seed = f" by seed {specification['seed']}" if specification["seed"] is not None else ""
    yield "Turns", f"up to {specification['turns']:,}, in the order {specification['order']}{seed}"
    for model, treatments in _pairs(specification).items():
        limit = "not sent" if specification["max_tokens"] is None else f"{specification['max_tokens']:,}"
        yield "Model", f"{model} at {endpoints.get(model, 'unknown')}, {treatments}, max_tokens {limit}"
    at = sorted(sent, key=str) or [specification["judge_temperature"]]
    temperature = " and ".join("not sent" if each is None else f"{each:g}" for each in at)
    effort = f", effort {judge_effort}" if (judge_effort := specification.get("judge_effort")) else ""
    yield (
        "Judge",
        f"{specification['judge']} at {endpoints.get(specification['judge'], 'unknown')}, temperature "
        f"{temperature}{effort}, prompt {specification['judge_prompt']}",
    )
    yield "Search", f"{specification['search']} at {endpoints.get(specification['search'], 'unknown')}"
    whose = specification["queries_by"]
    queries = "each model's own" if whose is None else f"those of {whose[0]}, shared by all"
    yield "Queries", queries
    kept = ", those of earlier turns kept" if specification["keeps_pages"] else ""
    yield "Pages", f"up to {specification['pages']:,} a turn, {specification['page_tokens']:,} tokens of each{kept}"
    omitted = "those without room omit pages before the last two turns"
    yield "Prompts", f"version {specification['prompt_version']}; {omitted}"
    yield from times_and_versions(manifest)


def _pairs(specification: Mapping[str, Any]) -> dict[str, str]:
    of_models: dict[str, list[Pair]] = {}
    for pair in pairs_in(specification):
        of_models.setdefault(pair.model, []).append(pair)
    by_model = {model: treatments_in({"pairs": own}) for model, own in of_models.items()}
    return {model: ", ".join(f"{name.lower()} {text}" for name, text in own.items()) for model, own in by_model.items()}


def _command(manifest: Mapping[str, Any]) -> str:
    """Returns the command with the options that decide prompts and answers; empty if the manifest lacks them."""

    def words_of(kept: Mapping[str, Any]) -> list[str]:
        return ["chameleon", *words_kept(Options, kept), *words_kept(Readings, kept)]

    return command_again(manifest, "chameleon", words_of)
