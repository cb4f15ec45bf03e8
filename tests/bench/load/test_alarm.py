"""Waiting until a call is due: by the kernel's timer, and by the loop's own in virtual time."""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time

import pytest
from loops import on_each_loop, run_on
from virtual_time import run_virtually

from millstream.bench.load.alarm import Alarm, KernelAlarm, kernel_alarm

# What is measured here are microseconds.
pytestmark = pytest.mark.alone

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's timer is Linux's")


@on_linux
@on_each_loop
def test_a_fine_alarm_is_closer_than_a_millisecond_and_early_by_no_more(loop: str) -> None:
    async def scenario() -> list[float]:
        alarm, late = KernelAlarm(), []
        for number in range(200):
            due = time.perf_counter() + 0.0013 + 0.0001 * (number % 10)
            await alarm.wait(due - time.perf_counter())
            late.append(time.perf_counter() - due)
        alarm.close()
        return late

    late = run_on(loop, scenario())
    assert min(late) > -0.000_6
    # Of a busy machine's delays the least are the alarm's own; a timer of whole milliseconds would lie above.
    assert statistics.quantiles(late, n=10)[0] < 0.0004


@on_linux
@on_each_loop
def test_an_alarm_rung_ends_the_wait_and_may_be_set_again(loop: str) -> None:
    async def scenario() -> float:
        alarm = KernelAlarm()
        began = time.perf_counter()
        asyncio.get_running_loop().call_later(0.01, alarm.ring)
        await alarm.wait(3_600.0)
        while time.perf_counter() < began + 0.05:
            await alarm.wait(began + 0.05 - time.perf_counter())
        alarm.ring()  # nobody waits
        alarm.close()
        alarm.close()
        return time.perf_counter() - began

    assert 0.05 <= run_on(loop, scenario()) < 20


@on_linux
@on_each_loop
def test_a_closed_or_cancelled_alarm_leaves_no_file(loop: str) -> None:
    async def scenario() -> tuple[set[str], set[str]]:
        before = files()
        for _ in range(3):
            alarm = KernelAlarm()
            waiting = asyncio.create_task(alarm.wait(3_600.0))
            await asyncio.sleep(0.01)
            waiting.cancel()
            await asyncio.wait([waiting])
            alarm.close()
        return before, files()

    def files() -> set[str]:
        return set(os.listdir("/proc/self/fd")) if sys.platform == "linux" else set()

    before, after = run_on(loop, scenario())
    assert len(after) <= len(before)


def test_a_clock_of_ones_own_has_the_loops_timers() -> None:
    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        assert kernel_alarm(loop.time) is None
        alarm = Alarm()
        await alarm.wait(7_200.25)
        loop.call_later(1.0, alarm.ring)
        await alarm.wait(3_600.0)
        alarm.close()
        return loop.time()

    assert run_virtually(scenario()) == pytest.approx(7_201.25)


@on_linux
def test_the_systems_clock_has_the_kernels_timer() -> None:
    async def scenario() -> bool:
        alarm = kernel_alarm(time.perf_counter)
        assert alarm is not None
        alarm.close()
        return True

    assert asyncio.run(scenario())
