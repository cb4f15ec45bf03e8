"""Which files of tests a run need not import: those of which `-m` leaves out every test, as their text shows.

Owns the reading of `pytestmark` and of what a module imports at its top. Imports of official clients take a fifth of
the time in which all tests are collected.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

SUPPORT = Path(__file__).parent
# Official clients and what embeds them: one import takes up to seconds of a core.
SDKS = ("anthropic", "botocore", "google.genai", "inspect_ai", "lm_eval", "openai", "ray")
MODULE_MARKS = re.compile(r"^pytestmark = (\[\n.*?^\]|.*?$)", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"\bmark\.(\w+)")
# Of a module's top alone: what a test imports in its own body costs a collection nothing.
IMPORTED = re.compile(
    r"^(?:from ([\w.]+) import (\w+)|import ([\w.]+)|(?:\S.*)?\bimportorskip\(\"([\w.]+)\")", re.MULTILINE
)
LEFT_OUT = re.compile(r"not \w+( and not \w+)*")


def is_left_out(path: Path, expression: str) -> bool:
    """Whether no test of this file can be chosen by the expression of `-m`; false where its text does not show it."""
    if not LEFT_OUT.fullmatch(expression):
        return False
    names = set(re.findall(r"not (\w+)", expression))
    marks = MODULE_MARKS.search(path.read_text("utf-8"))
    return bool(marks and names.intersection(MARK.findall(marks[1]))) or ("sdk" in names and imports_an_sdk(path))


@cache
def imports_an_sdk(path: Path) -> bool:
    """Whether a module imports an official client at its top, itself or by a module of tests/support."""
    for package, name, module, optional in IMPORTED.findall(path.read_text("utf-8")):
        imported = f"{package}.{name}." if package else f"{module or optional}."
        if imported.startswith(tuple(f"{sdk}." for sdk in SDKS)):
            return True
        helper = SUPPORT / f"{imported.partition('.')[0]}.py"
        if helper.is_file() and imports_an_sdk(helper):
            return True
    return False
