"""The changes that are made to try the tests are small, different from the source, and each whole Python."""

from __future__ import annotations

import ast

from ci_programs import ci_program

SOURCE = "def f(a, b):\n    if a < b and not a:\n        return a + 1\n    return True\n"


def test_each_place_is_changed_by_itself() -> None:
    made = list(ci_program("mutation").changes(SOURCE))
    assert sorted(change for _, change, _ in made) == [
        "1  ->  2",
        "True  ->  False",
        "a + 1  ->  a - 1",
        "a < b  ->  a <= b",
        "a < b and (not a)  ->  a < b or not a",
        "not a  ->  not not a",
    ]
    whole = ast.unparse(ast.parse(SOURCE))
    assert all(source != whole and ast.parse(source) for _, _, source in made)
    assert len({source for _, _, source in made}) == len(made)
    assert {function for function, _, _ in made} == {"f"}
