"""How a run was asked, as far as two runs must have it in common."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.bench.millstone.manner import manner_of
from millstream.engine.pairs import Pair

SPECIFICATION = {
    "data": "d" * 64, "protocol": "paper", "templates": 6, "trials": 15, "citations": "own", "prompt_version": 1,
    "draw_version": 1, "stance": "paper", "max_tokens": {"openai/gpt-4o": 100, "xai/grok": None},
}  # fmt: skip


def manifest(labels: dict[str, Any] | None = None, given: int | None = None, **changed: Any) -> dict[str, Any]:
    """`given`: what --max-tokens said; `changed` are fields of the specification."""
    options = {"millstone": {"model": ["m"], "max_tokens": given}}
    return {"specification": SPECIFICATION | changed, "options": options, "dataset": {"labels": labels}}


def differing(one: dict[str, str], other: dict[str, str]) -> list[str]:
    return [what for what in one.keys() | other.keys() if one.get(what) != other.get(what)]


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"data": "e" * 64}, ["data set"]),
        ({"protocol": "released"}, ["protocol"]),
        ({"templates": 3}, ["templates"]),
        ({"trials": 1}, ["trials"]),
        ({"citations": "cumulative"}, ["citations"]),
        ({"prompt_version": 2}, ["prompt version"]),
        ({"stance": "careful"}, ["stance reading"]),
        ({"max_tokens": {"openai/gpt-4o": 9}, "given": 9}, ["max_tokens"]),
        ({"labels": {"differ": 3, "used": "as given"}}, ["orientation labels"]),
        ({"labels": {"differ": 0, "used": "by wording"}}, []),
        ({"endpoints": {"m": "there"}, "temperatures": [1.0], "issues": ["a"]}, []),
    ],
)
def test_what_decides_prompts_and_readings_makes_two_runs_unlike(changed: dict[str, Any], what: list[str]) -> None:
    one, other = (manner_of(each, Pair("openai/gpt-4o", None)) for each in (manifest(), manifest(**changed)))
    assert differing(one, other) == what


def test_models_with_the_protocols_own_limits_are_alike() -> None:
    assert not differing(
        manner_of(manifest(), Pair("openai/gpt-4o", None)), manner_of(manifest(), Pair("xai/grok", None))
    )
    thinking = manifest(max_tokens={"openai/o9": None})
    assert not differing(
        manner_of(manifest(), Pair("openai/gpt-4o", None)), manner_of(thinking, Pair("openai/o9", None))
    )


def test_readings_of_the_report_take_the_place_of_the_runs() -> None:
    careful, given = manifest(stance="careful"), manifest({"differ": 1, "used": "as given"}, data="e" * 64)
    assert not differing(*(manner_of(each, Pair("m", None), is_recorded=False) for each in (manifest(), careful)))
    assert not differing(*(manner_of(each, Pair("m", None), digest="f" * 64) for each in (manifest(), given)))


def test_of_records_without_a_manifest_nobody_knows_how_they_were_asked() -> None:
    assert manner_of(None, Pair("m", None)) == {"how it was asked": "not known, as no manifest tells"}
