"""The folder of a run: one writer, one specification, and what a start or a kill leaves there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec import structs
from places import make_read_only, small_disk
from run_sink import RunSink
from torture import record, times

from millstream.engine.call import Call, Failure, Outcome, Reply
from millstream.engine.fault import DamagedJournal, LocalFault, RunHeld
from millstream.engine.folder_file import write_whole
from millstream.engine.runs.journal import read_lines
from millstream.engine.runs.run_folder import (
    RunFolder,
    WrongSpecification,
    read_manifest,
    specification_hash,
    whole_lines,
)

STARTS = times(20, 50)
ISSUES = [f"issue-{number}" for number in range(107)]
SIX_OF_NINE = "; ".join([*(f"{name}: 1 in that run, none in this" for name in "abcdef"), "3 more values", "j differs"])
SPECIFICATION = {"models": ["script/m"], "trials": 15, "issues": ISSUES}
OK = Outcome(Call("script/m", "a", tag="1"), reply=Reply("A"))
FAILED = Outcome(Call("script/m", "b", tag="2"), failure=Failure("timeout", "no answer within 5 s"))


def row(outcome: Outcome) -> bytes:
    return orjson.dumps({"id": outcome.call.tag, "status": outcome.status})


def test_replies_and_failures_go_to_their_own_files(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run", SPECIFICATION) as run:
        sink = RunSink(run, row)
        sink.write(OK)
        sink.write(FAILED)
        sink.flush()
        assert sink.fault is None
    assert [json.loads(line)["id"] for line in read_lines(tmp_path / "run/records.jsonl")] == ["1"]
    assert [json.loads(line)["id"] for line in read_lines(tmp_path / "run/failures.jsonl")] == ["2"]
    # Lock and journals stay; the reserve does not.
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [".lock", "failures.jsonl", "records.jsonl"]


CONTENDER = """
import sys, time
from pathlib import Path
from millstream.engine.fault import RunHeld
from millstream.engine.runs.run_folder import RunFolder
folder, go = Path(sys.argv[1]), Path(sys.argv[2])
print("ready", flush=True)
while not go.exists():
    time.sleep(0.001)
try:
    run = RunFolder(folder, {"a": 1})
except RunHeld as held:
    print("held:", held, flush=True)
else:
    run.write_manifest(started=1)
    print("won", flush=True)
    sys.stdin.read()
    run.close()
