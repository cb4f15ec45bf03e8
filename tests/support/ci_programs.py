"""The programs of .ci/ as modules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

HOME = Path(__file__).parent.parent.parent / ".ci"


def ci_program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, HOME / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
