"""Measures what an installation takes on disk: every locked package that the program needs, and the program itself.

Fails above the bound. Bytecode is not counted: it is written on first use.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parent.parent
MIB = 1 << 20
# What version 0.1.0's packages and its own files took on Linux with Python 3.11; a new package must earn its place.
BOUND_MIB = 272.0


def size_of(name: str) -> int:
    """Bytes of one installed package's files; 0 where it is not for this platform."""
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        return 0
    places = {Path(os.fspath(file.locate())) for file in files if file.suffix != ".pyc"}
    return sum(place.stat().st_size for place in places if place.is_file())


def own_size() -> int:
    """Bytes of the files that the wheel holds."""
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    total = 0
    for package in setup["packages"]:
        folder = ROOT.joinpath(*package.split(".")[1:])
        patterns = ["*.py", *setup["package-data"].get(package, [])]
        total += sum(file.stat().st_size for pattern in patterns for file in folder.glob(pattern))
    return total


def main() -> int:
    names = re.findall(r"^([\w.-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    sizes = {name: size_of(name) for name in names} | {"millstream": own_size()}
    total = sum(sizes.values()) / MIB
    largest = sorted(sizes, key=lambda name: -sizes[name])[:6]
    named = ", ".join(f"{name} {sizes[name] / MIB:.1f}" for name in largest)
    print(f"install size: {total:.1f} MiB in {sum(map(bool, sizes.values()))} packages (bound {BOUND_MIB}): {named}")
    if total <= BOUND_MIB:
        return 0
    print(f"install size: {total:.1f} MiB is above {BOUND_MIB}: drop a package, or raise the bound and say why")
    return 1


if __name__ == "__main__":
    sys.exit(main())
