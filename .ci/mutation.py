"""Whether tests notice a changed line: small changes to the heart of the program, one at a time, each against the tests
of its room. A change that no test notices survived; tests/survivors.toml says why some may.

Works in a copy of the repository. Words: `--each N` changes a module (default 12), `--seed S`, and names of modules.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
# Its name is no package, or checks of this one would find it.
COPY = ROOT / ".mutation"
# Each module of the heart, and the tests that are to notice.
HEART = {
    "engine/key.py": [
        "tests/engine/test_key.py",
        "tests/engine/test_scheduler.py",
        "tests/engine_front/test_unsent_calls.py",
    ],
    "engine/lanes/ledger.py": [
        "tests/engine/lanes/test_ledger.py",
        "tests/engine/lanes/test_ledger_blocks.py",
        "tests/engine/lanes/test_ledger_waits.py",
        "tests/engine/lanes/test_admission.py",
    ],
    "engine/lanes/key_gate.py": ["tests/engine/lanes", "tests/engine/attempts/test_long_waits.py"],
    "engine/verdict.py": ["tests/engine/test_verdict.py"],
    "engine/attempts/retry.py": ["tests/engine/attempts", "tests/engine/lanes/test_admission.py"],
    "engine/attempts/money.py": [
        "tests/engine/attempts",
        "tests/engine/lanes/test_admission.py",
        "tests/interfaces/test_folder_budget.py",
        "tests/interfaces/gateway/test_spending.py",
        "tests/engine/test_lease_wait.py",
    ],
    "engine/runs/journal.py": ["tests/engine/runs", "tests/interfaces/test_score_and_verify.py"],
    "metrics/millstone/stance.py": ["tests/metrics/millstone"],
    "metrics/millstone/scores.py": ["tests/metrics/millstone"],
    "metrics/statistics/intervals.py": ["tests/metrics/statistics", "tests/metrics/millstone"],
}
_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def changes(source: str) -> Iterator[tuple[str, str, str]]:
    """Yields every change of a module: the function around it, what it was and became, and the module's whole changed
    source."""
    count = sum(1 for _ in _places(ast.parse(source)))
    for number in range(count):
        tree = ast.parse(source)
        node, change = next(place for at, place in enumerate(_places(tree)) if at == number)
        before = ast.unparse(node)
        change()
        function = _around(tree, getattr(node, "lineno", 0))
        yield function, f"{before}  ->  {ast.unparse(node)}", ast.unparse(ast.fix_missing_locations(tree))


def _around(tree: ast.Module, line: int) -> str:
    """Returns the name of the innermost function or class that a line is in; empty: none."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    named = [each for each in ast.walk(tree) if isinstance(each, kinds)]
    around = [each for each in named if each.lineno <= line <= (each.end_lineno or 0)]
    return max(around, key=lambda each: each.lineno).name if around else ""


def _places(tree: ast.AST) -> Iterator[tuple[ast.AST, Any]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
            yield node, lambda node=node: node.ops.__setitem__(0, _SWAPS[type(node.ops[0])]())
        elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in _SWAPS:
            yield node, lambda node=node: setattr(node, "op", _SWAPS[type(node.op)]())
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield node, lambda node=node: setattr(node, "value", not node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield node, lambda node=node: setattr(node, "value", node.value + 1)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, lambda node=node: setattr(node, "operand", ast.UnaryOp(ast.Not(), node.operand))


def is_noticed(module: str, changed: str, tests: list[str], within_s: float) -> bool:
    """Whether the tests fail with a changed module, or take far longer than without the change."""
    path = COPY / module
    whole = path.read_bytes()
    path.write_text(changed, "utf-8")
    python = [COPY / ".venv/bin/python", "-P", "-m", "pytest", "-c", "tests/pytest.ini", "--rootdir=.", "-q", "-x"]
    command = [*python, "-m", "not process and not alone", *tests]
    try:
        return subprocess.run(command, cwd=COPY, capture_output=True, timeout=within_s).returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_bytes(whole)


def prepare_copy() -> None:
    """Makes the copy at this commit, with an environment of its own; the next time only what changed."""
    if (COPY / ".git").exists():
        subprocess.run(["git", "fetch", "-q"], cwd=COPY, check=True)
        subprocess.run(["git", "reset", "-q", "--hard", "@{upstream}"], cwd=COPY, check=True)
    else:
        subprocess.run(["git", "clone", "-q", ROOT, COPY], check=True)
    subprocess.run(["make", "-s", "tools"], cwd=COPY, check=True)


def main() -> int:
    """Prints what became of each change. Returns 1 if a tenth or more survived that nobody has explained."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", default=list(HEART))
    parser.add_argument("--each", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    explained = tomllib.loads((ROOT / "tests" / "survivors.toml").read_text("utf-8")).get("survivor", [])
    reasons = {(each["module"], each["function"], each["change"]): each["why"] for each in explained}
    prepare_copy()
    tried = survived = unexplained = 0
    for module in options.modules:
        tests = HEART[module]
        begun = time.monotonic()
        if is_noticed(module, (COPY / module).read_text("utf-8"), tests, 900):
            sys.exit(f"mutation: the tests of {module} fail without any change")
        within_s = 3 * (time.monotonic() - begun) + 20
        every = list(changes((COPY / module).read_text("utf-8")))
        for function, change, source in random.Random(options.seed).sample(every, min(options.each, len(every))):
            tried += 1
            if is_noticed(module, source, tests, within_s):
                continue
            survived += 1
            why = reasons.get((module, function, change))
            unexplained += why is None
            print(json.dumps({"module": module, "function": function, "change": change, "why": why}), flush=True)
        print(f"{module}: {tried} tried so far, {survived} survived, {unexplained} of them unexplained", flush=True)
    return int(unexplained >= tried / 10)


if __name__ == "__main__":
    sys.exit(main())
