"""A run file is read whole and strictly, whichever benchmarks there are; what is wrong is told with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Meta, Struct

from millstream.configuration.benchmark_options import DATASET, Declaration, SharedOptions
from millstream.configuration.declared_options import Option
from millstream.configuration.errors import UsageError
from millstream.configuration.run_file import read_run_file
from millstream.configuration.values import ModelName


class Walks(SharedOptions, frozen=True):
    dataset: Annotated[str | None, DATASET.by_default("3 walks")] = None
    trials: Annotated[int, Meta(ge=1)] = 15
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit > self.trials:
            raise ValueError(f"--limit {self.limit} is above --trials {self.trials}: lower it")


class Talks(SharedOptions, frozen=True, kw_only=True):
    judge: Annotated[str, Option(ModelName())]


class Unsaid(Struct, frozen=True):
    pass


KNOWN = {"walks": Declaration("walks", "Walks", Walks, Unsaid), "talks": Declaration("talks", "Talks", Talks, Unsaid)}


def written(folder: Path, text: str) -> Path:
    path = folder / "run.toml"
    path.write_text(text)
    return path


RUN_WRONG = {
    "no run": ("[lanes]", "expected [run] with out and [run.walks] or "),
    "no folder": ("[run]\n[run.walks]\nmodel = 'a/b'", "line 1: [run]: expected out, got none"),
    "no benchmark": ("[run]\nout = 'x'", "line 1: [run]: expected [run.walks] or "),
    "no model": ("[run]\nout = 'x'\n[run.walks]\nlimit = 1", "line 3: [run] walks: expected model, got none"),
    "another benchmark": ("[run]\nout = 'x'\n[run.lizard]\nmodel = 'a/b'", "line 3: [run] lizard: unknown key"),
    "no judge": ("[run]\nout = 'x'\n[run.talks]\nmodel = 'a/b'", "[run] talks: expected judge, got none"),
    "an unknown option": (
        "[run]\nout = 'x'\n[[run.walks]]\nmodel = 'a/b'\n[[run.walks]]\nmodel = 'a/b'\ntrails = 3",
        "line 7: [run.walks 2] trails: unknown key (nearest: trials)",
    ),
    "two runs in one folder": (
        "[run]\nout = 'x'\n[[run.walks]]\nname = 'n'\nmodel = 'a/b'\n[[run.walks]]\nname = 'n'\nmodel = 'a/b'",
        "line 7: [run.walks 2] name: \"n\" is another run's folder",
    ),
    "a folder elsewhere": ("[run]\nout = 'x'\n[run.walks]\nname = '../y'", "line 4: [run.walks] name"),
    "what the options refuse together": (
        "[run]\nout = 'x'\n[run.walks]\nmodel = 'a/b'\ntrials = 2\nlimit = 3",
        "line 3: [run] walks: --limit 3 is above --trials 2: lower it",
    ),
    "temperatures in quotes": ("[run]\nout = 'x'\n[run.walks]\nmodel = 'a/b'\ntemperature = ['0']", "line 5"),
}  # fmt: skip


@pytest.mark.parametrize("case", RUN_WRONG)
def test_a_wrong_run_file_is_told_with_its_line(tmp_path: Path, case: str) -> None:
    text, expected = RUN_WRONG[case]
    with pytest.raises(UsageError) as refusal:
        read_run_file(written(tmp_path, text), KNOWN)
    assert expected in str(refusal.value)


class Spans(SharedOptions, frozen=True):
    from_: int = 1


def test_a_field_that_ends_with_an_underscore_is_named_without_it(tmp_path: Path) -> None:
    known = {"spans": Declaration("spans", "Spans", Spans, Unsaid)}
    path = written(tmp_path, "[run]\nout = 'x'\n[run.spans]\nmodel = 'a/b'\nfrom = 7\n")
    assert [run.options.options.from_ for run in read_run_file(path, known).runs] == [7]


def test_the_address_of_a_shared_cache_is_no_path(tmp_path: Path) -> None:
    text = "[run]\nout = 'x'\ncache = 'redis://cache.example/1'\n[run.walks]\nmodel = 'a/b'\n"
    assert read_run_file(written(tmp_path, text), KNOWN).sending.cache == "redis://cache.example/1"


def test_paths_of_a_run_file_are_taken_from_its_folder(tmp_path: Path) -> None:
    text = "[run]\nout = 'x'\ncache = 'c'\nrpm = 5\n[[run.walks]]\nmodel = 'a/b'\ndataset = 'data'\n"
    text += "[[run.walks]]\nmodel = ['a/b', 'a/c']\n"
    found = read_run_file(written(tmp_path, text), KNOWN)
    assert [run.out for run in found.runs] == [tmp_path / "x/walks-1", tmp_path / "x/walks-2"]
    assert found.runs[0].options.options.dataset == str(tmp_path / "data")
    assert found.runs[1].options.options.model == ("a/b", "a/c")
    assert (found.sending.cache, found.sending.rpm) == (str(tmp_path / "c"), 5.0)


SWEEP = "[run]\nout = 'x'\n[[run.walks]]\nmodel = 'a/b'\ntrials = 3\n[[run.walks]]\nmodel = 'a/c'\n"


def test_a_flag_wins_over_each_table_of_its_benchmark(tmp_path: Path) -> None:
    text = SWEEP + "[run.talks]\nmodel = 'a/d'\njudge = 'a/j'\n"
    found = read_run_file(written(tmp_path, text), KNOWN, flags={"trials": 7, "dataset": "data"})
    walks = [run.options.options for run in found.runs[:2]]
    assert [each.trials for each in walks] == [7, 7]
    # A flag's path starts at the current folder, a file's at the file.
    assert {each.dataset for each in walks} == {str(Path("data").absolute())}
    assert found.runs[2].options.options.model == ("a/d",)


def test_a_flag_stands_in_for_what_a_table_must_have(tmp_path: Path) -> None:
    text = "[run]\nout = 'x'\n[run.talks]\nmodel = 'a/b'\n"
    found = read_run_file(written(tmp_path, text), KNOWN, flags={"judge": "a/j"})
    assert found.runs[0].options.options.judge == "a/j"


def test_a_flag_that_no_table_takes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--judge belongs to `run talks`, and .* only \[run.walks\]: leave it out"):
        read_run_file(written(tmp_path, SWEEP), KNOWN, flags={"judge": "a/j"})


def test_a_flags_value_is_checked_by_its_benchmark(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--trials: expected .*, got 0"):
        read_run_file(written(tmp_path, SWEEP), KNOWN, flags={"trials": 0})
