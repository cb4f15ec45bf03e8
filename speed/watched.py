"""Runs a program with its event loop watched: `python -m … REPORT MODULE [ARGUMENT…]` runs MODULE as `python -m` does.

A timer in the loop measures how late it fires, and a thread records what the loop was doing. Time in which other
programs kept the loop from a core is separate. Knows nothing of the program.
"""

from __future__ import annotations

import gc
import os
import resource
import runpy
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

import msgspec
import uvloop
from msgspec import Struct

TICK_S = 0.005
# Ticks later than this are counted; the worst of them are reported with what was running.
LATE_S = 0.02
TOLD = 8
_LOOKS_EVERY_S = 0.02
_FRAMES = 7
_TASKS = "/proc/self/task"


class Stall(Struct, frozen=True):
    """A late tick: how late, for how much of that the loop's thread ran or waited for a core or for a thread without
    one, and the code it was seen at."""

    late_ms: float
    ran_ms: float
    waited_for_core_ms: float
    at_s: float
    seen: tuple[str, ...] = ()

    @property
    def own_ms(self) -> float:
        """Returns the part that other programs did not cause: running code, and waits for the disk."""
        return max(self.ran_ms, self.late_ms - self.waited_for_core_ms)


class ProgramUsage(Struct, frozen=True):
    """The usage of a whole program. `worst_own_ms` is the worst stall caused by its own code or the disk; `late` counts
    ticks later than LATE_S; `cpu_s` is the process's CPU time, `children_cpu_s` that of its ended children; memory in
    KiB: the process's peak, its anonymous memory at the end, and the peak of the largest child."""

    code: int
    ticks: int
    late: int
    worst_ms: float
    worst_own_ms: float
    stalls: tuple[Stall, ...]
    cpu_s: float
    children_cpu_s: float
    peak_kib: int
    anonymous_kib: int
    largest_child_kib: int


class LoopWatch:
    """Watches one loop from its own thread; only `_look` runs in another one.

    A loop also stands still while another thread of the program holds the interpreter's lock without a core. So the
    waits of all threads are sampled when the loop was last on time.
    """

    def __init__(self) -> None:
        self.ticks = 0
        self.late = 0
        self.stalls: list[Stall] = []
        self.worst_ms = 0.0
        self.worst_own_ms = 0.0
        self._thread = threading.get_ident()
        self._name = str(threading.get_native_id())
        self._began = time.perf_counter()
        self._due = float("inf")
        self._ran_s = 0.0
        self._waits: dict[str, float] = {}
        self._seen: list[str] = []
        self._collection_began = 0.0
        gc.callbacks.append(self._collected)
        threading.Thread(target=self._look, name="watch", daemon=True).start()

    def begin(self) -> None:
        self._waits = _waits_s()
        self._ran_s = time.thread_time()
        self._due = time.perf_counter() + TICK_S

    def end(self) -> None:
        self._due = float("inf")

    def tick(self) -> None:
        now = time.perf_counter()
        late_s = now - self._due
        self.ticks += 1
        if late_s > LATE_S:
            self._note(late_s, now)
        self._seen = []
        self._ran_s = time.thread_time()
        self._due = now + TICK_S

    def _note(self, late_s: float, now: float) -> None:
        before, self._waits = self._waits, _waits_s()
        waits = {name: wait - before.get(name, 0.0) for name, wait in self._waits.items()}
        core_s = min(late_s, waits.pop(self._name, 0.0))
        lock_s = min(late_s - core_s, max(waits.values(), default=0.0))
        ran_s = min(late_s, time.thread_time() - self._ran_s)
        milliseconds = (1000 * late_s, 1000 * ran_s, 1000 * (core_s + lock_s))
        stall = Stall(*milliseconds, now - self._began, tuple(self._seen))
        self.late += 1
        self.worst_ms = max(self.worst_ms, stall.late_ms)
        self.worst_own_ms = max(self.worst_own_ms, stall.own_ms)
        self.stalls = sorted([*self.stalls, stall], key=lambda each: -each.own_ms)[:TOLD]

    def _collected(self, phase: str, told: dict[str, int]) -> None:
        """Records a long garbage collection, during which no thread can sample the stack."""
        if phase == "start":
            self._collection_began = time.perf_counter()
        elif (took_s := time.perf_counter() - self._collection_began) > TICK_S:
            self._seen.append(f"the collector, generation {told['generation']}: {1000 * took_s:.1f} ms")

    def _look(self) -> None:
        while True:
            time.sleep(_LOOKS_EVERY_S)
            if time.perf_counter() > self._due + LATE_S / 2:
                self._seen.append(_stack(sys._current_frames().get(self._thread)))
            else:
                waits = _waits_s()
                if time.perf_counter() < self._due + LATE_S / 2:
                    self._waits = waits


class Loop(uvloop.Loop):
    """uvloop's loop, watched while it runs."""

    watch: LoopWatch | None = None

    def run_forever(self) -> None:
        watch = Loop.watch
        if watch is None:
            watch = Loop.watch = LoopWatch()
        watch.begin()
        timer = self.call_later(TICK_S, self._tick, watch)
        try:
            super().run_forever()
        finally:
            timer.cancel()
            watch.end()

    def _tick(self, watch: LoopWatch) -> None:
        watch.tick()
        self.call_later(TICK_S, self._tick, watch)


def _waits_s() -> dict[str, float]:
    """Returns how long each thread was ready without a core so far; empty where the system doesn't tell."""
    waits = {}
    for name in os.listdir(_TASKS) if os.path.isdir(_TASKS) else ():
        with suppress(OSError):  # it has ended
            file = os.open(f"{_TASKS}/{name}/schedstat", os.O_RDONLY)
            try:
                waits[name] = int(os.read(file, 99).split()[1]) / 1e9
            finally:
                os.close(file)
    return waits


def _stack(frame: FrameType | None) -> str:
    places: list[str] = []
    while frame is not None and len(places) < _FRAMES:
        code = frame.f_code
        places.append(f"{'/'.join(Path(code.co_filename).parts[-2:])}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return " < ".join(places)


def memory_kib(name: str) -> int:
    """Returns a figure of this process's memory from the system, by its name there."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise SystemExit(f"this system does not tell {name}")


def report_of(watch: LoopWatch, code: int) -> ProgramUsage:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ProgramUsage(
        code=code,
        ticks=watch.ticks,
        late=watch.late,
        worst_ms=watch.worst_ms,
        worst_own_ms=watch.worst_own_ms,
        stalls=tuple(watch.stalls),
        cpu_s=time.process_time(),
        children_cpu_s=children.ru_utime + children.ru_stime,
        peak_kib=memory_kib("VmHWM"),
        anonymous_kib=memory_kib("RssAnon"),
        largest_child_kib=children.ru_maxrss,
    )


def main() -> int:
    report, module = Path(sys.argv[1]), sys.argv[2]
    sys.argv = [module, *sys.argv[3:]]
    # Every loop made by uvloop is then a watched one.
    uvloop.new_event_loop = Loop
    code = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    if Loop.watch is not None:
        report.write_bytes(msgspec.json.encode(report_of(Loop.watch, code)))
    return code


if __name__ == "__main__":
    sys.exit(main())
