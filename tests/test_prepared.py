"""A prepared process of the program is what an executed one is (tests/support/prepared.py)."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND, environment
from prepared import Prepared, kind_for

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the program is executed")
KINDS: tuple[type[subprocess.Popen[Any]], ...] = (subprocess.Popen, Prepared)


def opened(kind: type[subprocess.Popen[Any]], home: Path, *arguments: str) -> subprocess.Popen[Any]:
    pipe = subprocess.PIPE
    command = [*COMMAND, *arguments]
    return kind(command, cwd=home, env=environment(home), stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@on_linux
@pytest.mark.parametrize("arguments", [("models",), ("rum",), ("score", "nowhere"), ("score", ".")])
def test_it_says_the_same_and_ends_with_the_same_code(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ended = []
    for kind in KINDS:
        with opened(kind, tmp_path, *arguments) as process:
            ended.append((*process.communicate(), process.returncode))
    assert ended[0] == ended[1]


@on_linux
def test_it_is_a_child_in_its_folder_with_its_streams_limits_and_ignored_signals(tmp_path: Path) -> None:
    def seen(kind: type[subprocess.Popen[Any]]) -> list[object]:
        (tmp_path / "port").unlink(missing_ok=True)
        with opened(kind, tmp_path, "sim", "--port", "0", "--port-file", "port", "--until-eof") as process:
            while not (tmp_path / "port").exists():
                assert process.poll() is None
            place = Path(f"/proc/{process.pid}")
            status = dict(line.split(":\t", 1) for line in (place / "status").read_text().splitlines() if ":\t" in line)
            names = ("PPid", "SigIgn", "NoNewPrivs", "Seccomp", "Uid")
            files = {number: os.readlink(place / "fd" / number).partition(":")[0] for number in ("0", "1", "2")}
            held = [os.readlink(place / "cwd"), files, (place / "limits").read_text(), *map(status.get, names)]
            process.send_signal(signal.SIGKILL)
            return [*held, process.wait()]

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 10, hard))
    try:
        executed, prepared = map(seen, KINDS)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert prepared == executed


def test_what_concerns_the_interpreter_is_executed() -> None:
    assert [kind_for({name: "x"}) for name in ("PYTHONPATH", "LD_PRELOAD")] == [subprocess.Popen] * 2
