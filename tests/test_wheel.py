"""The built wheel against the tree: what is installed is what was written.

setuptools drops a sub-package that pyproject.toml does not list, and a data file that no pattern names, without a
word. So a wheel is built from a copy of the tree, compared file by file, and every module of it is imported from an
empty environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import venv
import zipfile
from collections.abc import Iterable
from configparser import ConfigParser
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from millstream.bench.evaluation.door.declarations import BUILT_IN

ROOT = Path(__file__).parent.parent
# Of the files beside the rooms, the ones that a wheel holds.
ROOT_FILES = ("py.typed", "*.py")

BUILD = "import sys; from setuptools import build_meta as b; b.build_{}(sys.argv[1])"

# Imports every module it is given and prints the file each one came from.
IMPORT_ALL = """
import importlib, json, sys
print(json.dumps([importlib.import_module(name).__file__ for name in json.load(sys.stdin)]))
"""


def to_be_shipped(paths: Iterable[str]) -> set[str]:
    """The part of a tree that belongs into a wheel: the rooms, whole, and the root's own modules. What measures our own
    speed stays in the tree."""
    paths = list(paths)
    rooms = {path.split("/")[0] for path in paths if path.count("/") == 1 and path.endswith("/__init__.py")} - {"speed"}
    return {
        path
        for path in paths
        if path.split("/")[0] in rooms or ("/" not in path and any(Path(path).match(pattern) for pattern in ROOT_FILES))
    }


def differences(shipped: Iterable[str], paths: Iterable[str]) -> list[str]:
    """What a wheel lacks or has beyond the tree, a line a file."""
    shipped, wanted = set(shipped), to_be_shipped(paths)
    missing = [f"{path} is not in the wheel: list it in pyproject.toml" for path in sorted(wanted - shipped)]
    return missing + [f"{path} is in the wheel but not in the tree" for path in sorted(shipped - wanted)]


def files_of(wheel: Path) -> list[str]:
    """The package's files in a wheel, by their place in the tree."""
    with zipfile.ZipFile(wheel) as archive:
        return [name.removeprefix("millstream/") for name in archive.namelist() if ".dist-info/" not in name]


def copy_tree(tree: list[str], to: Path) -> Path:
    for path in tree:
        (to / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, to / path)
    return to


