"""Takes one benchmark away from a copy of the tree and checks what is left.

`python .ci/without.py NAME [PYTEST ARGUMENT ...]`. A benchmark is a room: its formulas, its tests, its line in the
registry and the lines of its packages go with it, and all the rest has to work and to pass its tests. Owns which files
belong to a benchmark; `tests/test_rooms_of_benchmarks.py` uses it too.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
REGISTRY = "bench/evaluation/door/declarations.py"
MARKER = "needs_benchmark"
SHARED = (".venv", ".mypy_cache", ".types", "tests/mock/node_modules", "tests/node/node_modules")
CHECKS = (
    ("-m", "ruff", "check", "--quiet", "."),
    ("-m", "mypy", "--strict", "-p", "millstream"),
    ("-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-logo"),
)


def listed(root: Path) -> list[str]:
    """Every file that git does not ignore, committed or not yet."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return sorted({path for path in found.split("\0") if path and (root / path).is_file()})


def in_room(path: str, name: str) -> bool:
    """Whether a file lies in one of the benchmark's rooms."""
    return path.startswith(tuple(f"{above}{kind}/{name}/" for above in ("", "tests/") for kind in ("bench", "metrics")))


def names(text: str, name: str) -> bool:
    return re.search(rf"(?<![a-z]){name}(?![a-z])", text, re.IGNORECASE) is not None


def needs(text: str) -> set[str]:
    """The benchmarks that a test module, as a whole, says it needs."""
    marked = re.search(rf"^pytestmark = .*?\b{MARKER}\(([^)]*)\)", text, re.MULTILINE | re.DOTALL)
    return set(re.findall(r'"([\w-]+)"', marked[1])) if marked else set()


def code_names(text: str, name: str) -> bool:
    """Whether the code names the benchmark, in an import or a string. Docstrings and comments do not count."""
    if not names(text, name):
        return False
    nodes = list(ast.walk(ast.parse(text)))
    bodies = [node.body for node in nodes if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    documentation = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    words = [node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in documentation]
    words += [alias.name for node in nodes if isinstance(node, ast.ImportFrom | ast.Import) for alias in node.names]
    words += [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    return any(names(word, name) for word in words if isinstance(word, str))


def imports(text: str, name: str) -> bool:
    return re.search(rf"millstream\.(bench|metrics)\.{name}\b", text) is not None


def dependents(root: Path, tree: list[str], name: str) -> set[str]:
    """The test modules outside the rooms that go with the benchmark: those that are marked, and what they share where
    its code imports the benchmark."""
    tests = {
        path: (root / path).read_text("utf-8") for path in tree if path.startswith("tests/") and path[-3:] == ".py"
    }
    shared = {path: text for path, text in tests.items() if path.startswith("tests/support/")}
    gone = {path for path, text in shared.items() if imports(text, name)}
    while more := {path for path, text in shared.items() if path not in gone and imported(text) & stems(gone)}:
        gone |= more
    return gone | {path for path, text in tests.items() if name in needs(text)}


def imported(text: str) -> set[str]:
    """The modules that a module imports names from."""
    return set(re.findall(r"^\s*from ([\w.]+) import", text, re.MULTILINE))


def stems(paths: Iterable[str]) -> set[str]:
    return {Path(path).stem for path in paths}


def taken_away(root: Path, tree: list[str], name: str) -> set[str]:
    """What goes with the benchmark."""
    return {path for path in tree if in_room(path, name)} | dependents(root, tree, name)


def changed(root: Path, name: str) -> dict[str, str]:
    """The files that list benchmarks and packages, without the entries of this one."""
    registry, project = (root / REGISTRY).read_text("utf-8"), (root / "pyproject.toml").read_text("utf-8")
    found = {REGISTRY: re.sub(rf'(?ms)^(BUILT_IN = \([^)]*?)"{name}"(?:,\s*)?', r"\1", registry)}
    less = re.sub(rf'(?m)^ *"millstream\.(?:bench|metrics)\.{name}[."].*\n', "", project)
    found["pyproject.toml"] = re.sub(rf'\({name}\) \| | \| \({name}\)|, "data/{name}/[^"]*"', "", less)
    if registry in found.values() or less == project:
        raise SystemExit(f"without: {REGISTRY} or pyproject.toml has no line of {name}")
    return found


def copy_without(name: str, root: Path, copy: Path, tree: list[str]) -> list[str]:
    """Copy the files of `tree` that stay, and give their paths."""
    gone = taken_away(root, tree, name)
    stay = [path for path in tree if path not in gone]
    for path in stay:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / path, copy / path)
    for path, text in changed(root, name).items():
        (copy / path).write_text(text, "utf-8")
    (copy / ".types").mkdir()
    (copy / ".types/millstream").symlink_to("..")
    return stay


def failed_checks(copy: Path, arguments: list[str]) -> Iterator[str]:
    """Run every check in the copy, and give the names of those that fail."""
    python = [str(copy / ".venv/bin/python"), "-P"]
    pytest = ("-m", "pytest", "-c", "tests/pytest.ini", "--rootdir=.", *arguments)
    for check in (*CHECKS, pytest):
        print("without:", *check[1:3], flush=True)
        if subprocess.run([*python, *check], cwd=copy, check=False).returncode:
            yield " ".join(check[1:3])


def main() -> int:
    if len(sys.argv) < 2 or not (ROOT / "bench" / sys.argv[1] / "benchmark.py").is_file():
        print("without: expected the name of a benchmark, as in `make without BENCHMARK=chameleon`")
        return 2
    name, *arguments = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix=f"without-{name}-") as folder:
        copy, tree = Path(folder), listed(ROOT)
        stay = copy_without(name, ROOT, copy, tree)
        print(f"without: {len(tree) - len(stay)} of {len(tree)} files taken away with {name}", flush=True)
        for path in SHARED:
            if path == ".types":
                for offered in (ROOT / path).glob("*.dist-info"):
                    shutil.copytree(offered, copy / path / offered.name)
            elif path == ".mypy_cache" and (ROOT / path).is_dir():
                shutil.copytree(ROOT / path, copy / path)
            elif (ROOT / path).exists():
                (copy / path).symlink_to(ROOT / path)
        # Tests ask git for the tree.
        for command in (("init", "--quiet"), ("add", "--all")):
            subprocess.run(["git", *command], cwd=copy, check=True)
        failed = list(failed_checks(copy, arguments))
    print(f"without {name}: " + (f"FAILED: {', '.join(failed)}" if failed else "everything else works"))
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
