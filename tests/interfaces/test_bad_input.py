"""Bad input: one clear line and exit code 2 (5 for a folder that can't be used), nothing sent, nothing overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import SMALL, CommandLine, Done, Provider, run_command

from millstream.bench.evaluation.door.declarations import BUILT_IN

pytestmark = pytest.mark.needs_benchmark("millstone")

RUN = ("run", "millstone", *SMALL, "--cache", "cache")
OPEN = (*RUN, "--model", "sim/open", "--out", "run")


def refused(done: Done, code: int = 2) -> str:
    """The one line that a refusal is, without the program's name."""
    assert (done.code, done.out) == (code, ""), done
    *notes, line = done.err.splitlines()
    assert all("no --dataset" in note for note in notes), done.err
    assert line.startswith("millstream: ")
    return line.removeprefix("millstream: ")


CASES: dict[str, tuple[tuple[str, ...], str]] = {
    "unknown benchmark": (("run", "milestone", "--model", "a/b"), "benchmark 'milestone' is unknown"),
    "a benchmark that is not here": (("run", "lizard", "--model", "a/b"), "benchmark 'lizard' is unknown"),
    "no benchmark": (("run",), "the following arguments are required: " + "|".join((*BUILT_IN, "FILE"))),
    "a level that the model is known to refuse": (
        (*RUN, "--model", "openai/gpt-4o", "--reasoning-effort", "low", "--base-url", "http://[::1]:9", "--out", "run"),
        "openai/gpt-4o: expected no reasoning effort at all, got low",
    ),
    "NaN requests": ((*OPEN, "--rpm", "nan"), '1 to 1,000,000,000,000, got "nan"'),
    "endless tokens": (
        (*OPEN, "--tpm", "inf"),
        '--tpm: expected a number of tokens a minute, 1 to 1,000,000,000,000, got "inf"',
    ),
    "half a call in flight": ((*OPEN, "--concurrency", "1.5"), "--concurrency: expected a whole number"),
    "more requests than there are": (
        (*OPEN, "--rpm", "2e12"),
        '--rpm: expected a number of requests a minute, 1 to 1,000,000,000,000, got "2e12"',
    ),
    "a password in an address": (
        (*OPEN, "--cache", "redis://:pw@h:1/0"),
        "--cache: expected a folder, or the address of a shared cache as redis://HOST[:PORT][/DB], or rediss:// with "
        "TLS, without a user or password in it (they are taken from MILLSTREAM_CACHE_USER and "
        "MILLSTREAM_CACHE_PASSWORD), got",
    ),
    "another kind of server": ((*OPEN, "--cache", "memcached://h"), "--cache: expected a folder, or the address of a"),
    "a server to look into": (("cache", "stats", "--cache", "redis://h"), "--cache: expected a local folder (the"),
    "templates beyond six": ((*OPEN, "--templates", "7"), "--templates: expected a whole number of templates, 1 to 6"),
    "no trials": ((*OPEN, "--trials", "0"), "--trials: expected a whole number of trials"),
    "an unknown stance": ((*OPEN, "--stance", "bold"), "--stance: expected one of paper, careful"),
    "an unknown issue": ((*OPEN, "--issues", "fish"), "no issue 'fish' among the 12 of the data set"),
    "controversial of the sample": ((*OPEN, "--issues", "controversial"), "0 of the 10 controversial issues"),
    "a prompt beyond a minute": ((*OPEN, "--tpm", "50"), "lane sim/open admits at most 50 a minute: raise tpm or cut"),
    "score nothing": (("score",), "score: expected at least one DIR, or --counts CSV, got none"),
    "score an empty folder": (("score", "."), ".: expected a folder with records.jsonl, got none there"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_input_gets_one_line_and_leaves_no_trace(
    cli: CommandLine, provider: Provider, tmp_path: Path, case: str
) -> None:
    arguments, expected = CASES[case]
    assert expected in refused(cli(*arguments))
    assert provider.calls() == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("lead", ["http://", "", "http:\\\\", "http:/", "//"])
def test_a_password_in_an_address_is_refused_and_not_shown(cli: CommandLine, lead: str) -> None:
    line = refused(cli(*OPEN, "--base-url", f"{lead}me:secret@127.0.0.1/v1?key=secret"))
    assert "without a user, password or query" in line and "secret" not in line


def test_records_of_another_program_are_never_written_over(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/records.jsonl").write_text("{}\n")
    line = refused(cli(*OPEN, "--base-url", provider.base_url))
    assert "holds records.jsonl but no manifest.json: choose another --out" in line
    assert (tmp_path / "run/records.jsonl").read_text() == "{}\n"


def test_a_folder_that_cannot_be_written_ends_with_5(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    where = ("--base-url", provider.base_url)
    for out in ("file", "file/run", "/proc/run"):
        line = refused(cli(*RUN, "--model", "sim/open", "--out", out, *where), 5)
        assert "can't be written" in line and "choose another --out" in line
    line = refused(cli(*RUN[:-1], "file", "--model", "sim/open", "--out", "run", *where), 5)
    assert "/file can't be opened" in line and "use another with --cache" in line
    assert provider.calls() == 0


def test_a_data_set_that_changed_since_is_refused_by_resume(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    import shutil

    from millstream.bench.millstone.work import SAMPLE

    shutil.copytree(SAMPLE, tmp_path / "data")
    assert cli(*OPEN, "--dataset", "data", "--base-url", provider.base_url, "--no-report").code == 0
    one = tmp_path / "data/congestion-charges.json"
    one.write_text(one.read_text().replace("the", "a"))
    assert "is not the data set that this run began with" in refused(cli("resume", "run"))


def test_a_narrow_terminal_is_no_trouble(provider: Provider, tmp_path: Path) -> None:
    narrow = {"COLUMNS": "10", "LINES": "4"}
    assert run_command(tmp_path, "run", "--help", **narrow).code == 0
    done = run_command(tmp_path, *OPEN, "--base-url", provider.base_url, "--no-report", **narrow)
    assert done.code == 0
    assert "sim/open" in done.out