def build(kind: str, checkout: Path, into: Path) -> Path:
    """A wheel or a source archive, by the pinned setuptools of this environment, without network."""
    command = [sys.executable, "-c", BUILD.format(kind), str(into)]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = into.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tree: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    # The folder's name is no identifier on purpose: the package's name must not come from it.
    checkout = copy_tree(tree, tmp_path_factory.mktemp("a check-out", numbered=False))
    return build("wheel", checkout, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_every_file_of_every_room_and_nothing_else(wheel: Path, tree: list[str]) -> None:
    assert differences(files_of(wheel), tree) == []


def offered(project: str) -> dict[str, dict[str, str]]:
    """The entry points that pyproject.toml names, by their groups."""
    found = tomllib.loads(project)["project"]
    return {"console_scripts": found["scripts"], **found.get("entry-points", {})}


def test_the_wheel_offers_every_entry_point_and_each_leads_to_a_module_in_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt"))
        told = ConfigParser(delimiters=("=",))
        told.read_string(archive.read(name).decode())
    assert {group: dict(told[group]) for group in told.sections()} == offered((ROOT / "pyproject.toml").read_text())
    files = {f"millstream/{path}" for path in files_of(wheel)}
    modules = [value.partition(":")[0].replace(".", "/") for group in told.sections() for value in told[group].values()]
    assert [module for module in modules if not files & {f"{module}.py", f"{module}/__init__.py"}] == []


def test_used_in_place_it_offers_the_same_entry_points() -> None:
    for group, points in offered((ROOT / "pyproject.toml").read_text()).items():
        found = {point.name: point.value for point in entry_points(group=group)}
        assert points.items() <= found.items(), f"{group} is not what pyproject.toml says: make tools"


TREE = ["__init__.py", "py.typed", "Makefile", "room/__init__.py", "room/inner/a.py", "room/data/a.json", "tests/t.py"]


@pytest.mark.parametrize(
    ("shipped", "expected"),
    [
        (["__init__.py", "py.typed", "room/__init__.py", "room/inner/a.py", "room/data/a.json"], []),
        (
            ["__init__.py", "py.typed", "room/__init__.py", "room/data/a.json"],
            ["room/inner/a.py is not in the wheel: list it in pyproject.toml"],
        ),
        (
            ["__init__.py", "py.typed", "room/__init__.py", "room/inner/a.py", "tests/t.py"],
            [
                "room/data/a.json is not in the wheel: list it in pyproject.toml",
                "tests/t.py is in the wheel but not in the tree",
            ],
        ),
    ],
    ids=["the same", "a module dropped", "data dropped and a test shipped"],
)
def test_every_difference_is_told_by_its_file(shipped: list[str], expected: list[str]) -> None:
    assert differences(shipped, TREE) == expected


@pytest.fixture(scope="module")
def archive(tree: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    checkout = copy_tree(tree, tmp_path_factory.mktemp("checkout"))
    # What lies in a folder in which one has worked.
    for left in ("runs/records.jsonl", ".venv/lib/a.py", "build/b.py", "tests/node/node_modules/c.js", "tests/d.pyc"):
        (checkout / left).parent.mkdir(parents=True, exist_ok=True)
        (checkout / left).write_text("{}\n")
    return build("sdist", checkout, tmp_path_factory.mktemp("archive"))


def test_the_source_archive_holds_what_the_repository_has_and_nothing_else(archive: Path, tree: list[str]) -> None:
    with tarfile.open(archive) as held:
        names = {entry.name.partition("/")[2] for entry in held.getmembers() if entry.isfile()}
    made = {name for name in names if name in ("PKG-INFO", "setup.cfg") or name.startswith("millstream.egg-info/")}
    assert (sorted(set(tree) - names), sorted(names - made - set(tree))) == ([], [])


def test_a_wheel_made_from_the_source_archive_is_the_one_made_from_the_tree(
    archive: Path, wheel: Path, tmp_path: Path
) -> None:
    with tarfile.open(archive) as held:
        held.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    (tmp_path / "wheel").mkdir()
    assert files_of(build("wheel", source, tmp_path / "wheel")) == files_of(wheel)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty environment with the wheel in it, which sees this environment's dependencies."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", str(place / "bin/python")]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", str(wheel)], check=True, capture_output=True)
    # Only site folders have their .pth files read, so this environment's own link to the tree is not followed.
    (packages,) = place.glob("lib/*/site-packages")
    dependencies = Path(pytest.__file__).parent.parent
    (packages / "dependencies.pth").write_text(f"{dependencies}\n")
    return place


@pytest.mark.long
def test_every_module_of_every_room_can_be_imported_from_the_installed_wheel(wheel: Path, installed: Path) -> None:
    # A __main__ may start its program when it is imported; the one that is a command is tried below.
    files = [Path(path) for path in files_of(wheel) if path.endswith(".py")]
    modules = [path.with_suffix("").parts for path in files if path.name != "__main__.py"]
    names = [".".join(["millstream", *parts]).removesuffix(".__init__") for parts in modules]
    command = [str(installed / "bin/python"), "-I", "-W", "error", "-c", IMPORT_ALL]
    done = subprocess.run(command, input=json.dumps(names), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    origins = json.loads(done.stdout)
    assert len(origins) == len(modules) > 1
    assert [origin for origin in origins if not Path(origin).is_relative_to(installed)] == []


def test_the_installed_program_answers(installed: Path) -> None:
    command = [str(installed / "bin/python"), "-I", str(installed / "bin/millstream"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert BUILT_IN[0] in done.stdout


# Installed from a registry, by each Python's own pip, and by the oldest that a supported Python brought (3.11.0).
OLDEST_PIP = "22.3"
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
FROM_REGISTRY = pytest.mark.skipif("MILLSTREAM_WHEELS" not in os.environ, reason="installs from a registry: make wheel")


def environment_of(python: str, place: Path, pip: str = "") -> list[str]:
    """Makes an empty environment and returns the command that installs into it."""
    subprocess.run([python, "-m", "venv", place], check=True)
    install = [str(place / "bin/python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    if pip:
        subprocess.run([*install, f"pip=={pip}"], check=True, capture_output=True)
    return install


def python_of(version: str) -> str | None:
    """The path of a Python of this machine, if there is one that runs."""
    installed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    others = (str(path) for path in sorted(installed.glob(f"{version}.*/bin/python3")))
    for place in filter(None, (shutil.which(f"python{version}"), *others)):
        if subprocess.run([place, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0:
            return place
    return None


@FROM_REGISTRY
@pytest.mark.parametrize("version", SUPPORTED)
@pytest.mark.parametrize("source", ["wheel", "source archive", "repository", "wheel, oldest pip"])
def test_an_installed_demo_holds_conversations_and_writes_reports(
    version: str, source: str, wheel: Path, archive: Path, tree: list[str], tmp_path: Path
) -> None:
    python = python_of(version)
    if python is None:
        pytest.skip(f"there is no python{version} on this machine")
    if "oldest" in source and version != SUPPORTED[0]:
        pytest.skip("that pip came with the oldest Python alone")
    install = environment_of(python, tmp_path / "environment", OLDEST_PIP if "oldest" in source else "")
    begun = time.monotonic()
    if source == "source archive":
        subprocess.run([*install, str(archive)], check=True, capture_output=True)
    elif source == "repository":
        subprocess.run([*install, str(copy_tree(tree, tmp_path / "check out"))], check=True, capture_output=True)
    else:
        subprocess.run([*install, "--only-binary", ":all:", str(wheel)], check=True, capture_output=True)
    own = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    demo = [str(tmp_path / "environment" / "bin" / "millstream"), "demo", "--quick"]
    done = subprocess.run(demo, cwd=tmp_path, env=own, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    reports = [path for path in tmp_path.rglob("report.html") if "environment" not in path.parts]
    assert len(reports) >= 3 and str(reports[0].name) in done.stdout
    records = [json.loads(line) for path in tmp_path.rglob("records.jsonl") for line in path.read_text().splitlines()]
    turns = [record for record in records if "retrieved" in record]
    assert sum(page["status"] == "ok" for turn in turns for page in turn["retrieved"]) > 0
    print(f"Python {version}, {source}: {time.monotonic() - begun:.0f} s from the installation to the reports")
    assert time.monotonic() - begun < 120
