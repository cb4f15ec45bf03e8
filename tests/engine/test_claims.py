"""Claims on keys: one engine holds a key, a dead holder holds none, and a folder without locks stops nobody."""

from __future__ import annotations

import hashlib
import logging
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from open_files import open_files

from millstream.engine.claims import Claims


def key(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


def is_free(claims: Claims, number: int) -> bool:
    """Takes a key and gives it back."""
    lease = claims.take(key(number))
    if lease:
        claims.release(key(number), lease)
    return lease != 0


def is_alone(claims: Claims) -> bool:
    """Whether an engine takes keys without a look at what others may have stored."""
    before = claims.changes
    lease = claims.take(key(-1))
    is_same = claims.changes == before
    claims.release(key(-1), lease)
    return is_same


def test_an_engine_without_others_takes_no_lock_and_needs_no_second_look(tmp_path: Path) -> None:
    claims = Claims(tmp_path)
    # The first time it may have been preceded by another that has ended.
    assert not is_alone(claims)
    before = claims.changes, sorted(tmp_path.iterdir())
    leases = [claims.take(key(number)) for number in range(1000)]
    assert all(leases) and len(set(leases)) == 1000
    assert (claims.changes, sorted(tmp_path.iterdir())) == before
    # Each call that ends may have stored an answer.
    claims.release(key(0), leases[0])
    assert claims.changes == before[0] + 1
    claims.close()


def test_an_engine_is_alone_again_when_the_other_has_gone(tmp_path: Path) -> None:
    first, second = Claims(tmp_path, look_round_s=0.02), Claims(tmp_path)
    is_free(first, 0)
    assert is_alone(first)
    is_free(second, 0)
    for _ in range(3):
        time.sleep(0.03)
        assert not is_alone(first)
    second.close()
    time.sleep(0.03)
    assert not is_alone(first)  # it looks round, and what it looked up before may have been stored
    assert is_alone(first)
    first.close()


def test_an_engine_that_came_later_takes_over_when_the_first_has_gone(tmp_path: Path) -> None:
    first, second, third = Claims(tmp_path), Claims(tmp_path, look_round_s=0.02), Claims(tmp_path)
    is_free(first, 0)
    held = second.take(key(1)), second.take(key(2))
    assert all(held) and "guest" in repr(second)
    first.close()
    time.sleep(0.03)
    is_free(second, 0)
    assert "owner" in repr(second) and is_alone(second)
    # What it took beside the first is still its own, and so is what it takes now.
    assert second.take(key(3))
    assert not any(third.take(key(number)) for number in (1, 2, 3))
    second.release(key(1), held[0])
    assert is_free(third, 1)
    second.close()
    third.close()


def test_a_thousand_calls_more_than_the_table_has_slots_are_held_too(tmp_path: Path) -> None:
    first, second = Claims(tmp_path), Claims(tmp_path)
    leases = {number: first.take(key(number)) for number in range(3100)}
    assert all(leases.values())
    assert not any(second.take(key(number)) for number in leases)
    for number, lease in leases.items():
        first.release(key(number), lease)
    assert all(second.take(key(number)) for number in leases)
    first.close()
    second.close()


def test_an_engine_that_shares_no_answers_takes_no_file(tmp_path: Path) -> None:
    claims = Claims(tmp_path, is_shared=False)
    assert is_free(claims, 1) and is_alone(claims)
    claims.close()
    assert not list(tmp_path.iterdir())


HOLDER = """
import sys
from pathlib import Path
from millstream.engine.claims import Claims
claims = Claims(Path(sys.argv[1]))
print([claims.take(bytes.fromhex(key)) != 0 for key in sys.argv[2:]], flush=True)
sys.stdin.read()
"""


@pytest.mark.process
def test_a_killed_holder_frees_its_leases_at_once(tmp_path: Path) -> None:
    # The first is taken by a lock, the others alone.
    command = [sys.executable, "-c", HOLDER, str(tmp_path), *(key(number).hex() for number in (1, 2, 3))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "[True, True, True]\n"
        claims, third = Claims(tmp_path), Claims(tmp_path)
        assert not any(engine.take(key(number)) for number in (1, 2, 3) for engine in (claims, third))
        holder.kill()
        holder.wait()
        assert claims.take(key(2)) and claims.take(key(1))
        assert not third.take(key(1)) and not third.take(key(2)) and is_free(third, 3)
        claims.close()
        third.close()


def test_a_hundred_thousand_keys_need_ten_descriptors(tmp_path: Path) -> None:
    claims, other = Claims(tmp_path), Claims(tmp_path)
    is_free(other, 0)
    before = open_files()
    assert all(is_free(claims, number) for number in range(100_000))
    assert open_files() == before + 10
    claims.close()
    assert open_files() == before
    other.close()


def test_where_nothing_can_be_locked_every_call_goes_out_and_it_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "leases").mkdir()  # no file can be opened there
    claims = Claims(tmp_path)
    with caplog.at_level(logging.WARNING, "millstream"):
        leases = [claims.take(key(number)) for number in (1, 1, 2)]
        assert all(leases) and not is_alone(claims)
        claims.release(key(1), leases[0])
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path / 'leases'} can't be locked (Is a directory): programs that use this cache at the same time may "
        f"send the same call twice"
    ]
    claims.close()


