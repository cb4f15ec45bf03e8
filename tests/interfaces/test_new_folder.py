"""The folder of a run whose command names none."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.engine.fault import LocalFault
from millstream.interfaces.cli.new_folder import in_new_folder


def test_a_link_to_a_disk_that_is_not_there_is_a_fault_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").symlink_to(tmp_path / "away")
    with pytest.raises(LocalFault, match="name another folder by --out"):
        in_new_folder("first.py", lambda folder: None)


def test_each_run_of_a_day_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folders = [in_new_folder("first.py:capitals", lambda folder: None)[0] for _ in range(3)]
    assert len(set(folders)) == 3 and all(folder.is_dir() and "capitals" in folder.name for folder in folders)
