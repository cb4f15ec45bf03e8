"""The script of live figures, kept for other processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.report.page import kept_script

SCRIPT = "window.figures = 'é';\nwindow.more = 1;\n"


def never() -> str:
    raise AssertionError("it was made anew")


def test_a_script_is_made_once(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "script.js"
    assert kept_script(file, lambda: SCRIPT) == SCRIPT
    assert kept_script(file, never) == SCRIPT


@pytest.mark.parametrize("change", ["cut", "other", "link"])
def test_a_damaged_script_is_made_anew(tmp_path: Path, change: str) -> None:
    file = tmp_path / "script.js"
    kept_script(file, lambda: SCRIPT)
    data = file.read_bytes()
    if change == "link":
        file.rename(tmp_path / "elsewhere")
        file.symlink_to(tmp_path / "elsewhere")
    else:
        file.write_bytes(data[:-1] if change == "cut" else data.replace(b"more", b"less"))
    assert kept_script(file, lambda: "anew") == "anew"
    assert kept_script(file, never) == "anew"


def test_a_folder_that_takes_nothing_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert kept_script(tmp_path / "file" / "script.js", lambda: SCRIPT) == SCRIPT
