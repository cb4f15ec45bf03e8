"""The part of a report that a benchmark has which makes none of its own."""

from __future__ import annotations

from pathlib import Path

import msgspec

from millstream.bench.evaluation.record import Record
from millstream.bench.evaluation.report.part import Subject, page_contents
from millstream.bench.evaluation.report.runs import read_run

SUBJECT = Subject(
    name="own",
    title="Own",
    unit="item",
    columns=("score",),
    cells=lambda entry: ("-",),
    kind=Record,
    command=lambda manifest: "",
)


def test_every_score_of_answers_that_have_several_stands_on_the_page(tmp_path: Path) -> None:
    record = Record(id="a", item="a", step=1, text="x", model="any/m")
    (tmp_path / "records.jsonl").write_bytes(msgspec.json.encode(record) + b"\n")
    run = read_run(tmp_path, {"specification": {"temperatures": [None], "models": ["any/m"]}}, Record)
    figure = {"mean": 0.25, "ci95": [0.1, 0.4], "ci95_note": None, "items": 40}
    run.scores = {"models": {"any/m": {"mean": 0.5, "scores": {"length": figure, "own": 3}}}}
    tables = {table.name: table for table in page_contents(SUBJECT, [run], ()).tables}
    assert tables["own-named-scores"].rows == (("length", "any/m", 0.25, "0.100 to 0.400", 40),)


def test_the_options_of_a_run_stand_on_its_page_as_they_were_given(tmp_path: Path) -> None:
    record = Record(id="a", item="a", step=1, text="x", model="any/m")
    (tmp_path / "records.jsonl").write_bytes(msgspec.json.encode(record) + b"\n")
    options = {"max_tokens": None, "only": [], "judge": "a&b", "parts": ["<i>", "two"], "limit": 0}
    specification = {"temperatures": [None], "models": ["any/m"], "options": options}
    run = read_run(tmp_path, {"specification": specification}, Record)
    run.scores = {"models": {}}
    *_, made = page_contents(SUBJECT, [run], ()).sections
    for label, told in (
        ("Max tokens", "not given"),
        ("Only", "not given"),
        ("Judge", "a&amp;b"),
        ("Parts", "&lt;i&gt;, two"),
        ("Limit", "0"),
    ):
        assert f"<dt>{label}</dt><dd>{told}</dd>" in made.body
