"""Where there is no browser its tests are skipped with the reason; under CI, where nobody reads that, they fail."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from browser import NAMES, executable

SCRIPT = Path(__file__).parent / "install-browser.sh"


def test_without_a_browser_the_reason_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=f"none of {NAMES[0]}"):
        executable()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=f"none of {NAMES[0]}"):
        executable()


@pytest.mark.parametrize("name", NAMES)
def test_a_browser_that_is_there_is_used_and_nothing_is_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("#!/bin/sh\n")
    (tmp_path / name).chmod(0o755)
    (tmp_path / "apt-get").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "apt-get").chmod(0o755)
    done = subprocess.run(["/bin/sh", SCRIPT], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert executable() == str(tmp_path / name)


def test_a_browser_that_can_not_be_installed_is_a_remark_and_no_failure(tmp_path: Path) -> None:
    (tmp_path / "apt-get").write_text("#!/bin/sh\nexit 100\n")
    (tmp_path / "apt-get").chmod(0o755)
    identity = tmp_path / "id"
    for user in ("0", "1000"):
        identity.write_text(f"#!/bin/sh\necho {user}\n")
        identity.chmod(0o755)
        done = subprocess.run(
            ["/bin/sh", SCRIPT], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0
        assert "the tests of pages in a browser will not run" in done.stderr
        assert ("installing chromium" in done.stderr) is (user == "0")
    assert os.access(SCRIPT, os.X_OK)
