"""`--set`: a task's file reads its parameters, and a run that has others is another run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import CommandLine, Provider, lines_of

import millstream as ms
from millstream.bench.task.parameters import Parameters, assignments, read_into
from millstream.bench.task.rows import TaskError

FILE = """
import millstream as ms

tone = ms.parameter("tone", "plain", "how the question sounds")
shots = ms.parameter("shots", 2)
whole = ms.parameter("whole", False)

mine = ms.Task(
    data=[{"n": n} for n in range(4)],
    prompt=f"{tone} {shots} {whole}: {{n}}?",
    score=ms.regex("[0-9]"),
)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path


def asked(provider: Provider, *more: str) -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--no-report")
    return ("run", "mine.py", "--model", "sim/open", *where, "--out", "run", *more)


def test_values_reach_the_prompts_and_stand_in_specification_resume_and_command(
    cli: CommandLine, provider: Provider, folder: Path
) -> None:
    done = cli(*asked(provider, "--set", "tone=very polite", "shots=3", "--set", "whole=TRUE"))
    assert done.code == 0, done.err
    assert {record["prompt"] for record in lines_of(folder / "run/records.jsonl")} == {
        f"very polite 3 True: {n}?" for n in range(4)
    }
    manifest = json.loads((folder / "run/manifest.json").read_text())
    assert manifest["specification"]["set"] == {"tone": "very polite", "shots": 3, "whole": True}
    calls = provider.calls()
    for command in (("resume", "run"), ("retry", "run"), ("score", "run", "--task", "mine.py"), ("verify", "run")):
        done = cli(*command)
        assert done.code == 0 and provider.calls() == calls, done.err
    assert cli("report", "run").code == 0
    page = (folder / "run/report.html").read_text()
    assert "mine.py --model sim/open --set &#x27;tone=very polite&#x27; shots=3 whole=TRUE" in page
    done = cli(*asked(provider))
    assert done.code == 2 and "holds another run" in done.err and provider.calls() == calls


def test_a_file_without_values_reads_its_defaults_as_a_program_does(
    cli: CommandLine, provider: Provider, folder: Path
) -> None:
    assert cli(*asked(provider)).code == 0
    manifest = json.loads((folder / "run/manifest.json").read_text())
    assert manifest["specification"]["set"] == {"tone": "plain", "shots": 2, "whole": False}
    assert (ms.parameter("shots", 2), ms.parameter("rate", 0.5)) == (2, 0.5)


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (
            ("shot=1",),
            "--set shot: mine.py has no parameter of this name (nearest: shots): it has tone=plain (how the question "
            "sounds); shots=2; whole=False",
        ),
        (("shots=many",), "--set shots: expected a whole number, as 2, got 'many'"),
        (("whole=1",), "--set whole: expected true or false, as false, got '1'"),
        (("shots=1", "shots=2"), "--set shots: expected one value, got '1' and '2'"),
        (("shots",), "--set: expected name=value, as doubts=3, got 'shots'"),
    ],
)
def test_a_wrong_name_or_value_is_refused_before_a_call(
    cli: CommandLine, provider: Provider, folder: Path, words: tuple[str, ...], refusal: str
) -> None:
    done = cli(*asked(provider, "--set", *words))
    assert (done.code, done.err.count("\n"), provider.calls()) == (2, 1, 0) and refusal in done.err, done.err


def test_a_file_without_parameters_takes_none_and_its_specification_has_none(
    cli: CommandLine, provider: Provider, folder: Path
) -> None:
    (folder / "mine.py").write_text('import millstream as ms\nt = ms.Task(data=[{"n": 1}], prompt="a", score=print)\n')
    done = cli(*asked(provider, "--set", "shots=1"))
    assert done.code == 2 and 'it has none (they are read by ms.parameter("name", default))' in done.err
    cli(*asked(provider))
    assert "set" not in json.loads((folder / "run/manifest.json").read_text())["specification"]


def test_a_parameter_has_one_default_of_a_plain_type() -> None:
    with read_into(Parameters(assignments(["rate=1e-3", "text=a=b", "none="]))):
        assert (ms.parameter("rate", 1.0), ms.parameter("text", ""), ms.parameter("none", "x")) == (0.001, "a=b", "")
        assert ms.parameter("rate", 1.0) == 0.001
        with pytest.raises(TaskError, match="read twice with different defaults"):
            ms.parameter("rate", 2.0)
        with pytest.raises(TaskError, match="expected a text, a number, True or False as default, got None"):
            ms.parameter("other", None)  # type: ignore[type-var]
    with read_into(Parameters({"rate": "nan"})), pytest.raises(TaskError, match=r"a number, as 1\.0, got 'nan'"):
        ms.parameter("rate", 1.0)
