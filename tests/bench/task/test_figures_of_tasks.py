"""Figures over all answers of a task, from its declaration to scores.json, `score`, the report and the result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Provider, scores_of

import millstream as ms
from millstream.bench.task.declared import task_from
from millstream.bench.task.figures import figures_from
from millstream.bench.task.rows import TaskError

# The number that ends a simulated answer goes round with the prompt's digest, so that some answers are right.
FILE = """
import millstream as ms

def confident(reply, row):
    digit = int(reply.text[-1]) if reply.text[-1:].isdigit() else 0
    return {"right": digit % 2 == row["n"] % 2, "confidence": digit / 9}

def spread(records):
    assert all(isinstance(record.scores, dict) for record in records)
    return max(record.scores["confidence"] for record in records) - min(r.scores["confidence"] for r in records)

mine = ms.Task(
    data=[{"n": n} for n in range(60)],
    prompt="Number {n}?",
    score=confident,
    trials=3,
    figures={
        "AUROC": ms.auroc("confidence"),
        "ECE": ms.calibration_error("confidence", bins=5),
        "pass@2": ms.pass_at(2),
        "spread": spread,
    },
)
"""


def asked(provider: Provider, *more: str) -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress")
    return ("run", "mine.py", "--model", "sim/open", *where, "--out", "run", *more)


def test_figures_stand_in_scores_table_report_and_result(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    done = cli(*asked(provider))
    assert done.code == 0, done.err
    calls, written = provider.calls(), scores_of(tmp_path / "run")
    figures = written["mine"]["models"]["sim/open"]["figures"]
    assert list(figures) == ["AUROC", "ECE", "pass@2", "spread"]
    records = [json.loads(line) for line in (tmp_path / "run/records.jsonl").read_text().splitlines()]
    high = [r["scores"]["confidence"] for r in records if r["score"] == 1]
    low = [r["scores"]["confidence"] for r in records if r["score"] == 0]
    wins = sum((a > b) + (a == b) / 2 for a in high for b in low)
    assert figures["AUROC"]["value"] == pytest.approx(wins / len(high) / len(low))
    assert figures["pass@2"]["items"] == 60 and figures["pass@2"]["ci95"][0] < figures["pass@2"]["value"]
    assert "no interval: chance alone" in figures["ECE"]["ci95_note"]
    every = [r["scores"]["confidence"] for r in records]
    assert figures["spread"]["value"] == max(every) - min(every)
    told = cli("score", "run").out
    assert f"{figures['AUROC']['value']:.3f}" in told and "pass@2" in told and "spread" in told
    # What a function computed stays, though `score` and `verify` don't run it; `--task` does.
    assert scores_of(tmp_path / "run") == written
    proven = cli("verify", "run")
    assert proven.code == 0 and "figures: one is a function, which is not run here" in proven.out
    assert cli("report", "run").code == 0
    assert "pass@2" in (tmp_path / "run/report.html").read_text()
    (tmp_path / "other.py").write_text(FILE.replace("- min(r", "+ min(r").replace('"spread": spread', '"sum": spread'))
    anew = json.loads(cli("score", "run", "--task", "other.py", "--json").out)["run"]["mine"]["models"]["sim/open"]
    assert anew["figures"]["sum"]["value"] == max(every) + min(every)
    assert (provider.calls(), scores_of(tmp_path / "run")) == (calls, written)
    (tmp_path / "run/scores.json").unlink()
    done = cli("score", "run")
    assert done.code == 3 and "its function is in the task's own file" in done.out


def test_a_function_that_fails_ends_with_3_each_time_and_the_other_figures_stand(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(FILE.replace("return max", "return 1 / 0 + max"))
    done = cli(*asked(provider))
    sentence = "sim/open: spread: no figure: its function raised ZeroDivisionError in mine.py line 10: division by zero"
    assert done.code == 3 and sentence in done.out, done.out
    written = scores_of(tmp_path / "run")
    entry = written["mine"]["models"]["sim/open"]
    assert written["mine"]["unmeasured"] == [sentence]
    assert entry["mean"] is not None and entry["figures"]["AUROC"]["value"] is not None
    for command in (("score", "run"), ("report", "run")):
        assert cli(*command).code == 3
    assert cli("verify", "run").code == 0 and scores_of(tmp_path / "run") == written


def test_other_figures_are_another_specification_and_can_be_computed_without_a_call(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    assert cli(*asked(provider, "--no-report")).code == 0
    (tmp_path / "mine.py").write_text(FILE.replace("bins=5", "bins=6"))
    done = cli(*asked(provider))
    assert done.code == 2 and "figures.ECE.bins: 5" in done.err and "without a call: millstream rescore" in done.err


def options(provider: Provider, folder: Path) -> dict[str, Any]:
    return {"base_url": provider.base_url, "cache": str(folder / "cache"), "report": False}


def test_f1_has_the_labels_of_the_main_scorer(provider: Provider, tmp_path: Path) -> None:
    rows = [{"n": n, "digit": n % 4} for n in range(60)]

    def task(score: Any, **figures: Any) -> ms.Task:
        return ms.Task(data=rows, prompt="Number {n}?", score=score, figures=figures)

    def answered(records: Sequence[Any]) -> int:
        return len(records)

    scorer = ms.regex("the prompt ([0-3])", "{digit}")
    found = ms.evaluate(
        task(scorer, f1=ms.f1(), own=answered),
        "sim/open",
        tmp_path / "run",
        **options(provider, tmp_path),
        unreadable="zero",
    )
    [result] = found.models.values()
    pairs = [(str(record.row["digit"]), record.read) for record in found.records()]
    assert any(read is None for _, read in pairs)
    f1 = [
        2 * sum(t == p == label for t, p in pairs) / sum((t == label) + (p == label) for t, p in pairs)
        for label in "0123"
    ]
    assert result.figures["f1"].mean is None  # half of the answers can't be read
    scorer = ms.regex("the prompt ([0-9a-d])", "{digit}")
    found = ms.evaluate(
        task(scorer, f1=ms.f1(), own=answered),
        "sim/open",
        tmp_path / "more",
        **options(provider, tmp_path),
        unreadable="zero",
    )
    [result] = found.models.values()
    assert result.figures["f1"].mean == pytest.approx(sum(f1) / len(f1)) and "f1 0." in str(found)
    assert (result.figures["own"].mean, result.figures["own"].low) == (60, None)
    with pytest.raises(TaskError, match="figures: f1: f1: expected a main scorer that reads one label"):
        task(ms.match("{digit}", at="anywhere"), f1=ms.f1())


def test_a_figure_that_cannot_be_computed_says_why_and_scores_stand(provider: Provider, tmp_path: Path) -> None:
    task = ms.Task(
        data=[{"n": n} for n in range(12)],
        prompt="Number {n}?",
        score={"right": lambda reply, row: row["n"] % 2, "sure": lambda reply, row: 2.0},
        figures={
            "wrong": lambda records: 1 / 0,
            "none": lambda records: None,
            "name": ms.auroc("shure"),
            "range": ms.calibration_error("sure"),
            "scale": ms.pass_at(1, right="sure"),
        },
    )
    [result] = ms.evaluate(task, "sim/open", tmp_path / "run", **options(provider, tmp_path)).models.values()
    notes = {name: figure.note for name, figure in result.figures.items()}
    assert result.score.mean == 0.5 and all(figure.mean is None for figure in result.figures.values())
    assert "no figure: its function raised ZeroDivisionError in test_figures_of_tasks.py line" in str(notes["wrong"])
    assert notes["none"] == "no figure: its function gave None"
    assert notes["name"] == "no figure: no score is called 'shure' (nearest: sure): they are right, sure"
    assert notes["range"] == "no figure: sure is not from 0 to 1 everywhere"
    assert str(notes["scale"]).startswith("no figure: the score sure reaches 2, and from 0.5 an answer is right")


@pytest.mark.parametrize(
    ("figures", "refusal"),
    [
        ({"p": ms.pass_at(3)}, r"figures: p: pass_at\(3\): expected at least as many trials, got 2"),
        ({"p": 3}, r"figures: p: expected a figure, as ms.f1\(\), or a function, got 3"),
        ([ms.f1()], "figures: expected names with figures"),
    ],
)
def test_a_wrong_declaration_is_refused(figures: Any, refusal: str) -> None:
    with pytest.raises(TaskError, match=refusal):
        ms.Task(data=[{"n": 1}], prompt="{n}", score=ms.match("{n}"), trials=2, figures=figures)


def test_a_table_declares_figures_as_a_manifest_describes_them() -> None:
    figures = {"f": ms.f1("a"), "p": ms.pass_at(2), "a": ms.auroc("sure", "right"), "e": ms.calibration_error("sure")}
    described = {name: figure.describe() for name, figure in figures.items()}
    assert {name: figure.describe() for name, figure in figures_from(described).items()} == described
    table = {"data": [{"n": 1}], "prompt": "{n}", "score": "match", "expected": "{n}", "trials": 2}
    assert (
        task_from({**table, "figures": {"p": {"figure": "pass_at", "k": 2}}}, "here").own_figures()["p"].describe()
        == ms.pass_at(2).describe()
    )
    with pytest.raises(TaskError, match=r"figures: p: expected one of f1, auroc, calibration_error, pass_at"):
        task_from({**table, "figures": {"p": {"figure": "pass"}}}, "here")
