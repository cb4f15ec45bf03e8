"""A benchmark is a room: nothing else names it, and with its rooms taken away all the rest still works.

`make without BENCHMARK=name` runs the whole suite on what is left; here it is imported and asked the short questions.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from ci_programs import ci_program

from millstream.bench.evaluation.door.declarations import BUILT_IN

ROOT = Path(__file__).parent.parent
OURS = Path(__file__).relative_to(ROOT).as_posix()
# `task` is how people write evaluations of their own: a public name, and no room to be taken away.
ROOMS = [name for name in BUILT_IN if name != "task"]
# Where a benchmark may be named: what lists it, what simulates the outside, what shows the program.
ALLOWED = (
    ".ci/", "Makefile", "docs/", "fixtures/", "speed/", "tests/", "CHANGELOG.md", "CITATION.cff",
    "CONTRIBUTING.md", "README.md", "pyproject.toml",
    "bench/evaluation/door/declarations.py", "interfaces/cli/verbs/demo.py",
)  # fmt: skip
# Other programs' plugins import those programs, and speed/ is no part of what is installed.
IMPORTED = (
    "bench/", "configuration/", "metrics/", "report/", "wiring/",
    *(f"interfaces/{room}" for room in ("batch", "cache", "cli", "export", "gateway", "load", "probe", "terminal")),
)  # fmt: skip
# What every command prints of a benchmark that stays.
QUESTIONS = """
import contextlib, importlib, io, json, sys
import millstream
from millstream.interfaces.cli.command import main

def said(*arguments):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = main(list(arguments))
    return code, out.getvalue()

modules, questions = json.load(sys.stdin)
for name in modules:
    importlib.import_module(name)
print(json.dumps([said(*question) for question in questions]))
"""
PLANS = {
    "millstone": ("plan", "millstone", "--model", "sim/open"),
    "chameleon": ("plan", "chameleon", "--model", "sim/open", "--judge", "sim/judge"),
    "sycon": ("plan", "sycon", "--model", "sim/open", "--judge", "sim/judge"),
}


def link(source: Path, copy: Path, apart: set[str]) -> None:
    """Make a folder of links to all that is in another, but for the files `apart`."""
    copy.mkdir()
    for child in source.iterdir():
        within = {path.partition("/")[2] for path in apart if path.split("/")[0] == child.name}
        if not within and not child.name.startswith((".", "__pycache__")):
            (copy / child.name).symlink_to(child)
        elif within - {""}:
            link(child, copy / child.name, within)


@pytest.fixture(scope="module")
def without() -> ModuleType:
    return ci_program("without")


@pytest.mark.parametrize("name", ROOMS)
def test_nothing_outside_its_rooms_names_a_benchmark(without: ModuleType, tree: list[str], name: str) -> None:
    elsewhere = [path for path in tree if not path.startswith(ALLOWED) and not without.in_room(path, name)]
    assert [path for path in elsewhere if without.names((ROOT / path).read_text("utf-8"), name)] == []


@pytest.mark.parametrize("name", ROOMS)
def test_a_test_that_names_a_benchmark_lies_in_its_room_or_is_marked(
    without: ModuleType, tree: list[str], name: str
) -> None:
    shared = without.stems(path for path in without.dependents(ROOT, tree, name) if path.startswith("tests/support/"))
    unmarked = []
    for path in tree:
        if not re.fullmatch(r"tests/(?!support/|fixtures/).*\.py", path) or without.in_room(path, name) or path == OURS:
            continue
        text = (ROOT / path).read_text("utf-8")
        marks = "".join(re.findall(rf"{without.MARKER}\(([^)]*)\)", text))
        if without.imports(text, name) or without.imported(text) & shared:
            is_honest = name in without.needs(text)
        else:
            is_honest = f'"{name}"' in marks or not without.code_names(text, name)
        if not is_honest:
            unmarked.append(path)
    assert unmarked == []


@pytest.mark.long
@pytest.mark.parametrize("name", ROOMS)
def test_without_a_benchmark_all_the_rest_imports_and_answers(
    without: ModuleType, tree: list[str], tmp_path: Path, name: str
) -> None:
    gone = without.taken_away(ROOT, [path for path in tree if path.startswith(IMPORTED)], name)
    changed = without.changed(ROOT, name)
    link(ROOT, tmp_path / "millstream", {*gone, *changed, "tests/x", "docs/x"})
    for path, text in changed.items():
        (tmp_path / "millstream" / path).write_text(text, "utf-8")
    stay = [path for path in tree if path.startswith(IMPORTED) and path.endswith(".py") and path not in gone]
    modules = ["millstream." + path[:-3].replace("/", ".").removesuffix(".__init__") for path in stay]
    others = [other for other in ROOMS if other != name]
    questions = [
        ("--help",),
        ("run", "--help"),
        ("score", "--help"),
        ("report", "--help"),
        *(PLANS[one] for one in others),
    ]
    questions.append(("plan", name))
    (tmp_path / "home").mkdir()
    done = subprocess.run(
        [sys.executable, "-P", "-c", QUESTIONS],
        input=json.dumps([modules, questions]),
        cwd=tmp_path / "home",
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *answered, refused = json.loads(done.stdout)
    assert [(question, *answer) for question, answer in zip(questions, answered, strict=False) if answer[0] != 0] == []
    assert not any(without.names(text, name) for _, text in answered)
    assert refused[0] == 2 and "Traceback" not in refused[1]
