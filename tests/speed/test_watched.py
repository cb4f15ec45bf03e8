"""What is told of a watched loop: how late it was, what held it, and how its program ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from millstream.speed.watched import ProgramUsage

_PROGRAM = """
import asyncio, sys, time, uvloop

def stand_still():
    time.sleep(0.3)

def work_on():
    until = time.thread_time() + 0.2
    while time.thread_time() < until:
        pass

async def main():
    await asyncio.sleep(0.1)
    if "hold" in sys.argv:
        stand_still()
        await asyncio.sleep(0.1)
        work_on()
    await asyncio.sleep(0.1)

with asyncio.Runner(loop_factory=lambda: uvloop.new_event_loop()) as runner:
    runner.run(main())
sys.exit(7)
"""


def watched(folder: Path, *arguments: str) -> tuple[int, ProgramUsage]:
    (folder / "a_program.py").write_text(_PROGRAM)
    command = [sys.executable, "-P", "-m", "millstream.speed.watched", str(folder / "report.json"), "a_program"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([*command, *arguments], env=environment, timeout=60, check=False)
    return done.returncode, msgspec.json.decode((folder / "report.json").read_bytes(), type=ProgramUsage)


def test_code_that_holds_the_loop_is_told_with_its_place_whether_it_waits_or_works(tmp_path: Path) -> None:
    code, report = watched(tmp_path, "hold")
    assert code == report.code == 7
    asleep, busy = sorted(report.stalls[:2], key=lambda stall: stall.at_s)
    assert asleep.late_ms > 250 and asleep.ran_ms < 50 and "stand_still" in asleep.seen[0]
    assert busy.ran_ms > 180 and "work_on" in busy.seen[0]
    assert report.worst_ms >= max(asleep.late_ms, busy.late_ms) and report.worst_own_ms >= 180


def test_a_loop_that_nothing_holds_is_told_on_time(tmp_path: Path) -> None:
    code, report = watched(tmp_path)
    assert code == 7 and report.ticks > 5 and report.worst_own_ms < 150
    assert report.peak_kib > report.anonymous_kib > 1_000 and report.cpu_s > 0
