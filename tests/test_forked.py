"""Forks that share tests report what a single process reports: nothing is lost, whatever ends a fork."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

SUPPORT = Path(__file__).parent / "support"
FIRST = """
import os, pathlib, pytest, warnings

@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    yield tmp_path_factory.mktemp("shared")
    pathlib.Path(f"session-{os.getpid()}").touch()

@pytest.fixture(scope="module")
def of_module():
    yield
    pathlib.Path("module-ended").touch()

def test_printing(shared, of_module, tmp_path):
    print("printed")

def test_failing(shared):
    print("about two numbers")
    assert 1 == 2

def test_dying(shared):
    os.kill(os.getpid(), 9)

def test_after_it(shared, of_module):
    warnings.warn("careful")
"""
SECOND = """
import pathlib, pytest, time
from test_first import shared

@pytest.mark.skip(reason="for a reason")
def test_skipped(): pass

@pytest.mark.timeout(0.5)
def test_hanging(shared):
    print("before the wait")
    time.sleep(60)

def test_apart(shared, tmp_path):
    assert "fork" in tmp_path.parent.name and tmp_path.parent == shared.parent
"""
WAITING = """
import pathlib, time
from test_first import shared

def test_waiting(shared):
    pathlib.Path("waiting-NUMBER").touch()
    time.sleep(60)
"""


def begun(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-P", "-m", "pytest", "-p", "pytest_timeout", "-p", "forked", "--forks", "2", "-ra"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": f"{SUPPORT}:{folder}"}
    return subprocess.Popen(
        [*command, "--junitxml=found.xml", f"--basetemp={folder}/kept", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_every_test_is_reported_once_and_a_dead_fork_names_its_test(tmp_path: Path) -> None:
    (tmp_path / "test_first.py").write_text(FIRST)
    (tmp_path / "test_second.py").write_text(SECOND)
    process = begun(tmp_path)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 1, printed
    assert "3 failed, 3 passed, 1 skipped, 1 warning" in printed
    assert "FAILED test_first.py::test_dying" in printed
    assert "the process that ran this test died: exit code -9" in printed
    assert "Failed: Timeout (>0.5s)" in printed
    assert "about two numbers" in printed
    assert "before the wait" in printed
    assert "UserWarning: careful" in printed
    cases = [case.get("name") for case in ElementTree.parse(tmp_path / "found.xml").iter("testcase")]
    names = ["printing", "failing", "dying", "after_it", "skipped", "hanging", "apart"]
    assert sorted(map(str, cases)) == sorted(f"test_{name}" for name in names)
    # The fork that died ended none of its fixtures; the one that came after it did, and so did the other.
    assert len(list(tmp_path.glob("session-*"))) == 2
    assert (tmp_path / "module-ended").exists()


def test_the_first_failure_stops_the_others(tmp_path: Path) -> None:
    (tmp_path / "test_first.py").write_text(FIRST)
    (tmp_path / "test_waiting.py").write_text(WAITING)
    process = begun(tmp_path, "-x")
    printed, _ = process.communicate(timeout=40)
    assert process.returncode == 1
    assert "stopping after 1 failures" in printed
    assert "1 failed, 1 passed" in printed


def test_an_interruption_ends_every_fork_and_its_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_first.py").write_text(FIRST)
    for number in "12":
        (tmp_path / f"test_waiting_{number}.py").write_text(WAITING.replace("NUMBER", number))
    process = begun(tmp_path, "test_waiting_1.py", "test_waiting_2.py")
    until = time.monotonic() + 40
    while len(list(tmp_path.glob("waiting-*"))) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=40)
    assert process.returncode == 2, printed
    assert len(list(tmp_path.glob("session-*"))) == 2
