"""A library that is missing, or breaks a helper process, ends a command with exit code 5 and one line, and nothing that
was not found out is recorded or cached."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Done, finish, lines_of, start
from simulated_outside import Outside

from millstream.engine.runs.run_folder import read_manifest

pytestmark = pytest.mark.needs_benchmark("millstone", "chameleon")

RUN = ("run", "chameleon", "--model", "sim/open", "--judge", "sim/judge", "--temperature", "0", "--conversations", "1")
SIZE = ("--turns", "2", "--pages", "4", "--no-progress", "--no-report", "--cache", "cache", "--out", "run")


def hiding(home: Path, name: str, code: str) -> str:
    """A folder for PYTHONPATH in which a library's place is taken by a module of ours."""
    folder = home / f"in place of {name}"
    folder.mkdir()
    (folder / f"{name}.py").write_text(code)
    return str(folder)


@pytest.mark.parametrize("name", ["msgspec", "aiohttp", "lmdb"])
def test_a_command_that_needs_a_missing_library_says_so_in_one_line(name: str, tmp_path: Path) -> None:
    code = f"raise ModuleNotFoundError('hidden by the test', name={name!r})"
    command = ("run", "millstone", "--model", "sim/open", "--out", "run")
    done = finish(start(tmp_path, *command, PYTHONPATH=hiding(tmp_path, name, code)))
    assert (done.code, done.out) == (5, "")
    # What was remarked on before that library was needed stands above.
    lines = [line for line in done.err.splitlines() if "no --dataset" not in line]
    assert lines == [f"millstream: {name} is missing: pip install {name}, or install Millstream anew"]
    assert not (tmp_path / "run").exists()


def test_a_library_that_only_the_end_of_a_run_needs_is_missed_before_there_is_a_folder(tmp_path: Path) -> None:
    hidden = hiding(tmp_path, "sitecustomize", "import sys; sys.modules['numpy'] = None")
    done = finish(start(tmp_path, "run", "millstone", "--model", "sim/open", "--out", "run", PYTHONPATH=hidden))
    assert done.code == 5 and done.err.endswith("numpy is missing: pip install numpy, or install Millstream anew\n")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["protego", "pebble", "charset_normalizer"])
def test_a_library_that_only_pages_need_is_missed_by_who_reads_pages(name: str, tmp_path: Path) -> None:
    code = f"raise ModuleNotFoundError('hidden by the test', name={name!r})"
    hidden = hiding(tmp_path, name, code)
    done = finish(start(tmp_path, *RUN, *SIZE, "--base-url", "http://127.0.0.1:9/v1", PYTHONPATH=hidden))
    told = f"pages can't be read: {name} is missing: pip install {name}, or install Millstream anew"
    assert done.code == 5 and told in done.err
    manifest = read_manifest(tmp_path / "run")
    assert manifest["ended"] is not None and manifest["in_flight_at_kills"] == 0
    assert lines_of(tmp_path / "run" / "records.jsonl") == [] == lines_of(tmp_path / "run" / "failures.jsonl")


BROKEN = {
    "missing": (
        "raise ModuleNotFoundError('hidden by the test', name='lxml_html_clean')",
        "lxml_html_clean is missing: pip install lxml_html_clean, or install Millstream anew",
    ),
    "killing its process": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "its process broke down"),
}


@pytest.mark.long
@pytest.mark.parametrize("how", BROKEN)
def test_where_pages_can_not_be_read_nothing_is_sent_or_cached_and_the_same_command_goes_on_when_that_is_mended(
    outside: Outside, tmp_path: Path, how: str
) -> None:
    code, told = BROKEN[how]
    broken = hiding(tmp_path, "lxml_html_clean", code)

    def run(path: str) -> Done:
        variables = {**outside.variables, "PYTHONPATH": path}
        return finish(start(tmp_path, *RUN, *outside.flags, *SIZE, **variables))

    first = run(broken)
    assert first.code == 5
    assert first.err.splitlines()[-1].startswith(f"millstream: no process that reads pages can be started: {told}")
    assert outside.arrivals() == (0, 0) and lines_of(tmp_path / "run" / "records.jsonl") == []
    assert finish(start(tmp_path, "cache", "stats", "--cache", "cache")).out.startswith("cache: 0 answers")
    second = run("")
    pages = [page for line in lines_of(tmp_path / "run" / "records.jsonl") for page in line["retrieved"]]
    # So short a conversation may have no score.
    assert second.code in (0, 3) and {"ok"} <= {page["status"] for page in pages}
