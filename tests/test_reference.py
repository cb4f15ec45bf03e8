"""The page of all public names says what the source says, and every name, field and method is documented."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from ci_programs import ci_program

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    return ci_program("reference")


def test_the_reference_is_what_the_source_says_of_every_public_name(reference: ModuleType) -> None:
    assert (ROOT / "docs/reference.md").read_text("utf-8") == reference.page(), "run: make reference"


def test_a_name_without_documentation_is_found(reference: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    class Bare:
        field: int

        def method(self) -> None: ...

    gaps: list[str] = []
    monkeypatch.setattr(reference, "class_node", lambda cls: reference.ast.parse("class B:\n    field: int").body[0])
    Bare.__module__ = "millstream.bare"
    list(reference.entry("Bare", Bare, gaps))
    assert gaps == ["Bare has no docstring", "Bare.field has no documentation", "Bare.method has no docstring"]
