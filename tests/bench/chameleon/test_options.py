"""Chameleon's options: the flags of the contract, and what manifests keep of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.bench.chameleon.options import Options, Readings
from millstream.bench.evaluation.door.declarations import declarations

CHAMELEON = declarations()["chameleon"]
READINGS = "read sources sources-by uncited confidence"
FLAGS = {
    "run": "model temperature reasoning-effort dataset max-tokens judge judge-reasoning-effort search corpus "
    f"conversations retrieval queries-by old-pages window turns pages order seed judge-prompt page-tokens {READINGS}",
    "score": READINGS,
    "report": READINGS,
}
KEPT = {
    "model": ["a/b", "a/c"], "judge": "a/d", "search": "search/brave", "temperature": [], "max_tokens": None,
    "dataset": None, "corpus": None, "conversations": 3, "turns": 2, "pages": 20, "order": "shuffled", "seed": 7,
    "retrieval": "own", "queries_by": None, "judge_prompt": "extended", "page_tokens": 1500, "old_pages": "drop",
    "window": None, "sources": "cited", "sources_by": "hostname", "uncited": "literal", "confidence": "rubric",
}  # fmt: skip


def test_the_flags_are_those_of_the_contract() -> None:
    for verb, names in FLAGS.items():
        assert [option.flag for option in CHAMELEON.taken_by(verb)] == [f"--{name}" for name in names.split()]


def test_the_values_in_a_manifest_are_read() -> None:
    run = CHAMELEON.read_kept(KEPT)
    assert run.options == Options(
        ("a/b", "a/c"), "a/d", search="search/brave", conversations=3, turns=2, order="shuffled", seed=7
    )
    assert run.readings == Readings(sources_by="hostname", uncited="literal")
    assert CHAMELEON.read_kept({**KEPT, "confidence": "number"}).readings.confidence == "number"
    with pytest.raises(TypeError):
        CHAMELEON.read_kept({**KEPT, "confidence": "guessed"})
    assert CHAMELEON.read_kept({"model": ["a/b"], "judge": "a/d"}).readings == Readings()


def test_a_manifest_keeps_the_options_and_behind_them_the_readings() -> None:
    kept = CHAMELEON.kept_of(CHAMELEON.made_of({"model": ["a/b"], "judge": "a/d", "uncited": "literal"}, Path()))
    assert list(kept) == [*Options.__struct_fields__, *Readings.__struct_fields__]
    assert (kept["judge"], kept["uncited"], kept["confidence"]) == ("a/d", "literal", "rubric")
