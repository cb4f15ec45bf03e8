"""Claims of several engines whose steps are interleaved line by line, or that are killed and stopped as processes: no
key is ever held by two at once, and none by a dead one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from millstream.engine.claims import Claims

KEYS = [bytes([number]) * 32 for number in range(1, 4)]
CLAIMS_FILE = sys.modules[Claims.__module__].__file__


class Killed(BaseException):
    """Raised within a step of an engine that is killed: nothing of it goes on."""


class Engine(threading.Thread):
    """An engine that takes and releases keys at random, one line of the claims at each `step`."""

    def __init__(self, world: World) -> None:
        super().__init__(daemon=True)
        self.world = world
        self.is_killed = self._is_dying = self.is_over = False
        self.error: BaseException | None = None
        self._may_go, self._has_gone = threading.Semaphore(0), threading.Semaphore(0)
        self.start()

    def step(self) -> None:
        self._may_go.release()
        assert self._has_gone.acquire(timeout=20)

    def run(self) -> None:
        self._may_go.acquire()
        claims = Claims(self.world.folder, look_round_s=self.world.chance.choice((0.0, 0.002)))
        sys.settrace(self._trace)
        try:
            self._work(claims)
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 (raised where the world is run)
            self.error = error
        self._is_dying = True
        try:
            # As the kernel does; and it asks nobody.
            for held in [key for key, holder in self.world.holders.items() if holder is self]:
                del self.world.holders[held]
            claims.close()
        finally:
            sys.settrace(None)
            self.is_over = True
            self._has_gone.release()

    def _work(self, claims: Claims) -> None:
        chance, holders = self.world.chance, self.world.holders
        leases: dict[bytes, int] = {}
        for _ in range(chance.choice((2, 10, 40))):
            key = chance.choice(KEYS)
            if key in leases:
                del holders[key]
                claims.release(key, leases.pop(key))
            elif lease := claims.take(key):
                assert key not in holders, f"{holders[key]} and {self} hold one key"
                holders[key], leases[key] = self, lease
                self.world.taken["alone" if lease > 0 else "locked"] += 1
            self._pause()

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        code: CodeType = frame.f_code
        if code.co_filename != CLAIMS_FILE:
            return None
        if event == "line":
            self._pause()
        return self._trace

    def _pause(self) -> None:
        self._has_gone.release()
        self._may_go.acquire()
        if self.is_killed and not self._is_dying:
            raise Killed


class World:
    """A folder in which engines come, stand still, go and die."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.holders: dict[bytes, Engine] = {}
        self.taken = Counter[str]()
        self.engines: list[Engine] = []

    def run(self, steps: int) -> None:
        chance = self.chance
        for _ in range(steps):
            if len(self.engines) < 3 and chance.random() < 0.03:
                self.engines.append(Engine(self))
            if not self.engines:
                continue
            engine = chance.choice(self.engines)
            engine.is_killed |= chance.random() < 0.003
            for _ in range(chance.choice((1, 1, 1, 2, 5, 30))):  # the others stand still meanwhile
                if not engine.is_over:
                    engine.step()
            self._bury()
        while self.engines:
            self.engines[0].is_killed = True
            self.engines[0].step()
            self._bury()

    def _bury(self) -> None:
        for engine in [engine for engine in self.engines if engine.is_over]:
            self.engines.remove(engine)
            engine.join()
            if engine.error is not None:
                raise engine.error


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(8, 15))])
def test_no_key_is_held_twice_however_the_steps_of_engines_are_interleaved(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path, seed)
    world.run(1500)
    assert world.taken.total() > 20, world.taken
    claims = Claims(tmp_path)
    assert all(claims.take(key) for key in KEYS)
    claims.close()


