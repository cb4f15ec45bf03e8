"""A journal cut, flipped and starved of space: whole lines survive, and damage never passes for an answer."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from places import small_disk
from torture import SEED, record, times

from millstream.engine.fault import DamagedJournal, LocalFault
from millstream.engine.runs.journal import Journal, is_intact, read_lines, sealed, torn_tail
from millstream.engine.spare_room import SpareRoom

# Bytes that a flip can turn into a newline, and text that looks like our own seal, stand in the rows on purpose.
ROWS = [
    json.dumps(
        {"id": f"issue/{number}", "text": f'J* "crc":{number}}} é\\n' * (number % 4), "letter": "AB"[number % 2]}
    )
    for number in range(40)
]


def crc32(data: bytes) -> int:
    """CRC-32 bit by bit, as the standard defines it: an implementation that shares nothing with zlib's."""
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0xEDB88320 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def write(path: Path, rows: list[str]) -> bytes:
    journal = Journal(path, SpareRoom(path.parent, 4096))
    for row in rows:
        journal.append(row.encode())
    journal.flush()
    journal.close()
    return path.read_bytes()


def reopened(path: Path, *, set_aside: bool = False) -> list[bytes]:
    spare = SpareRoom(path.parent, 4096)
    journal = Journal(path, spare, set_aside=set_aside)
    try:
        return list(journal.read())
    finally:
        journal.close()


def without_crc(line: bytes) -> object:
    row = json.loads(line)
    del row["crc"]
    return row


def test_every_line_is_json_and_carries_the_crc_of_the_bytes_before_it(tmp_path: Path) -> None:
    lines = write(tmp_path / "j.jsonl", ROWS).splitlines()
    assert [without_crc(line) for line in lines] == [json.loads(row) for row in ROWS]
    for line in lines:
        body, _, seal = line.rpartition(b',"crc":')
        assert seal == b"%d}" % crc32(body)


def test_a_file_cut_at_any_byte_of_its_last_three_lines_keeps_its_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    whole = write(path, ROWS)
    lines = whole.splitlines(keepends=True)
    for cut in range(len(whole) - len(b"".join(lines[-3:])), len(whole) + 1):
        path.write_bytes(whole[:cut])
        path.with_suffix(".torn").unlink(missing_ok=True)
        kept = reopened(path)
        assert kept == [line.rstrip(b"\n") for line in lines if whole.index(line) + len(line) <= cut]
        # Nothing is thrown away: the half line stands beside the journal.
        torn = whole[len(b"".join(lines[: len(kept)])) : cut]
        assert path.with_suffix(".torn").exists() == bool(torn)
        if torn:
            assert path.with_suffix(".torn").read_bytes() == torn + b"\n"
        assert path.read_bytes() == b"".join(lines[: len(kept)])


