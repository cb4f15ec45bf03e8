"""A disk without room, or without room for one more file: every verb that writes ends with one line and exit code 5."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest
from command_line import SMALL, Done, Provider, finish, run_command, start
from places import small_disk
from torture import IS_LONG, record

pytestmark = [pytest.mark.needs_benchmark("millstone"), pytest.mark.process, pytest.mark.timeout(3600)]

RUN = ("run", "millstone", "--model", "sim/open", *SMALL, "--cache", "cache", "--no-report", "--no-progress")
VERBS: dict[str, tuple[str, ...]] = {
    "run": (*RUN, "--out", "new"),
    "run again": (*RUN, "--out", "run"),
    "retry": ("retry", "run", "--no-report"),
    "load": ("load", "sim/open", "--rate", "20", "--duration", "1s", "--out", "test"),
    "batch": ("batch", "in.jsonl", "out.jsonl", "--model", "sim/open", "--cache", "cache"),
    "probe": ("probe", "sim/open", "--max-calls", "5", "--cache", "quiet"),
    "report": ("report", "run"),
    "score": ("score", "run"),
    "review": ("review", "run", "--sample", "3", "--csv", "labels.csv"),
    "export": ("export", "run"),
    "cache export": ("cache", "export", "run", "out.snapshot", "--cache", "cache"),
    "cache import": ("cache", "import", "in.snapshot", "--cache", "other"),
}
SENDS = ("run", "run again", "load", "batch", "probe")
SHORT = (
    ("run", 0),
    ("run again", 4),
    ("load", 0),
    ("score", 0),
    ("cache export", 300),
    ("cache export", 0),
    ("cache import", 300),
    ("export", 64),
)
SHORT_OF_FILES = (("run", 0), ("run again", 3), ("cache export", 1))
FREE_KIB = (0, 4, 64, 300, 1_100)
DISK = 24 << 20


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, running_provider: Provider) -> Path:
    """A home with a finished run, its snapshot and the input of a batch."""
    running_provider.reset()
    running_provider.set_faults("rejected=400,at=2")
    place = tmp_path_factory.mktemp("full")
    assert run_command(place, *RUN, "--base-url", running_provider.base_url, "--out", "run").code == 3
    assert run_command(place, "cache", "export", "run", "in.snapshot", "--cache", "cache").code == 0
    body = {"model": "sim/open", "messages": [{"role": "user", "content": "A"}], "max_tokens": 5}
    row = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": body}
    (place / "in.jsonl").write_text(json.dumps(row) + "\n")
    return place


def fill(disk: Path, free: int) -> None:
    """Leaves room for `free` bytes."""
    with (disk / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError as error:
            assert error.errno == errno.ENOSPC
        while True:
            try:
                file.write(bytes(1 << 12))
            except OSError:
                break
        file.truncate(max(0, file.tell() - free))


def spend_inodes(disk: Path, left: int) -> None:
    free = os.statvfs(disk).f_ffree
    for number in range(free - left):
        (disk / f"file{number}").touch()


def ended_on(disk: Path, verb: str, provider: Provider) -> Done:
    more = ("--base-url", provider.base_url) if verb in SENDS else ()
    # A probe waits a minute after its first call.
    return finish(start(disk / "home", *VERBS[verb], *more), 150 if verb == "probe" else 40)


def check(done: Done, verb: str, room: str) -> None:
    assert done.code >= 0, f"{verb} with {room}: killed by signal {-done.code}: {done.err}"
    # A probe that stays below its few calls writes nothing.
    assert "Traceback" not in done.err and done.code in (0, 3, 4 if verb == "probe" else 5, 5), (
        f"{verb}, {room}: {done}"
    )
    if done.code == 5:
        assert "Input/output error" not in done.err, f"{verb} with {room}: {done.err}"


def test_a_disk_without_room_ends_every_verb_with_a_line(
    home: Path, tmp_path: Path, running_provider: Provider
) -> None:
    running_provider.reset()
    every = list(product(VERBS, FREE_KIB))
    tried = every if IS_LONG else list(SHORT)
    codes = dict[tuple[str, int], int]()
    for number, (verb, free) in enumerate(tried):
        with small_disk(tmp_path / str(number), DISK) as disk:
            shutil.copytree(home, disk / "home", symlinks=True)
            fill(disk, free << 10)
            done = ended_on(disk, verb, running_provider)
            check(done, verb, f"{free} KiB free")
            codes[verb, free] = done.code
            # What is there stays whole.
            (disk / "filler").unlink()
            assert run_command(disk / "home", "verify", "run").code == 0
    assert codes["run", 0] == codes["load", 0] == codes["score", 0] == 5, codes
    record("19", len(tried), len(tried), "exit code 5 and a line")


def test_a_disk_without_room_for_another_file_ends_every_verb_with_a_line(
    home: Path, tmp_path: Path, running_provider: Provider
) -> None:
    running_provider.reset()
    every = list(product(VERBS, range(8)))
    for number, (verb, left) in enumerate(every if IS_LONG else SHORT_OF_FILES):
        with small_disk(tmp_path / str(number), DISK) as disk:
            subprocess.run(["mount", "-o", "remount,nr_inodes=400", disk], check=True)
            shutil.copytree(home, disk / "home", symlinks=True)
            spend_inodes(disk, left)
            check(ended_on(disk, verb, running_provider), verb, f"{left} files left")
