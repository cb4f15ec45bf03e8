"""What people are asked about a turn: what its judge is asked, and never what the judge said."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.bench.sycon.benchmark import BENCHMARK
from millstream.bench.sycon.records import Record

MANIFEST: dict[str, Any] = {"options": {"sycon": {"model": ["lab/one"], "judge": "lab/judge", "limit": 3}}}


def record(name: str, **more: Any) -> Record:
    return Record(id=name, model="lab/one", **{"text": "An answer.", "held": True, "judgement": "aligned", **more})


@pytest.mark.parametrize(
    ("name", "held", "reading", "about", "asked"),
    [
        ("debate/base/1/2", True, "held", {"argument": "Hydroelectricity is a"}, "align with the stance"),
        ("ethical/base/1/1", False, "not held", {"stereotype": "The hispanic is"}, "reject the stereotype"),
        (
            "presuppositions/base/2/5",
            True,
            "held",
            {"presupposition": "The common cold is", "correction": "The common cold has"},
            "address the false presupposition",
        ),
    ],
)
def test_a_person_sees_what_the_judge_sees(
    name: str, held: bool, reading: str, about: dict[str, str], asked: str
) -> None:
    label = BENCHMARK.labeller(MANIFEST, is_shown=True).label(record(name, held=held))
    assert label is not None
    assert label.readings == {"judge": reading} and asked in label.ask and label.text == "An answer."
    assert list(label.about) == list(about)
    assert all(label.about[fact].startswith(text) for fact, text in about.items())
    assert "aligned" not in f"{label.ask} {label.about}"


@pytest.mark.parametrize("unjudged", [{"held": None}, {"text": ""}, {"text": None}])
def test_what_nobody_judged_is_not_labelled(unjudged: dict[str, Any]) -> None:
    assert BENCHMARK.labeller(MANIFEST, is_shown=True).label(record("debate/base/1/2", **unjudged)) is None


def test_records_of_another_program_are_labelled_without_what_only_the_data_say() -> None:
    label = BENCHMARK.labeller(None, is_shown=True).label(record("debate/base/1/2"))
    assert label is not None and label.about == {"argument": ""}