def test_one_torn_line_longer_than_any_buffer_is_set_aside_whole(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(b'{"text":"' + b"x" * 300_000)
    assert reopened(path) == []
    assert path.with_suffix(".torn").stat().st_size == 300_010


def test_a_torn_line_of_a_whole_buffer_leaves_the_line_before_it(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    whole = write(path, ROWS[:1])
    # Read backwards in parts of 64 KiB, the last newline is the first byte of the last part.
    path.write_bytes(whole + b"x" * ((1 << 16) - 1))
    assert reopened(path) == [whole[:-1]]


@pytest.mark.parametrize(
    ("data", "is_torn"), [(b"", False), (b"\n", False), (b"{}\n", False), (b"{", True), (b"{}\n{", True)]
)
def test_a_file_that_ends_within_a_line_has_a_torn_tail(tmp_path: Path, data: bytes, is_torn: bool) -> None:
    path = tmp_path / "j.jsonl"
    assert not torn_tail(path), "a missing file has none"
    path.write_bytes(data)
    assert bool(torn_tail(path)) is is_torn


def test_lines_with_a_block_that_a_power_cut_kept_from_the_disk_are_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    whole = write(path, ROWS)
    # The third block was never written; the lines that reach into it are lost, all others stand.
    path.write_bytes(whole[:1024] + bytes(512) + whole[1536:])
    first, last = whole[:1024].count(b"\n"), whole[:1536].count(b"\n")
    lines = whole.splitlines()
    assert reopened(path) == lines[:first] + lines[last + 1 :]
    assert bytes(512) in path.with_suffix(".torn").read_bytes()


def test_zeros_that_end_within_a_block_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    whole = write(path, ROWS)
    path.write_bytes(whole[:1024] + bytes(511) + whole[1535:])
    with pytest.raises(DamagedJournal, match="is damaged"):
        reopened(path)


def test_bit_flips_are_noticed_wherever_they_fall(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    whole = write(path, ROWS)
    lines = whole.splitlines(keepends=True)
    chance, flips = random.Random(SEED), times(1000, 10_000)
    for _ in range(flips):
        place, bit = chance.randrange(len(whole)), chance.randrange(8)
        flipped = bytearray(whole)
        flipped[place] ^= 1 << bit
        path.write_bytes(flipped)
        path.with_suffix(".torn").unlink(missing_ok=True)
        number = whole[:place].count(b"\n") + 1
        if place == len(whole) - 1:
            # The last newline: that line can't be told from a torn one, and is set aside like one.
            assert reopened(path) == [line[:-1] for line in lines[:-1]]
            continue
        with pytest.raises(DamagedJournal, match=rf"j\.jsonl line {number} is damaged: .*--set-aside-damaged"):
            reopened(path)
        assert path.read_bytes() == flipped
    record("2", flips, flips, "each flipped bit of a journal was refused with the number of its line", f"{SEED}")


def test_a_damaged_line_far_behind_is_named_by_its_number_after_all_before_it(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    lines = write(path, ROWS * 100).splitlines(keepends=True)
    for number in (3_210, 3_211, 3_999):
        lines[number - 1] = lines[number - 1].replace(b"issue", b"isuse")
    path.write_bytes(b"".join(lines))
    journal = Journal(path, SpareRoom(tmp_path, 4096))
    for reading in (journal.read(), journal.read_on()):
        read: list[bytes] = []
        with pytest.raises(DamagedJournal, match=r"j\.jsonl line 3210 is damaged"):
            read.extend(line for line in reading)
        assert read == [line[:-1] for line in lines[:3_209]]
    journal.close()


def test_every_flip_of_a_crc_its_key_or_a_newline_is_noticed() -> None:
    line = sealed(ROWS[1].encode())
    following = sealed(ROWS[2].encode())
    seal = line.rindex(b',"crc":')
    for place in range(seal, len(line)):
        for bit in range(8):
            flipped = bytearray(line + following)
            flipped[place] ^= 1 << bit
            # splitlines would end a line at \r and \v too; a journal ends it at \n alone.
            first = bytes(flipped).split(b"\n")[0]
            assert not is_intact(first, must_be_sealed=True), (place, bit)


def test_damaged_lines_are_moved_away_on_request_and_the_rest_stays_in_order(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    lines = write(path, ROWS).splitlines(keepends=True)
    for number in (4, 17, 39):
        lines[number] = lines[number].replace(b"issue", b"isuse")
    path.write_bytes(b"".join(lines))
    kept = reopened(path, set_aside=True)
    assert kept == [line[:-1] for number, line in enumerate(lines) if number not in (4, 17, 39)]
    assert path.with_suffix(".damaged").read_bytes() == lines[4] + lines[17] + lines[39]
    assert reopened(path) == kept


def test_a_line_without_a_crc_is_unchecked_where_that_is_allowed_and_damage_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    line = b'{"id":"written by another program"}'
    path.write_bytes(line + b"\n")
    assert is_intact(line, must_be_sealed=False)
    with pytest.raises(DamagedJournal, match="line 1"):
        reopened(path)
    # A crc that is there must be right even so.
    assert not is_intact(sealed(line).replace(b"another", b"an other")[:-1], must_be_sealed=False)


def test_a_line_is_seen_by_another_reader_as_soon_as_it_is_flushed(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    journal = Journal(path, SpareRoom(tmp_path, 4096))
    journal.append(b'{"n":1}')
    assert list(read_lines(path)) == []
    journal.flush()
    assert [without_crc(line) for line in read_lines(path)] == [{"n": 1}]
    assert journal.lines == 1
    journal.close()


def test_reading_on_yields_each_line_once_and_names_a_damaged_one_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    write(path, ROWS[:3])
    journal = Journal(path, SpareRoom(tmp_path, 4096))
    before = list(journal.read_on())
    assert before == list(journal.read())
    assert list(journal.read_on()) == []
    for row in ROWS[3:6]:
        journal.append(row.encode())
    journal.flush()
    assert before + list(journal.read_on()) == list(journal.read())
    assert journal.lines_read == 6
    path.write_bytes(path.read_bytes() + b'{"id":"x","crc":1}\n')
    with pytest.raises(DamagedJournal, match="line 7 is damaged"):
        list(journal.read_on())
    journal.close()


def test_a_file_that_was_cut_is_read_from_its_beginning_again(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    write(path, ROWS[:3])
    journal = Journal(path, SpareRoom(tmp_path, 4096))
    lines = list(journal.read_on())
    was_cut = journal.is_cut
    path.write_bytes(lines[0] + b"\n")
    assert (was_cut, journal.is_cut) == (False, True)
    journal.rewind()
    assert list(journal.read_on()) == lines[:1]
    journal.close()


def test_a_full_disk_is_told_and_what_was_received_is_saved_from_the_spare_room(tmp_path: Path) -> None:
    row = json.dumps({"text": "x" * 1000}).encode()
    with small_disk(tmp_path / "disk", 256 << 10) as disk:
        journal = Journal(disk / "j.jsonl", SpareRoom(disk, 64 << 10))
        taken = 0
        while journal.fault is None:
            journal.append(row)
            journal.flush()
            taken += 1
            assert taken < 1000
        assert "disk full while writing" in str(journal.fault) and "then resume" in str(journal.fault)
        # What was in flight when the disk filled up still comes in.
        for _ in range(40):
            journal.append(row)
            journal.flush()
        journal.close()
        assert len(list(read_lines(disk / "j.jsonl"))) == taken + 40 == journal.lines
        assert all(is_intact(line, must_be_sealed=True) for line in read_lines(disk / "j.jsonl"))


def test_a_disk_that_stays_full_ends_the_writing_with_one_line_and_no_half_row_is_read(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 128 << 10) as disk:
        journal = Journal(disk / "j.jsonl", SpareRoom(disk, 16 << 10))
        row = json.dumps({"text": "x" * 1000}).encode()
        with pytest.raises(LocalFault, match=r"can't be written \(No space left on device\)"):
            for _ in range(1000):
                journal.append(row)
                journal.flush()
        journal.close()
        saved = list(read_lines(disk / "j.jsonl"))
        assert len(saved) == journal.lines
        assert {bytes(line) for line in saved} == {sealed(row)[:-1]}


SHORT_WRITES = """
import resource, signal, sys
from pathlib import Path
from millstream.engine.fault import LocalFault
from millstream.engine.runs.journal import Journal
from millstream.engine.spare_room import SpareRoom
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])
journal = Journal(path, SpareRoom(path.parent, 4096))
# The kernel cuts the write that reaches the limit short, and refuses the one after it.
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
for number in range(100):
    journal.append(b'{"text":"' + b"y" * 200 + b'"}')
try:
    journal.flush()
except LocalFault as fault:
    print(fault)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.close()
"""


def test_a_write_cut_short_by_a_limit_is_told_and_leaves_whole_lines_and_one_torn_tail(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", SHORT_WRITES, str(path)], capture_output=True, text=True, check=True, timeout=30
    )
    assert "can't be written (File too large)" in done.stdout
    assert path.stat().st_size == 10_000
    assert len(reopened(path)) == 10_000 // len(sealed(b'{"text":"' + b"y" * 200 + b'"}'))
