"""MillStone's options: the flags of the contract, and what manifests keep of them."""

from __future__ import annotations

from pathlib import Path

from millstream.bench.evaluation.door.declarations import declarations
from millstream.bench.millstone.options import Options, Readings

MILLSTONE = declarations()["millstone"]
FLAGS = {
    "run": "model temperature reasoning-effort max-tokens dataset stance silence issues limit read fix-orientation "
    "protocol templates trials",
    "score": "stance silence read fix-orientation",
    "report": "stance silence read fix-orientation",
}
KEPT = {
    "model": ["a/b"], "temperature": [0.0], "max_tokens": None, "stance": "paper", "silence": "literal",
    "dataset": "/data", "protocol": "released", "issues": "guns,zoos", "templates": 1, "trials": 2,
    "fix_orientation": True,
}  # fmt: skip


def test_the_flags_are_those_of_the_contract() -> None:
    for verb, names in FLAGS.items():
        assert [option.flag for option in MILLSTONE.taken_by(verb)] == [f"--{name}" for name in names.split()]


def test_the_values_in_a_manifest_are_read() -> None:
    run = MILLSTONE.read_kept(KEPT)
    assert run.options == Options(
        ("a/b",), (0.0,), silence="literal", dataset="/data", protocol="released", issues="guns,zoos", templates=1,
        trials=2, fix_orientation=True,
    )  # fmt: skip
    # What the run's own scores were read by asks for no other reading of its records.
    assert run.readings == Readings()
    first = {name: KEPT[name] for name in ("model", "temperature", "max_tokens", "stance", "dataset", "issues")}
    assert MILLSTONE.read_kept(first).options == Options(("a/b",), (0.0,), dataset="/data", issues="guns,zoos")


def test_a_manifest_keeps_every_option_and_no_reading() -> None:
    run = MILLSTONE.made_of({"model": ["a/b", "a/b"], "limit": 3, "silence": "literal"}, Path())
    kept = MILLSTONE.kept_of(run)
    assert list(kept) == list(Options.__struct_fields__)
    assert (kept["model"], kept["limit"], kept["silence"]) == (("a/b",), 3, "literal")
