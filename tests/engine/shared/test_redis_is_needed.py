"""Where there is no server of Redis its tests are skipped with the reason; under CI they fail."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from shared_server import REDIS, program

SCRIPT = Path(__file__).parent / "install-redis.sh"


def ran(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", SCRIPT], env={"PATH": str(folder)}, capture_output=True, text=True, check=False)


def put(folder: Path, name: str, line: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{line}\n")
    (folder / name).chmod(0o755)


def test_without_a_server_the_reason_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no server of redis is installed"):
        program(REDIS)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no server of redis is installed"):
        program(REDIS)


def test_a_server_that_is_there_is_used_and_nothing_is_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(tmp_path, "redis-server", "exit 0")
    put(tmp_path, "apt-get", "exit 1")
    done = ran(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program(REDIS) == str(tmp_path / "redis-server")


@pytest.mark.parametrize("user", ["0", "1000"])
def test_a_server_that_can_not_be_installed_is_a_remark_and_no_failure(tmp_path: Path, user: str) -> None:
    put(tmp_path, "apt-get", "exit 100")
    put(tmp_path, "id", f"echo {user}")
    done = ran(tmp_path)
    assert done.returncode == 0
    assert "its tests will not run" in done.stderr
    assert ("installing redis-server" in done.stderr) is (user == "0")
    assert os.access(SCRIPT, os.X_OK)
