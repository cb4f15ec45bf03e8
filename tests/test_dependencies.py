"""What the program imports is named by the project itself, so that an install has it, whatever the installer makes of
the requirements of others."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAMED = {canonicalize_name(Requirement(text).name) for text in PROJECT["dependencies"]}
OPTIONAL = {
    canonicalize_name(Requirement(text).name) for texts in PROJECT["optional-dependencies"].values() for text in texts
}
# Used by what only an optional dependency runs, which needs it itself.
WITH_OPTIONAL = {"tqdm"}
# Used where the user has it already; who has not is told what to install.
USERS = {"pandas"}


def imported(path: Path) -> set[str]:
    """The modules of others that a file imports, by their first names."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names - {"millstream"}


def test_every_library_that_is_imported_is_named(tree: list[str]) -> None:
    ours = [path for path in tree if path.endswith(".py") and not path.startswith(("tests/", ".ci/"))]
    owners = packages_distributions()
    unnamed = {
        f"{path}: {module}"
        for path in ours
        for module in imported(ROOT / path)
        if not {canonicalize_name(name) for name in owners.get(module, [module])}
        & (NAMED | OPTIONAL | WITH_OPTIONAL | USERS)
    }
    assert unnamed == set()


def by_extras(name: str, seen: set[str]) -> set[str]:
    """What a distribution, and all that it needs, get through extras of others. An installer that writes an extra's
    name in another way than its package leaves these out, and says so in a warning at most."""
    found: set[str] = set()
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        needed = canonicalize_name(requirement.name)
        for extra in requirement.extras:
            wanted = canonicalize_name(extra)
            found |= {
                canonicalize_name(Requirement(other).name)
                for other in distribution(needed).requires or ()
                if re.search(rf"extra == ['\"]{re.sub('[-_.]', '[-_.]', wanted)}['\"]", other)
            }
        if needed not in seen:
            seen.add(needed)
            found |= by_extras(needed, seen)
    return found


def test_what_comes_through_an_extra_alone_is_named_too() -> None:
    found: set[str] = set()
    seen: set[str] = set()
    for name in NAMED:
        found |= by_extras(name, seen)
    assert "lxml-html-clean" in found, "nothing is looked through"
    assert found - NAMED == set()


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-dev.txt"])
def test_every_dependency_is_locked_with_hashes(file: str) -> None:
    locked = re.findall(
        r"^([A-Za-z0-9._-]+)==\S+[^\n]*\\\n    --hash=sha256:[0-9a-f]{64}", (ROOT / file).read_text(), re.M
    )
    assert NAMED - {canonicalize_name(name) for name in locked} == set()


def test_the_build_is_pinned_to_what_the_project_is_tested_with() -> None:
    (required,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert re.search(rf"^{re.escape(required)} ", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE)