"""


def contenders(count: int, folder: Path, go: Path) -> list[subprocess.Popen[str]]:
    command = [sys.executable, "-c", CONTENDER, str(folder), str(go)]
    pipe = subprocess.PIPE
    started = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(count)]
    for one in started:
        assert line_of(one) == "ready"
    return started


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def dismiss(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=30)
    return process.returncode


def test_of_many_processes_at_once_one_wins_and_the_others_say_who_holds_the_run(tmp_path: Path) -> None:
    # A crowd before left its mark: the name of a process that is long gone must not be told.
    (tmp_path / "run").mkdir()
    (tmp_path / "run/.lock").write_text("process 1 on a machine of the past\n")
    started = contenders(STARTS, tmp_path / "run", tmp_path / "go")
    (tmp_path / "go").touch()
    said = {one.pid: line_of(one) for one in started}
    winners = [pid for pid, line in said.items() if line == "won"]
    for one in started:
        assert dismiss(one) == 0
    assert len(winners) == 1
    losers = [line for line in said.values() if line != "won"]
    wanted = f"held: {tmp_path / 'run'} is being written by process {winners[0]} on "
    assert [line for line in losers if not line.startswith(wanted)] == []
    assert all(line.endswith(": wait until it has ended") for line in losers)
    record("4", STARTS, STARTS, f"one process wrote, {len(losers)} said which one")


def test_a_killed_holder_frees_the_run(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    [holder] = contenders(1, tmp_path / "run", tmp_path / "go")
    assert line_of(holder) == "won"
    with pytest.raises(RunHeld, match=f"process {holder.pid} "):
        RunFolder(tmp_path / "run", {"a": 1})
    holder.send_signal(signal.SIGKILL)
    assert dismiss(holder) == -signal.SIGKILL
    with RunFolder(tmp_path / "run", {"a": 1}) as run:
        assert run.manifest["started"] == 1


def test_one_process_can_not_open_a_run_twice(tmp_path: Path) -> None:
    with RunFolder(tmp_path, SPECIFICATION), pytest.raises(RunHeld, match=f"process {os.getpid()} "):
        RunFolder(tmp_path, SPECIFICATION)
    RunFolder(tmp_path, SPECIFICATION).close()


def test_another_specification_is_refused_with_what_differs_and_nothing_is_touched(tmp_path: Path) -> None:
    with RunFolder(tmp_path, SPECIFICATION) as run:
        run.write_manifest(started="then")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != ".lock"}
    other = {**SPECIFICATION, "trials": 3, "issues": ISSUES[:10], "stance": "careful"}
    with pytest.raises(WrongSpecification) as refused:
        RunFolder(tmp_path, other)
    told = str(refused.value)
    assert "trials: 15 in that run, 3 in this" in told
    assert "issues: 107 of them in that run" in told
    assert "stance: none in that run, careful in this" in told
    assert "models" not in told
    assert "choose another --out" in told
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != ".lock"} == before
    RunFolder(tmp_path, SPECIFICATION).close()  # the refused start has let go of the lock


@pytest.mark.parametrize(
    ("there", "asked", "told"),
    [
        (
            {"readings": {"by": "url", "unclear": "carry"}},
            {"readings": {"by": "url", "unclear": "drop"}},
            "readings.unclear: carry in that run, drop in this",
        ),
        (
            {"endpoints": {"a/b": "one", "c/d": "x"}},
            {"endpoints": {"a/b": "two"}},
            "endpoints.a/b: one in that run, two in this; endpoints.c/d: x in that run, none in this",
        ),
        ({"issues": ISSUES}, {"issues": [*ISSUES[:-1], "z"]}, f"issues[106]: {ISSUES[-1]} in that run, z in this"),
        ({"issues": ISSUES}, {"issues": [*ISSUES, "z"]}, "issues: 107 of them in that run, 108 of them in this"),
        ({"issues": {"a": 1}}, {"issues": None}, "issues: {'a': 1} in that run, none in this"),
        (
            {"pairs": [["a/model", 0.0]] * 9 + [["b/model", 0.0]]},
            {"pairs": [["a/model", 0.0]] * 9 + [["b/model", 0.5]]},
            "pairs[9]: b/model, 0.0 in that run, b/model, 0.5 in this",
        ),
        (
            {"data": "a" * 64, "of": {"n": 1, "sha256": None}, "trials": 3},
            {"data": "b" * 64, "of": {"n": 2, "sha256": "c" * 64}, "trials": 2},
            "trials: 3 in that run, 2 in this; of.n: 1 in that run, 2 in this; data, of.sha256 differ",
        ),
        ({**dict.fromkeys("abcdefghi", 1), "j": "0" * 64}, {}, SIX_OF_NINE),
        ({"n": [1]}, {"n": ["1"]}, "n[0]: 1 in that run, '1' in this"),
        (
            {"url": f"https://{'a' * 90}/one"},
            {"url": f"https://{'a' * 90}/two"},
            f"url: …{'a' * 29}/one' in that run, …{'a' * 29}/two' in this",
        ),
    ],
)
def test_what_differs_is_named_down_to_the_key_and_the_element(
    tmp_path: Path, there: dict[str, Any], asked: dict[str, Any], told: str
) -> None:
    with RunFolder(tmp_path, there) as run:
        run.write_manifest()
    with pytest.raises(WrongSpecification) as refused:
        RunFolder(tmp_path, asked)
    assert f"holds another run ({told}): choose another --out" in str(refused.value)


def test_the_order_of_keys_is_no_difference(tmp_path: Path) -> None:
    with RunFolder(tmp_path, SPECIFICATION) as run:
        run.write_manifest()
    turned = dict(reversed(SPECIFICATION.items()))
    assert specification_hash(turned) == specification_hash(SPECIFICATION)
    RunFolder(tmp_path, turned).close()


def test_records_without_a_manifest_are_nobodys_to_overwrite(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text('{"id":"another program\'s"}\n')
    with pytest.raises(WrongSpecification, match=r"holds records\.jsonl but no manifest\.json"):
        RunFolder(tmp_path, SPECIFICATION)
    assert (tmp_path / "records.jsonl").read_text() == '{"id":"another program\'s"}\n'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "can't be read"),
        (b'{"specification": {"a": 1}', "can't be read"),
        (b"\xff\xfe", "can't be read"),
        (b"[]", "is no manifest"),
        (b'{"specification": 3}', "is no manifest"),
    ],
)
def test_a_damaged_manifest_is_a_local_fault(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(LocalFault, match=message):
        RunFolder(tmp_path, SPECIFICATION)
    with pytest.raises(LocalFault, match=message):
        read_manifest(tmp_path)
    assert (tmp_path / "manifest.json").read_bytes() == content


def test_a_folder_without_a_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(LocalFault, match=r"holds no run: manifest\.json is missing"):
        read_manifest(tmp_path)


def test_retry_retires_the_failures_under_a_number_of_their_own(tmp_path: Path) -> None:
    for round_number in range(3):
        with RunFolder(tmp_path, SPECIFICATION, retry=round_number > 0) as run:
            run.write_manifest()
            assert list(run.failures.read()) == []
            run.failures.append(b'{"round":%d}' % round_number)
    for name, mark in (("failures-1", 0), ("failures-2", 1), ("failures", 2)):
        assert json.loads((tmp_path / f"{name}.jsonl").read_bytes())["round"] == mark
        assert whole_lines(tmp_path, f"{name}.jsonl") == 1


def test_without_retry_the_failures_stay(tmp_path: Path) -> None:
    for count in (0, 1):
        with RunFolder(tmp_path, SPECIFICATION) as run:
            run.write_manifest()
            assert len(list(run.failures.read())) == count
            RunSink(run, row).write(FAILED)


def test_calls_that_a_redirect_ended_are_asked_again_without_retry_too(tmp_path: Path) -> None:
    moved = structs.replace(FAILED, failure=Failure("redirect", "302: elsewhere"))
    with RunFolder(tmp_path, SPECIFICATION) as run:
        run.write_manifest()
        for outcome in (FAILED, moved, FAILED, moved):
            RunSink(run, row).write(outcome)
    whole = (tmp_path / "failures.jsonl").read_bytes()
    for _ in range(2):  # there is nothing more to set aside the second time
        with RunFolder(tmp_path, SPECIFICATION) as run:
            assert [json.loads(line)["status"] for line in run.failures.read()] == ["timeout"] * 2
    assert (tmp_path / "failures-1.jsonl").read_bytes() == whole
    assert not (tmp_path / "failures-2.jsonl").exists()


def test_a_damaged_journal_stops_the_start_and_is_set_aside_on_request(tmp_path: Path) -> None:
    with RunFolder(tmp_path, SPECIFICATION) as run:
        run.write_manifest()
        for _ in range(3):
            RunSink(run, row).write(OK)
    path = tmp_path / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1].replace(b"ok", b"no") + lines[2])
    with RunFolder(tmp_path, SPECIFICATION) as run, pytest.raises(DamagedJournal, match="line 2"):
        list(run.records.read())
    with RunFolder(tmp_path, SPECIFICATION, set_aside=True) as run:
        assert len(list(run.records.read())) == 2


def test_a_manifest_is_replaced_at_once(tmp_path: Path) -> None:
    """A reader that looks all the time sees an old manifest or a new one, never a part."""
    path = tmp_path / "manifest.json"
    write_whole(path, b"0" * 50_000)
    seen: set[bytes] = set()
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            seen.add(path.read_bytes())

    watcher = threading.Thread(target=look)
    watcher.start()
    for number in range(1, 5_000):
        write_whole(path, b"%d" % (number % 10) * 50_000)
        if number >= 100 and len(seen) > 1:
            break
    is_over.set()
    watcher.join()
    assert len(seen) > 1
    assert all(len(content) == 50_000 and len(set(content)) == 1 for content in seen)
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_can_not_be_written_is_a_local_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LocalFault, match=r"can't be written \(Not a directory\): choose another --out"):
        RunFolder(tmp_path / "file" / "run", SPECIFICATION)
    with small_disk(tmp_path / "disk", 16 << 20) as disk:
        with RunFolder(disk / "run", SPECIFICATION) as run:
            run.write_manifest()
        make_read_only(disk)
        for folder in (disk / "run", disk / "new"):
            with pytest.raises(LocalFault, match=r"can't be written \(Read-only file system\): choose another --out"):
                RunFolder(folder, SPECIFICATION)


def test_a_disk_without_room_for_the_reserve_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        with pytest.raises(LocalFault, match="no room to set 8 MiB aside"):
            RunFolder(disk / "run", SPECIFICATION)
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_in_the_place_of_a_journal_is_a_local_fault_that_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "failures.jsonl").mkdir()
    before = (len(os.listdir("/proc/self/fd")), threading.active_count())
    with pytest.raises(LocalFault, match=r"failures\.jsonl is a folder, and only a regular file is read or written"):
        RunFolder(tmp_path, SPECIFICATION)
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before
    assert not (tmp_path / ".reserve").exists()


def test_both_journals_are_closed_even_if_one_can_not_be_written(tmp_path: Path) -> None:
    before = (len(os.listdir("/proc/self/fd")), threading.active_count())
    with small_disk(tmp_path / "disk", 9 << 20) as disk:
        run = RunFolder(disk / "run", SPECIFICATION)
        RunSink(run, row).write(FAILED)
        # More than the disk has, the reserve included: the records can't be saved, the failure still can.
        run.records.append(b'{"text":"' + b"x" * (10 << 20) + b'"}')
        with pytest.raises(LocalFault, match="No space left on device"):
            run.close()
        assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda manifest: manifest["specification"].update(seed=2), "its specification was changed"),
        (lambda manifest: manifest.update(specification_hash="0" * 64), "its specification was changed"),
        (lambda manifest: manifest.update(started="2001-01-01"), "it was changed since it was written"),
        (lambda manifest: manifest.pop("manifest_hash"), "it was changed since it was written"),
    ],
)
def test_a_manifest_that_was_changed_is_refused_with_what_to_do(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], told: str
) -> None:
    with RunFolder(tmp_path, {"seed": 1}) as folder:
        folder.write_manifest(started="2026-01-01")
    path = tmp_path / "manifest.json"
    manifest = orjson.loads(path.read_bytes())
    change(manifest)
    path.write_bytes(orjson.dumps(manifest))
    before = path.read_bytes()
    with pytest.raises(LocalFault, match=told) as refused, RunFolder(tmp_path, {"seed": 1}):
        pass
    assert "put back the file as it was" in str(refused.value) and path.read_bytes() == before


def test_a_folder_that_is_deleted_or_replaced_ends_its_run_and_the_successor_is_not_written_to(tmp_path: Path) -> None:
    place = tmp_path / "run"
    with RunFolder(place, {"seed": 1}) as first:
        first.write_manifest(run_id="first")
        first.records.append(b'{"id":"a"}')
        first.records.flush()
        assert not first.records.is_replaced
        shutil.rmtree(place)
        with pytest.raises(LocalFault, match="was deleted or replaced"):
            first.write_manifest(run_id="again")
        assert not place.exists()
        with RunFolder(place, {"seed": 2}) as second:
            second.write_manifest(run_id="second")
            second.records.append(b'{"id":"b"}')
            with pytest.raises(LocalFault, match="was deleted or replaced"):
                first.check_is_own()
            first.records.append(b'{"id":"c"}')
            first.records.flush()
            deadline = time.monotonic() + 5
            # Found by itself, without a line to write.
            while first.fault is None:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert "deleted or replaced" in str(first.fault) and second.fault is None
    assert orjson.loads((place / "manifest.json").read_bytes())["run_id"] == "second"
    assert [b'"id":"b"' in line for line in read_lines(place / "records.jsonl")] == [True]
