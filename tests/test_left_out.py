"""A file of tests is left out before it is imported only where -m would leave out all its tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from left_out import SDKS, imports_an_sdk, is_left_out

QUICK = "not process and not browser and not node and not sdk and not slow and not long"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pytestmark = pytest.mark.process\n", True),
        ("pytestmark = [pytest.mark.alone, pytest.mark.long]\n", True),
        ("pytestmark = [\n    pytest.mark.alone,\n    pytest.mark.long,\n]\n", True),
        ("import openai\n", True),
        ("from google.genai import types\n", True),
        ("from google import genai\n", True),
        ('session = pytest.importorskip("botocore.session")\n', True),
        ("from asked_by_clients import ASK\n", True),
        ("", False),
        ("pytestmark = pytest.mark.alone\n@pytest.mark.long\ndef test_it():\n    pass\n", False),
        ("def test_it():\n    import openai\n", False),
        ('def test_it():\n    pytest.importorskip("ray.data")\n', False),
        ("from google.protobuf import message\n", False),
        ("from rayleigh import law\n", False),
        ("from polls import Poll\n", False),
    ],
)
def test_a_file_is_left_out_where_its_text_shows_that_it_has_no_test_left(
    text: str, expected: bool, tmp_path: Path
) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(text)
    assert is_left_out(file, QUICK) == expected
    assert not is_left_out(file, "")
    assert not is_left_out(file, "long or process or sdk")


def test_every_test_of_a_file_that_is_left_out_has_a_marker_for_it(request: pytest.FixtureRequest) -> None:
    names = {name for name in QUICK.split() if name not in ("not", "and")}
    left_out = [item for item in request.session.items if is_left_out(item.path, QUICK)]
    assert [item.nodeid for item in left_out if names.isdisjoint(mark.name for mark in item.iter_markers())] == []


def test_a_run_without_sdks_has_imported_none(pytestconfig: pytest.Config) -> None:
    imported = [name for name in SDKS if name in sys.modules]
    assert not imported or "not sdk" not in pytestconfig.option.markexpr


def test_modules_that_the_tests_share_are_read_too() -> None:
    support = Path(__file__).parent / "support"
    assert imports_an_sdk(support / "inspect_runs.py")
    assert not imports_an_sdk(support / "worlds.py")
