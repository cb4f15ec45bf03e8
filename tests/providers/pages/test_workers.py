"""Workers: what takes too long or too much is ended for real, at the cost of its own task alone."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import tasks
from loops import on_each_loop, run_on

from millstream.providers.pages.workers import TaskBreakdown, TaskError, Worker, WorkerFault, Workers, WorkerSpec

# The program's own workers.
pytestmark = pytest.mark.process


@pytest.fixture
def worker() -> Iterator[Worker]:
    with closing(Worker(WorkerSpec(memory_max=256 << 20))) as found:
        yield found


def is_alive(pid: int) -> bool:
    """A process that ended and was not waited for yet is not alive."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextmanager
def no_descriptors() -> Iterator[Callable[[], None]]:
    """This process can open no file more, until it is told that it may."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    last = os.open(os.devnull, os.O_RDONLY)
    os.close(last)

    def free() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    resource.setrlimit(resource.RLIMIT_NOFILE, (last, limits[1]))
    try:
        yield free
    finally:
        free()


@pytest.mark.parametrize(
    ("task", "arguments", "why"),
    [
        (tasks.spin, (), "timeout"),
        (tasks.hang_in_c, (), "timeout"),
        (tasks.allocate, (300,), "memory"),
        (tasks.die, (3,), "crash"),
        (tasks.abort, (), "crash"),
    ],
)
def test_a_task_beyond_its_limits_ends_alone(
    worker: Worker, task: Callable[..., Any], arguments: tuple[Any, ...], why: str
) -> None:
    first = worker.run(os.getpid, within_s=20)
    began = time.monotonic()
    with pytest.raises(TaskBreakdown) as ended:
        worker.run(task, *arguments, within_s=0.5)
    assert ended.value.why == why
    assert time.monotonic() - began < 10
    assert worker.run(tasks.allocate, 100, within_s=20) == 100 << 20
    assert not is_alive(first)


# What says nothing about a task, since it was our own machine's: the process tries it once more, and that counts.
PASSING: dict[str, tuple[Callable[..., Any], int]] = {
    "killed": (tasks.once, signal.SIGKILL),
    "ended": (tasks.once, signal.SIGTERM),
    "out of processor time by a limit of the machine": (tasks.once, signal.SIGXCPU),
    "broken down": (tasks.once, signal.SIGSEGV),
    "out of memory that another task holds": (tasks.allocate_at_second, 300),
}


@pytest.mark.parametrize("name", PASSING)
def test_what_happens_to_a_process_once_decides_nothing(worker: Worker, name: str, tmp_path: Path) -> None:
    task, number = PASSING[name]
    worker.run(os.getpid, within_s=20)
    assert worker.run(task, str(tmp_path / "mark"), number, within_s=20) in ("done", 1 << 20)


def test_a_process_that_is_stopped_once_decides_nothing(tmp_path: Path) -> None:
    with closing(Worker(WorkerSpec(stalled_s=1.0))) as worker:
        assert worker.run(tasks.once, str(tmp_path / "mark"), signal.SIGSTOP, within_s=1.0) == "done"


# And at the second time it is told as a fault of our own machine, never as the task's.
FAULTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "killed": (tasks.send_itself, (signal.SIGKILL,), r"ended from outside \(SIGKILL\)"),
    "without descriptors": (tasks.lack_file_descriptors, (), "Too many open files"),
    "without a module": (tasks.lack_a_module, (), "no_such_parser is missing: pip install no_such_parser"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_our_own_machine_is_told_as_that(worker: Worker, name: str) -> None:
    task, arguments, told = FAULTS[name]
    with pytest.raises(WorkerFault, match=told):
        worker.run(task, *arguments, within_s=0.2)
    assert worker.run(len, b"abc", within_s=20) == 3


def test_a_task_that_is_given_no_processor_time_has_not_taken_too_long() -> None:
    told = r"a task waited 0\.5 s for the processor"
    with closing(Worker(WorkerSpec(stalled_s=0.5))) as worker, pytest.raises(WorkerFault, match=told):
        worker.run(tasks.hang, within_s=0.2)


UNABLE: dict[str, tuple[WorkerSpec, str]] = {
    "a module is missing": (WorkerSpec(modules=("no_such_parser",)), "no_such_parser is missing: pip install no_such_"),
    "another one says so": (
        WorkerSpec(check=tasks.lack_a_part_of_lxml),
        "no_such_parser is missing: pip install no_such",
    ),
    "it is killed": (WorkerSpec(modules=("tasks",), check=tasks.kill_itself), "its process"),
    "it breaks down": (WorkerSpec(check=tasks.abort), "its process broke down"),
    "it is too slow": (WorkerSpec(check=tasks.take_a_second, start_s=0.5), r"it was not ready within 0\.5 s"),
}


@pytest.mark.parametrize("name", UNABLE)
def test_a_worker_that_can_not_start_is_our_own_fault(name: str) -> None:
    means, told = UNABLE[name]
    said = f"no worker process can be started: {told}"
    with closing(Worker(means)) as worker, pytest.raises(WorkerFault, match=said) as fault:
        worker.run(len, b"abc", within_s=20)
    assert "\n" not in str(fault.value)


def test_the_start_of_a_process_takes_nothing_of_its_tasks_time() -> None:
    with closing(Worker(WorkerSpec(check=tasks.take_a_second))) as worker:
        assert worker.run(len, b"abc", within_s=0.2) == 3


def test_a_process_that_finds_no_descriptor_is_waited_for() -> None:
    with closing(Worker(WorkerSpec(start_s=20.0))) as worker, asyncio.Runner() as runner:
        runner.get_loop()
        with no_descriptors() as free:
            threading.Timer(1.5, free).start()
            assert runner.run(worker.run_async(len, b"abc", within_s=20)) == 3


def test_a_task_has_a_little_less_than_its_memory_so_that_sending_its_end_takes_no_more(worker: Worker) -> None:
    assert worker.run(tasks.address_space, within_s=20) == 240 << 20


def test_a_worker_leaves_no_core_dump_and_the_program_that_has_it_keeps_its_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
        with closing(Worker()) as worker:
            assert worker.run(tasks.core_dump_limit, within_s=20) == 0
        assert resource.getrlimit(resource.RLIMIT_CORE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def test_what_a_task_raises_is_told_in_one_line(worker: Worker) -> None:
    with pytest.raises(TaskError, match="ValueError: too bad"):
        worker.run(tasks.fail, "too bad", within_s=20)
    with pytest.raises(TaskError, match="ValueError: x"):
        worker.run(tasks.fail, "x" * 10_000, within_s=20)


def test_a_process_that_ends_between_two_tasks_is_replaced(worker: Worker) -> None:
    first = worker.run(os.getpid, within_s=20)
    os.kill(first, signal.SIGKILL)
    time.sleep(0.4)
    assert worker.run(os.getpid, within_s=20) != first


def test_what_a_task_prints_reaches_nobody(capfd: pytest.CaptureFixture[str], worker: Worker) -> None:
    worker.run(tasks.shout, within_s=20)
    assert capfd.readouterr() == ("", "")


@on_each_loop
def test_a_killed_task_leaves_those_beside_it_alone(loop: str) -> None:
    async def work() -> list[object]:
        workers = Workers(2)
        try:
            hung = asyncio.create_task(workers.run(tasks.spin, within_s=1.0))
            found: list[object] = [await workers.run(len, b"x" * size, within_s=20) for size in range(200)]
            with pytest.raises(TaskBreakdown):
                await hung
            assert repr(workers) == "<Workers [0 of 2 busy]>"
        finally:
            await workers.close()
        return found

    assert run_on(loop, work()) == list(range(200))


def test_the_task_of_a_cancelled_caller_is_ended_and_its_worker_serves_the_next() -> None:
    async def work() -> None:
        workers = Workers(1)
        try:
            first = await workers.run(os.getpid, within_s=20)
            task = asyncio.create_task(workers.run(tasks.hang, within_s=60))
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await workers.run(os.getpid, within_s=20) != first
            assert not is_alive(first)
        finally:
            await workers.close()

    run_on("asyncio", work())


def test_closing_ends_the_processes() -> None:
    async def work() -> list[int]:
        workers = Workers(2)
        found = await asyncio.gather(*(workers.run(os.getpid, within_s=20) for _ in range(2)))
        await workers.close()
        return found

    assert not any(is_alive(pid) for pid in run_on("asyncio", work()))


UNGUARDED = """
import asyncio, os, sys
print("sent", flush=True)
from millstream.providers.pages.workers import Workers
async def main():
    workers = Workers(1)
    print(await workers.run(len, b"abc", within_s=20), await workers.run(os.getpid, within_s=20), flush=True)
    if len(sys.argv) > 1:
        await asyncio.sleep(60)
    await workers.close()
asyncio.run(main())
"""


def test_a_script_without_a_guard_is_not_run_again_by_its_workers(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    done = subprocess.run([sys.executable, "-P", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.count("sent") == 1 and done.stdout.split()[1] == "3"
    assert done.stderr == ""


def test_a_parent_that_is_killed_leaves_no_worker_behind(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    with subprocess.Popen([sys.executable, "-P", script, "stay"], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        pid = int(parent.stdout.readline().split()[1])
        assert is_alive(pid)
        parent.kill()
        parent.wait()
    until = time.monotonic() + 20
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.1)
    assert not is_alive(pid)


def test_no_workers_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match=r"workers \(0\) must be >= 1"):
        Workers(0)