@contextmanager
def no_file_can_be_opened() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_lack_of_file_descriptors_makes_keys_wait_until_it_has_passed(tmp_path: Path) -> None:
    first, second = Claims(tmp_path), Claims(tmp_path)
    with no_file_can_be_opened():
        assert not second.take(key(1))
    assert first.take(key(1)) and not second.take(key(1))
    with no_file_can_be_opened():
        assert not second.take(key(2))
    assert second.take(key(2)) and not first.take(key(2)) and not second.take(key(1))
    first.close()
    second.close()


def test_a_table_that_was_copied_with_holes_is_filled_and_what_is_in_it_is_nobodys(tmp_path: Path) -> None:
    table = tmp_path / "leases"
    with table.open("wb") as file:
        file.truncate(4096)
        file.seek(8)
        file.write(key(1)[:8])
        file.truncate(1 << 16)
    claims = Claims(tmp_path)
    assert is_free(claims, 1) and is_free(claims, 1) and is_alone(claims)
    assert 512 * table.stat().st_blocks >= 8 * 2048
    claims.close()


FULL = """
import sys
from pathlib import Path
from millstream.engine.claims import Claims
claims = Claims(Path(sys.argv[1]))
print([claims.take(bytes([number]) * 32) != 0 for number in range(1, 4)], flush=True)
"""


@pytest.mark.process
def test_a_full_disk_lets_every_call_go_out(tmp_path: Path) -> None:
    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    program = [sys.executable, "-c", FULL, str(tmp_path)]
    ended = subprocess.run(program, capture_output=True, text=True, preexec_fn=no_room, check=False)
    assert (ended.returncode, ended.stdout) == (0, "[True, True, True]\n"), ended.stderr
    assert ended.stderr.count("can't be locked") == 1


FORKED = """
import os, sys
from pathlib import Path
from millstream.engine.claims import Claims
claims = Claims(Path(sys.argv[1]))
for number in (1, 2):
    assert claims.take(bytes([number]) * 32)
if (child := os.fork()) == 0:
    sys.stdin.read()
    os._exit(0)
claims.close()
print("closed", flush=True)
os.waitpid(child, 0)
"""


@pytest.mark.process
def test_a_fork_keeps_no_lease_of_an_engine_that_is_closed(tmp_path: Path) -> None:
    program = [sys.executable, "-c", FORKED, str(tmp_path)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == "closed\n"
        claims = Claims(tmp_path)
        assert all(claims.take(bytes([number]) * 32) for number in (1, 2)) and is_alone(claims)
        claims.close()
