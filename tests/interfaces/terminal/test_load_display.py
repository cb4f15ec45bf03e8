"""The live display on a real terminal: painted over in place, narrow where the terminal is, and left clean."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import COMMAND, Provider, environment, run_command
from terminals import pieces, terminal

CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def on_a_terminal(
    home: Path, columns: int, arguments: tuple[str, ...], interrupt_when: Callable[[], bool] | None = None, **more: str
) -> tuple[int, str]:
    """What a terminal gets on stderr from a load test; exit code and text."""
    ours, theirs = terminal(columns)
    variables = {**environment(home), "TERM": "xterm-256color", **more}
    command = [*COMMAND, "load", "sim/open", *arguments]
    process = subprocess.Popen(command, cwd=home, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, env=variables)
    os.close(theirs)
    got = b""
    for piece in pieces(ours):
        got += piece
        if interrupt_when is not None and interrupt_when():
            process.send_signal(signal.SIGINT)
            interrupt_when = None
    return process.wait(timeout=30), got.decode()


def small(provider: Provider, *more: str) -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "out", "--no-report")
    return (*where, "--rate", "30", "--duration", "2.5s", "--prompt-tokens", "20", *more)


@pytest.mark.parametrize("columns", [80, 40])
def test_a_test_is_painted_over_in_place_within_the_terminals_width(
    provider: Provider, tmp_path: Path, columns: int
) -> None:
    code, text = on_a_terminal(tmp_path, columns, small(provider))
    assert code == 0
    frames = text.split("\x1b[J")
    # Two pictures a second: each but the first begins where the one before it began.
    assert len(frames) >= 4 and all(re.match(r"\r\x1b\[\d+A", frame) for frame in frames[1:-1])
    lines = [line for frame in frames[1:-1] for line in CODES.sub("", frame).splitlines()]
    assert max(map(len, lines)) < columns
    assert any("asked 30/s" in line for line in lines) and any("latency p50" in line for line in lines)
    assert "\x1b[?25l" not in text and text.endswith("\n")


def test_a_signals_remark_stands_above_what_is_painted(provider: Provider, tmp_path: Path) -> None:
    provider.set_faults("slow_body=2")
    arguments = small(provider, "--duration", "30s")
    code, text = on_a_terminal(tmp_path, 100, arguments, lambda: provider.calls() >= 10)
    assert code == 130
    _, _, after = text.partition("\x1b[Jmillstream: SIGINT: waiting up to")
    assert "waiting for" in CODES.sub("", after) and "calls in flight" in after


def test_without_colours_no_colour_is_sent_and_a_dumb_terminal_gets_plain_lines(
    provider: Provider, tmp_path: Path
) -> None:
    _, bare = on_a_terminal(tmp_path, 80, small(provider), NO_COLOR="1")
    assert not re.search(r"\x1b\[[\d;]*m", bare) and "asked 30/s" in bare
    _, dumb = on_a_terminal(tmp_path, 80, small(provider, "--out", "dumb"), TERM="dumb")
    assert "\x1b" not in dumb and "| sim/open: asked 30/s" in dumb


def test_a_pipe_gets_plain_lines_and_nothing_where_no_progress_is_wanted(provider: Provider, tmp_path: Path) -> None:
    said = run_command(tmp_path, "load", "sim/open", *small(provider))
    assert "\x1b" not in said.err and "| sim/open: asked 30/s, sent" in said.err
    quiet = run_command(tmp_path, "load", "sim/open", *small(provider, "--out", "quiet", "--no-progress"))
    assert quiet.code == 0 and "asked" not in quiet.err and "latency, ms" in quiet.out
