"""A benchmark of an installed package has its options on the command line as those of this program have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from distributions import install

from millstream.bench.evaluation.door.declarations import BUILT_IN, declarations, find, of_folders
from millstream.bench.evaluation.door.registry import benchmark_named
from millstream.configuration.errors import UsageError
from millstream.configuration.values import WordChoice
from millstream.interfaces.cli.command import main
from millstream.wiring import ConfigurationError

STROLLS = """
from typing import Annotated, Literal
from msgspec import Meta, Struct
import millstream as ms

class Options(ms.SharedOptions, frozen=True):
    steps: Annotated[int, Meta(ge=1, le=9, description="steps of a stroll")] = 3
    trials: Literal["few", "many"] = "few"

class Readings(Struct, frozen=True):
    rounding: Annotated[Literal["up", "down"], Meta(description="how steps are rounded")] = "up"

def written(options, watch):
    is_wrong = options.steps == "none"
    return ms.DataReport(exit_code=2 if is_wrong else 3, text=lambda width: f"{options.steps} steps, {width} wide",
                      fields={"steps": options.steps}, error="no step can be taken" if is_wrong else "")

class Strolls(ms.ItemBenchmark):
    data = ms.DataCommand("Plans strolls.", lambda parser: parser.add_argument("steps"), written)
    name = "strolls"
    title = "Strolls"
    Options = Options
    Readings = Readings

class Untitled(Strolls):
    name = "untitled"
    title = None

class Unstructured(Strolls):
    name = "unstructured"
    Options = dict

STROLLS, UNTITLED, UNSTRUCTURED = Strolls(), Untitled(), Unstructured()
"""
FIRST = BUILT_IN[0]
OWNER, FOREIGN, VALUE = next(
    (name, option.flag, option.kind.words[0])
    for name, benchmark in declarations().items()
    for option in benchmark.taken_by("run")
    if isinstance(option.kind, WordChoice)
)
POINTS = {"strolls": "others_strolls:STROLLS", "untitled": "others_strolls:UNTITLED",
          "unstructured": "others_strolls:UNSTRUCTURED", "gone": "others_strolls:Gone",
          FIRST: "others_strolls:STROLLS", "renamed": "others_strolls:STROLLS"}  # fmt: skip


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(tmp_path / "site", "others-strolls", STROLLS, {"millstream.benchmarks": POINTS})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path


@pytest.mark.needs_benchmark("millstone")
def test_a_package_brings_a_benchmark_and_takes_no_name_of_ours(installed: Path) -> None:
    found = find("strolls")
    assert found is not None and found.title == "Strolls"
    assert find(FIRST) == declarations()[FIRST]
    assert find("no-such") is None and find("a/file.toml") is None
    for name in ("untitled", "unstructured"):
        with pytest.raises(UsageError, match=f"benchmark {name}: its .* must be"):
            find(name)
    with pytest.raises(UsageError, match="benchmark renamed: its name is 'strolls'"):
        find("renamed")
    with pytest.raises(ConfigurationError, match=r"'gone', which others-strolls 1\.0 offers .* can't be loaded"):
        find("gone")


@pytest.mark.needs_benchmark("millstone", "chameleon")
def test_a_benchmark_is_found_by_its_name_whoever_brings_it(installed: Path) -> None:
    assert repr(benchmark_named("strolls")) == "<ItemBenchmark strolls>"
    assert benchmark_named(FIRST).title == declarations()[FIRST].title
    with pytest.raises(UsageError, match="benchmark 'no-such' is unknown; known: "):
        benchmark_named("no-such")


def test_its_options_stand_in_the_help_where_it_is_named(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "strolls", "--help"]) == 0
    told = capsys.readouterr().out
    assert "steps of a stroll (default: 3)" in told and "\nstrolls:\n" in told and "how steps are rounded" in told
    assert "--judge " not in told and "--model " in told
    assert main(["plan", "--no-progress", "strolls", "--help"]) == 0
    assert "steps of a stroll" in capsys.readouterr().out
    assert main(["run", "--help"]) == 0
    assert "steps of a stroll" not in capsys.readouterr().out
    for verb in ("run", "plan"):
        assert main([verb, "strolls", FOREIGN, VALUE]) == 2
        assert capsys.readouterr().err == (
            f"millstream: {FOREIGN} belongs to `run {OWNER}`, and strolls was asked for: leave it out\n"
        )


@pytest.mark.needs_benchmark("millstone", "chameleon")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--steps", "10"), '--steps: expected a whole number of steps, 1 to 9, got "10"'),
        (("--trials", "3"), '--trials: expected one of few, many, got "3"'),
        (("--steps", "2"), "--model: expected at least one model as provider/model, got none"),
    ],
)
def test_its_options_are_checked_as_ours_are(
    installed: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert main(["run", "strolls", *words]) == 2
    assert capsys.readouterr().err.startswith(f"millstream: {said}")


def test_its_table_of_a_run_file_is_read_with_its_kinds(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = installed / "run.toml"
    file.write_text("[run]\nout = 'x'\n[run.strolls]\nmodel = 'a/b'\nsteps = 10\n")
    assert main(["plan", str(file)]) == 2
    assert "line 5: [run.strolls] steps: expected a whole number of steps, 1 to 9, got 10" in capsys.readouterr().err
    file.write_text("[run]\nout = 'x'\n[run.untitled]\nmodel = 'a/b'\n")
    assert main(["plan", str(file)]) == 2
    assert "benchmark untitled: its title must be a text" in capsys.readouterr().err


def test_its_readings_are_flags_where_a_folder_holds_its_run(
    installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = installed / "run"
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"specification": {"benchmark": "strolls"}}))
    assert list(of_folders([str(folder), str(installed)])) == [*declarations(), "strolls"]
    for verb in ("score", "report"):
        assert main([verb, str(folder), "--help"]) == 0
        assert "of Strolls's records" in capsys.readouterr().out
        assert main([verb, "--help"]) == 0
        assert "Strolls" not in capsys.readouterr().out


def test_its_data_command_is_offered_where_it_is_named(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "strolls", "7"]) == 3 and capsys.readouterr().out == "7 steps, None wide\n"
    assert main(["data", "strolls", "7", "--json"]) == 3
    assert json.loads(capsys.readouterr().out) == {"steps": "7"}
    assert main(["data", "strolls", "none"]) == 2
    assert capsys.readouterr() == ("none steps, None wide\n", "millstream: no step can be taken\n")
    assert main(["data", "renamed", "7"]) == 2
    assert main(["data", "strolls", "--help"]) == 0 and "Plans strolls." in capsys.readouterr().out
