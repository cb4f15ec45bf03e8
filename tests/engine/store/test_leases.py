"""Leases on keys: one engine holds a key, a dead holder holds none, and a folder without locks stops nobody."""

from __future__ import annotations

import hashlib
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from open_files import open_files

from millstream.engine.store.leases import FolderLeases


def key(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


def test_of_two_engines_one_takes_a_key_and_the_other_when_it_is_given_back(tmp_path: Path) -> None:
    first, second = FolderLeases(tmp_path), FolderLeases(tmp_path)
    assert first.try_take(key(1))
    assert not second.try_take(key(1)) and second.try_take(key(2))
    second.release(key(1))  # it does not hold this one
    assert not second.try_take(key(1))
    first.release(key(1))
    assert second.try_take(key(1)) and not first.try_take(key(1))
    second.close()
    assert first.try_take(key(1)) and first.try_take(key(2))
    first.close()
    assert sum(path.stat().st_size for path in tmp_path.glob("leases.*")) == 0


HOLDER = """
import sys
from pathlib import Path
from millstream.engine.store.leases import FolderLeases
leases = FolderLeases(Path(sys.argv[1]))
print(leases.try_take(bytes.fromhex(sys.argv[2])), flush=True)
sys.stdin.read()
"""


@pytest.mark.process
def test_a_killed_holder_frees_its_leases_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path), key(1).hex()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "True\n"
        leases = FolderLeases(tmp_path)
        assert not leases.try_take(key(1))
        holder.kill()
        holder.wait()
        assert leases.try_take(key(1))
        leases.close()


def test_a_hundred_thousand_keys_need_eight_descriptors(tmp_path: Path) -> None:
    leases = FolderLeases(tmp_path)
    before = open_files()
    for number in range(100_000):
        assert leases.try_take(key(number))
        leases.release(key(number))
    assert open_files() == before + 8
    leases.close()
    assert open_files() == before


def test_where_nothing_can_be_locked_every_call_goes_out_and_it_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(8):
        (tmp_path / f"leases.{number}").mkdir()  # no file can be opened there
    leases = FolderLeases(tmp_path)
    with caplog.at_level(logging.WARNING, "millstream"):
        assert [leases.try_take(key(number)) for number in (1, 1, 2)] == [True, True, True]
        leases.release(key(1))
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path / 'leases'} can't be locked (Is a directory): programs that use this cache at the same time may "
        f"send the same call twice"
    ]
    leases.close()
