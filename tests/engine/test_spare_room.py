"""Disk space that is held until it is needed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from millstream.engine.fault import LocalFault
from millstream.engine.spare_room import SpareRoom


@pytest.mark.parametrize("can_reserve", [True, False])
def test_the_space_is_held_without_a_name_until_it_is_given_back(
    can_reserve: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not can_reserve:
        monkeypatch.delattr(os, "posix_fallocate")
    spare = SpareRoom(tmp_path, 1 << 20)
    [descriptor] = [
        int(each.name)
        for each in Path("/proc/self/fd").iterdir()
        if str(tmp_path) in str(os.readlink(each) if each.is_symlink() else "")
    ]
    assert os.fstat(descriptor).st_size == 1 << 20 and not list(tmp_path.iterdir())
    assert spare.give_back() and not spare.give_back()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_without_room_it_says_how_much_is_wanted_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(LocalFault, match=r"no room to set 8 MiB aside .*: free disk space first"):
        SpareRoom(tmp_path / "none")
