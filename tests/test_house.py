"""The house's own rules, those that a linter does not know: its size, its locks, its paths, its floors."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from ci_programs import ci_program
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCKS = ("requirements.txt", "requirements-docs.txt", "requirements-dev.txt")

# Modules beyond 400 lines, each with its reason.
LONG: dict[str, str] = {}


def pins(lock: str) -> dict[str, str]:
    """The version of every package in a lock."""
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / lock).read_text(), re.MULTILINE))


def test_no_module_is_longer_than_400_lines_without_a_reason(tree: list[str]) -> None:
    lengths = {path: (ROOT / path).read_text().count("\n") for path in tree if path.endswith(".py")}
    assert {path: lines for path, lines in lengths.items() if lines > 400 and path not in LONG} == {}
    assert [path for path in LONG if lengths.get(path, 0) <= 400] == []


def test_no_module_is_a_drawer_for_anything(tree: list[str]) -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "core", "manager", "misc"}
    assert [path for path in tree if path.endswith(".py") and drawers & set(re.split(r"[/._]", path))] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_version_has_its_hashes(lock: str) -> None:
    blocks = re.split(r"\n(?=\S)", (ROOT / lock).read_text().strip())
    assert len(blocks) == len(pins(lock)) > 10
    assert [block for block in blocks if not re.search(r"--hash=sha256:[0-9a-f]{64}", block)] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_address_and_no_place(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert re.findall(r".*(?:https?:|file:|--index-url|--extra-index-url|--find-links|@ ).*", text) == []
    assert re.findall(r"(?<![\w.])/\w.*", text) == []


def test_the_locks_hold_everything_that_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime = project["project"]["dependencies"]
    docs, (included, *dev) = (project["dependency-groups"][name] for name in ("docs", "dev"))
    assert included == {"include-group": "docs"}
    tools = docs + dev + project["build-system"]["requires"]
    for lock, wanted in zip(LOCKS, (runtime, runtime + docs, runtime + tools), strict=True):
        locked = pins(lock)
        for requirement in map(Requirement, wanted):
            version = locked.get(canonicalize_name(requirement.name), "0")
            assert requirement.specifier.contains(version), f"{lock} has {version} of {requirement}: make lock"


def test_nothing_is_installed_without_its_hash() -> None:
    installs = re.findall(r".*pip install.*", (ROOT / "Makefile").read_text())
    assert installs != []
    assert [line for line in installs if "--require-hashes" not in line] == []


def test_tools_and_program_are_locked_to_the_same_versions() -> None:
    assert pins("requirements.txt").items() <= pins("requirements-docs.txt").items()
    assert pins("requirements-docs.txt").items() <= pins("requirements-dev.txt").items()


def test_no_file_names_a_place_on_somebodys_machine(tree: list[str]) -> None:
    place = re.compile(rb"(?<![\w.~$})/-])/(?:work|root|home/\w+|Users/\w+)/[\w.]")
    assert [path for path in tree if place.search((ROOT / path).read_bytes())] == []


def test_continuous_integration_runs_the_tests_and_then_the_checks() -> None:
    lines = (ROOT / ".ci/run").read_text().splitlines()
    assert "set -euo pipefail" in lines
    assert [line for line in lines if line.startswith("make ")] == [
        "make test || .venv/bin/python -P .ci/again.py",
        "make long || .venv/bin/python -P .ci/again.py",
        "make check",
    ]
    assert os.access(ROOT / ".ci/run", os.X_OK)


@pytest.mark.parametrize(
    ("status", "failed"),
    [
        ("1", []),
        ("1", ["tests/a.py::one", "tests/a.py::two", "tests/b.py::one", "tests/b.py::two"]),
        ("1", ["tests/broken.py"]),
        # Ended in the middle, by a signal or a fault of pytest's own: the other tests never ran.
        ("2", ["tests/a.py::one"]),
        ("null", ["tests/a.py::one"]),
    ],
)
def test_only_few_failed_tests_of_a_whole_run_are_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, failed: list[str]
) -> None:
    again = ci_program("again")
    (tmp_path / again.FAILED).parent.mkdir(parents=True)
    (tmp_path / again.FAILED).write_text(json.dumps(dict.fromkeys(failed, True)))
    (tmp_path / again.EXIT_STATUS).parent.mkdir(parents=True)
    (tmp_path / again.EXIT_STATUS).write_text(status)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        again.main()
    assert isinstance(ended.value.code, str)


# A module that is put into a room, what it imports, the rule that must notice, and what it says then.
FLOORS = "A module imports only from floors below"
CIRCLE = "No import runs in a circle"
BREACHES = {
    "fixtures/breach.py": ("from .. import engine", FLOORS, "fixtures.breach -> millstream.engine"),
    "engine/breach.py": ("from .. import providers", FLOORS, "engine.breach -> millstream.providers"),
    "metrics/breach.py": ("from .. import providers", FLOORS, "metrics.breach -> millstream.providers"),
    "providers/breach.py": ("from .. import metrics", FLOORS, "providers.breach -> millstream.metrics"),
    "providers/llm/breach.py": ("from ... import bench", FLOORS, "providers.llm.breach -> millstream.bench"),
    "providers/llm/anthropic/breach.py": (
        "from .. import openai",
        "Vendors' protocols never import each other",
        "llm.anthropic.breach -> millstream.providers.llm.openai",
    ),
    "bench/load/breach_up.py": ("from ... import interfaces", FLOORS, "breach_up -> millstream.interfaces"),
    "wiring/breach.py": ("from .. import bench", FLOORS, "wiring.breach -> millstream.bench"),
    "interfaces/breach.py": ("from .. import speed", FLOORS, "interfaces.breach -> millstream.speed"),
    "bench/load/breach.py": (
        "from .. import task",
        "Rooms of the bench never import each other",
        "bench.load.breach -> millstream.bench.task",
    ),
    **{
        f"bench/{room}/breach.py": (
            f"from .. import {other}",
            "Rooms of the bench never import each other",
            f"bench.{room}.breach -> millstream.bench.{other}",
        )
        for room, other in (("load", "probe"), ("probe", "load"), ("made_prompts", "load"))
    },
    "bench/evaluation/breach.py": (
        "from .. import task",
        "Rooms of the bench never import each other",
        "bench.evaluation.breach -> millstream.bench.task",
    ),
    "bench/evaluation/door/breach.py": (
        "from .. import page",
        "An evaluation's rooms stand in this order",
        "evaluation.door.breach -> millstream.bench.evaluation.page",
    ),
    "report/breach.py": ("from .. import bench", FLOORS, "report.breach -> millstream.bench"),
    "configuration/breach.py": ("from .. import bench", FLOORS, "configuration.breach -> millstream.bench"),
    "engine/attempts/breach.py": (
        "from .. import lanes",
        "The engine's rooms stand in this order",
        "engine.attempts.breach -> millstream.engine.lanes",
    ),
    "engine/store/breach.py": (
        "from .. import lanes",
        "The engine's rooms stand in this order",
        "engine.store.breach -> millstream.engine.lanes",
    ),
    "metrics/load/breach.py": (
        "from .. import task",
        "A benchmark's formulas stand on statistics alone",
        "metrics.load.breach -> millstream.metrics.task",
    ),
    "engine/breach_outside.py": (
        "import aiohttp",
        "The engine knows no HTTP library and no screen",
        "engine.breach_outside -> aiohttp",
    ),
    "providers/breach_shared.py": (
        "from ..engine import shared",
        "Only engine and wiring know the server that machines share",
        "providers.breach_shared -> millstream.engine.shared",
    ),
    "providers/breach_simulated.py": (
        "from .. import fixtures",
        "Only interfaces, benchmarks' samples and the speed bench use the simulated outside",
        "providers.breach_simulated -> millstream.fixtures",
    ),
    "metrics/breach_one.py": ("from . import breach_two", CIRCLE, "No cycles are allowed in millstream.metrics."),
    "metrics/breach_two.py": ("from . import breach_one", CIRCLE, "breach_two -> .breach_one"),
}


def test_every_kind_of_wrong_import_is_noticed(tree: list[str], tmp_path: Path) -> None:
    for path in tree:
        if path.endswith((".py", "pyproject.toml")) and not path.startswith("tests/"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, tmp_path / path)
    for path, (line, _, _) in BREACHES.items():
        (tmp_path / path).write_text(f"{line}\n")
    (tmp_path / ".types").mkdir()
    (tmp_path / ".types/millstream").symlink_to("..")
    linter = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / ".types"), "COLUMNS": "200"}
    done = subprocess.run(linter, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    # Each broken rule is a heading, underlined, and what breaks it.
    report = done.stdout.partition("Broken contracts")[2]
    broken = dict(re.findall(r"\n([^\n]+)\n-+\n(.*?)(?=\n[^\n]+\n-+\n|\Z)", report, re.DOTALL))
    unnoticed = {path: rule for path, (_, rule, evidence) in BREACHES.items() if evidence not in broken.get(rule, "")}
    assert unnoticed == {}, done.stdout


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    return ci_program("audit")


def advice(*dependencies: dict[str, object]) -> str:
    return json.dumps({"dependencies": dependencies, "fixes": []})


GOOD: dict[str, object] = {"name": "good", "version": "1.0", "vulns": []}
BAD: dict[str, object] = {"name": "bad", "version": "2.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"]}]}
UNKNOWN: dict[str, object] = {"name": "unknown", "skip_reason": "not found"}
NO_NETWORK = "Traceback\nrequests.exceptions.ConnectionError: HTTPSConnectionPool(host='nowhere')"


@pytest.mark.parametrize(
    ("exit_code", "stdout", "stderr", "passed", "said"),
    [
        (0, advice(GOOD), "", True, "no known vulnerability in 1 packages"),
        (0, advice(GOOD, UNKNOWN), "", True, "no known vulnerability in 1 packages; NOT audited: unknown"),
        (0, advice(UNKNOWN), "", True, "NOT audited"),
        (1, "", NO_NETWORK, True, "NOT audited"),
        (1, advice(GOOD, BAD, UNKNOWN), "", False, "bad 2.0: PYSEC-1, mended in 2.1"),
        (1, "", "ValueError: requirement without a hash", False, "requirement without a hash"),
    ],
    ids=["good", "partly known", "none known", "no network", "vulnerable", "broken"],
)
def test_an_audit_fails_on_an_answer_and_never_calls_silence_a_pass(
    audit: ModuleType, exit_code: int, stdout: str, stderr: str, passed: bool, said: str
) -> None:
    verdict, text = audit.verdict(exit_code, stdout, stderr)
    assert verdict is passed
    assert said in text
