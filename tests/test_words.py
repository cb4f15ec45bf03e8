"""Names in the code: a local says what a value is, not where it came from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import millstream

HOME = Path(millstream.__file__).parent
ROOMS = ("bench", "configuration", "engine", "fixtures", "interfaces", "metrics", "providers", "report", "wiring")
# These say only where a value came from, so that a reader has to look for what it is.
ORIGINS = frozenset(("asked", "found", "given", "known", "own", "said", "shown", "told"))
LONG = 10


def functions_of(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def origins_in(text: str) -> list[str]:
    """The lines of locals and parameters with such names, in functions of more than ten lines."""
    places = set()
    for function in functions_of(ast.parse(text)):
        if (function.end_lineno or 0) - function.lineno + 1 <= LONG:
            continue
        within = {id(node) for other in functions_of(function) if other is not function for node in ast.walk(other)}
        for node in ast.walk(function):
            is_stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            name = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""
            if id(node) not in within and name in ORIGINS and (is_stored or isinstance(node, ast.arg)):
                places.add(f"{name} in {function.name}")
    return sorted(places)


def test_a_local_of_a_long_function_says_what_it_is() -> None:
    modules = (path for room in ROOMS for path in sorted((HOME / room).rglob("*.py")))
    assert {
        str(path.relative_to(HOME)): places for path in modules if (places := origins_in(path.read_text("utf-8")))
    } == {}


def test_such_a_name_is_seen_as_a_local_and_as_a_parameter_of_a_long_function_alone() -> None:
    lines = "".join(f"    b = {n}\n" for n in range(LONG))
    assert origins_in(f"def f(told):\n    found = 1\n{lines}") == ["found in f", "told in f"]
    assert origins_in("def f(told):\n    found = 1\n") == []
    assert origins_in(f"def f():\n    price = 1\n{lines}") == []
