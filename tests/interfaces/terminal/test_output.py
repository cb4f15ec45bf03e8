"""What is written: inert, in any encoding, to readers that may be gone."""

from __future__ import annotations

import io
import os
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from command_line import COMMAND, SMALL, SMALL_PROMPTS, Provider, environment, ids_of
from terminals import pieces, terminal

from millstream.interfaces.terminal.output import note, note_error, say
from millstream.report.text import inert, table


@pytest.mark.parametrize("text", ["\x1b[2J", "a\x07b", "\u202eevil", "\x9b31m", "tab\there", "\ud800"])
def test_nothing_that_a_terminal_would_obey_is_written(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(text)
    note(text)
    said = capsys.readouterr()
    for line in (said.out, said.err):
        assert line.rstrip("\n").isprintable() and "\N{REPLACEMENT CHARACTER}" in line


def test_ordinary_texts_stay_as_they_are() -> None:
    assert inert("Ünïcode – ✓ 漢字") == "Ünïcode – ✓ 漢字"


def test_signs_that_a_terminal_cannot_show_are_replaced() -> None:
    written = io.BytesIO()
    with redirect_stdout(io.TextIOWrapper(written, encoding="latin-1")):
        say("é – ✓")
        assert written.getvalue() == b"\xe9 ? ?\n"


def test_columns_stand_under_each_other() -> None:
    assert table([("name", "n"), ("a", "1,000"), ("longer", "2")]) == "name        n\na       1,000\nlonger      2"


@pytest.mark.needs_benchmark("millstone")
@pytest.mark.parametrize("closed", [1, 2])
def test_a_process_without_stdout_or_stderr_runs_all_the_same(provider: Provider, tmp_path: Path, closed: int) -> None:
    arguments = ("run", "millstone", "--no-report", "--model", "sim/open", *SMALL, "--base-url", provider.base_url)
    # A shell closes the stream before the program starts.
    shell = ("sh", "-c", f'exec "$@" {closed}>&-', "sh", *COMMAND, *arguments, "--cache", "cache", "--out", "run")
    done = subprocess.run(shell, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert len(ids_of(tmp_path / "run")) == SMALL_PROMPTS


@pytest.mark.needs_benchmark("millstone")
def test_a_reader_of_the_progress_that_goes_away_does_not_end_the_run(provider: Provider, tmp_path: Path) -> None:
    provider.set_faults("slow_body=0.5")
    arguments = ("run", "millstone", "--no-report", "--model", "sim/open", *SMALL, "--base-url", provider.base_url)
    read_end, write_end = os.pipe()
    command = [*COMMAND, *arguments, "--cache", "cache", "--out", "run", "--concurrency", "3"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=write_end, text=True
    ) as process:
        os.close(write_end)
        os.close(read_end)
        out, _ = process.communicate(timeout=40)
    assert process.returncode == 0
    assert "sim/open" in out
    assert len(ids_of(tmp_path / "run")) == SMALL_PROMPTS


@pytest.mark.needs_benchmark("millstone")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device here is always full")
def test_a_result_that_finds_no_room_is_a_local_fault_and_a_remark_is_none(provider: Provider, tmp_path: Path) -> None:
    arguments = (
        "run",
        "millstone",
        "--no-report",
        "--model",
        "sim/open",
        *SMALL,
        "--base-url",
        provider.base_url,
        "--cache",
        "cache",
    )

    def run(redirected: str, out: str) -> subprocess.CompletedProcess[str]:
        shell = ("sh", "-c", f'exec "$@" {redirected}/dev/full', "sh", *COMMAND, *arguments, "--out", out)
        return subprocess.run(
            shell, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False
        )

    lost = run(">", "one")
    assert lost.returncode == 5
    assert "can't be written to stdout (No space left on device)" in lost.stderr and "Traceback" not in lost.stderr
    assert len(ids_of(tmp_path / "one")) == SMALL_PROMPTS
    logless = run("2>", "two")
    assert logless.returncode == 0 and "sim/open" in logless.stdout


def on_terminal(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The bytes of an error on a real terminal, with these variables."""
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ours, theirs = terminal(80)
    with open(theirs, "w", encoding="utf-8") as stream, redirect_stderr(stream):
        note_error("no\x1b[2Jserver")
    return b"".join(pieces(ours))


def test_errors_are_red_on_terminals(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = "no\N{REPLACEMENT CHARACTER}[2Jserver"
    assert on_terminal({"TERM": "xterm"}, monkeypatch) == f"\x1b[31m{text}\x1b[0m\r\n".encode()
    assert on_terminal({"TERM": "xterm", "NO_COLOR": "1"}, monkeypatch) == f"{text}\r\n".encode()
    assert on_terminal({"TERM": "dumb"}, monkeypatch) == f"{text}\r\n".encode()
    note_error("no server")
    assert capsys.readouterr().err == "no server\n"