WORKER = """
import os, random, sys, time
from pathlib import Path
from millstream.engine.claims import Claims
folder, seed = Path(sys.argv[1]), int(sys.argv[2])
log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
chance, me = random.Random(seed), os.getpid()
while True:
    claims = Claims(folder, look_round_s=0.02)
    for _ in range(chance.choice((20, 500, 5000))):
        keys = chance.sample(range(1, 9), 2)
        leases = {}
        for key in keys:
            if lease := claims.take(bytes([key]) * 32):
                os.write(log, b"taken %d %d %d\\n" % (me, key, lease))
                leases[key] = lease
        time.sleep(chance.choice((0, 0.0001, 0.002)))
        for key, lease in leases.items():
            os.write(log, b"free %d %d 0\\n" % (me, key))
            claims.release(bytes([key]) * 32, lease)
    claims.close()
    time.sleep(chance.choice((0, 0.05)))
"""


class Workers:
    """Processes that take keys and write down when."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.made = 0
        self.processes = [self._started() for _ in range(count)]

    def _started(self) -> subprocess.Popen[bytes]:
        self.made += 1
        return subprocess.Popen([sys.executable, "-c", WORKER, str(self.folder), str(self.made)])

    def note(self, what: str, process: subprocess.Popen[bytes]) -> None:
        with (self.folder / "log").open("a") as log:
            log.write(f"{what} {process.pid} 0 0\n")

    def kill(self, number: int) -> None:
        process = self.processes[number]
        assert process.poll() is None, "it ended by itself"
        self.note("killed", process)
        process.kill()
        process.wait()

    def replace(self, number: int) -> None:
        self.kill(number)
        self.processes[number] = self._started()

    def takes(self, others_than: subprocess.Popen[bytes]) -> set[str]:
        """The keys that the others have taken so far, each as often as it was."""
        lines = (line.split() for line in (self.folder / "log").read_text().splitlines(keepends=True) if "\n" in line)
        return {
            f"{number} {line[2]}"
            for number, line in enumerate(lines)
            if line[0] == "taken" and int(line[1]) != others_than.pid
        }


def holders_after(lines: list[str]) -> tuple[dict[str, str], Counter[str]]:
    """Checks that no key was taken while another process had it; returns who has which key at last, and the ways."""
    holders: dict[str, str] = {}
    dead, ways = set[str](), Counter[str]()
    for line in lines:
        what, process, key, lease = line.split()
        if what == "killed":  # written before it is; what it still did then is of no consequence
            dead.add(process)
            holders = {held: by for held, by in holders.items() if by != process}
        elif process in dead:
            pass
        elif what == "free":
            del holders[key]
        else:
            assert key not in holders, f"{process} took {key}, which {holders[key]} had"
            holders[key] = process
            ways["alone" if int(lease) > 0 else "locked"] += 1
    return holders, ways


@pytest.mark.process
def test_no_key_is_held_twice_by_processes_that_are_killed_and_stopped_at_random(tmp_path: Path) -> None:
    chance = random.Random(3)
    (tmp_path / "log").touch()
    workers = Workers(tmp_path, 3)
    try:
        deadline = time.monotonic() + 60
        while (tmp_path / "log").read_text().count("\n") < 100:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for _ in range(12):
            time.sleep(chance.uniform(0.02, 0.2))
            workers.replace(chance.randrange(3))
            time.sleep(chance.uniform(0.02, 0.2))
            stopped = workers.processes[chance.randrange(3)]
            stopped.send_signal(signal.SIGSTOP)
            time.sleep(0.02)
            before, deadline = workers.takes(stopped), time.monotonic() + 20
            # It holds two keys at most, and the others go on with the rest.
            while len({take.split()[1] for take in workers.takes(stopped) - before}) < 6:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            stopped.send_signal(signal.SIGCONT)
    finally:
        for number in range(3):
            workers.kill(number)
    _, ways = holders_after((tmp_path / "log").read_text().splitlines())
    assert ways["locked"] > 100 and ways["alone"] > 0, ways
    claims = Claims(tmp_path)
    assert all(claims.take(bytes([key]) * 32) for key in range(1, 9))
    claims.close()
    assert os.path.getsize(tmp_path / "leases") == 16384
