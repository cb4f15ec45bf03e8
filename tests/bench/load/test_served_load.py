"""`millstream load` over real sockets against a server with a known law and a log of its own, which is no Python.

What this machine allows is not the test's to say: where the command says that the client was the bottleneck, there is
nothing to compare, and the test is skipped and says so. What it must not do is to be off and not to say so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import environment
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]
from scipy import stats  # type: ignore[import-untyped]

from millstream.speed.load_command import CommandResult, LoadSetup, Times_s, compared, ended, started
from millstream.speed.load_rivals import wrk
from millstream.speed.steady import Law, Log, Steady, built, compiler, steady, stopped

# What is measured here are milliseconds.
pytestmark = [
    pytest.mark.long,
    pytest.mark.alone,
    pytest.mark.process,
    pytest.mark.skipif(compiler() is None, reason="no C compiler: the server with a known law is built by it"),
]

LAW = Law("uniform", 0.08, 0.12)
LONG_TAILED = Law("lognormal", 0.06, 0.5)
SECONDS = 3.0
# Calls come a fraction of a millisecond late, one in a hundred more than one: no log tells shorter gaps apart.
FINEST_S = 0.002


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("steady"))


@pytest.fixture
def ask(program: Path, tmp_path: Path) -> Iterator[Callable[..., tuple[CommandResult, Log]]]:
    def asked(
        law: Law, test: LoadSetup, meanwhile: Callable[[Steady, int], None] | None = None
    ) -> tuple[CommandResult, Log]:
        with (
            steady(law, program=program) as server,
            started(server.url, test, tmp_path, environment(tmp_path)) as process,
        ):
            if meanwhile is not None:
                meanwhile(server, process.pid)
            return ended(process, test, tmp_path), server.log()

    yield asked


Ask = Callable[..., tuple[CommandResult, Log]]


def skip_where_the_client_was_bound(told: CommandResult) -> None:
    if told.reasons:
        pytest.skip(f"this machine was too busy to measure: {'; '.join(told.reasons)}")


def off(told: CommandResult, log: Log) -> list[str]:
    """What is further from the truth than 2% + 1 ms."""
    found = compared(told.model.latency, told.measured(log.arrived, log.took))
    assert found, "no percentile was compared"
    return [
        f"p{each.percent:g} {1000 * each.ours:.2f} ms, truly {1000 * each.truth:.2f}"
        for each in found
        if not each.agrees
    ]


@pytest.mark.parametrize(("rate", "law"), [(50.0, LAW), (200.0, LONG_TAILED), (500.0, LAW)])
def test_percentiles_agree_with_what_the_server_did_and_the_rate_is_kept(rate: float, law: Law, ask: Ask) -> None:
    told, log = ask(law, LoadSetup(rate=rate, seconds=SECONDS))
    assert not told.model.errors and len(log.arrived) == told.model.begun == len(told.due)
    # Its law is what it is said to be, or the comparison would prove nothing.
    median = 0.1 if law is LAW else 0.06
    assert np.median(log.drawn) == pytest.approx(median, rel=0.15)
    skip_where_the_client_was_bound(told)
    assert not off(told, log)
    assert told.model.rate == pytest.approx(rate, rel=0.01)
    came = told.measured(log.arrived, log.arrived)
    assert (len(came) - 1) / (came[-1] - came[0]) == pytest.approx(rate, rel=0.01)


@pytest.mark.parametrize("rate", [2_000.0, 20_000.0])
def test_beyond_what_one_core_does_figures_agree_or_the_client_is_told_to_be_the_bottleneck(
    rate: float, ask: Ask
) -> None:
    # A slow machine begins few of so many calls: the warm-up must not hold all of them.
    told, log = ask(LAW, LoadSetup(rate=rate, seconds=2.0, warm_up_s=1_000 / rate))
    assert told.reasons or not off(told, log)
    is_kept = told.model.rate == pytest.approx(rate, rel=0.01)
    assert told.reasons or is_kept
    # No Python sends so many from one core: a test that says otherwise is wrong.
    assert told.reasons or rate < 20_000


def frozen(pid: int, seconds: float) -> None:
    """As a machine that is busy with something else: the process stands still, ten times a second."""
    time.sleep(1.5)
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        with stopped(pid):
            time.sleep(seconds)
        time.sleep(0.1 - seconds)


@pytest.mark.parametrize("held_s", [0.02, 0.06])
def test_a_client_that_stands_still_again_and_again_says_so(held_s: float, ask: Ask) -> None:
    told, _ = ask(LAW, LoadSetup(rate=100.0, seconds=4.0), lambda server, pid: frozen(pid, held_s))
    assert any("lag" in reason for reason in told.reasons)


def test_a_busy_machine_is_never_blamed_on_the_server_in_silence(ask: Ask) -> None:
    hog = [sys.executable, "-c", "while True: pass"]
    hogs = [subprocess.Popen(hog) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        told, log = ask(LAW, LoadSetup(rate=200.0, seconds=SECONDS))
    finally:
        for process in hogs:
            process.kill()
            process.wait()
    assert told.reasons or not off(told, log)


@pytest.mark.parametrize(
    ("rate", "process", "burstiness"), [(50.0, "poisson", 1.0), (200.0, "gamma", 4.0), (500.0, "poisson", 1.0)]
)
def test_the_servers_own_log_shows_the_process_that_was_asked(
    rate: float, process: str, burstiness: float, ask: Ask
) -> None:
    test = LoadSetup(rate=rate, arrivals=process, burstiness=burstiness, seconds=5.0, seed=3)
    told, log = ask(LAW, test)
    assert len(log.arrived) == len(told.due)
    skip_where_the_client_was_bound(told)
    came = np.sort(log.arrived)[told.due >= 0.5]
    due = told.due[told.due >= 0.5]
    # Each call came when it was due: what the network and both programs took varies by a millisecond or two.
    late = (came - due) - np.median(came - due)
    assert np.quantile(np.abs(late), 0.9) < 0.002
    # The gaps' law, as far as a log can tell them apart, and no other one.
    gaps, law = np.diff(came), stats.gamma(1 / burstiness, scale=burstiness / rate)
    assert follows(gaps, law) and follows(np.diff(due), law)
    assert not follows(gaps, stats.uniform(0, 2 / rate)) and not follows(gaps, stats.gamma(20, scale=1 / rate / 20))
    if process == "gamma":
        assert not follows(gaps, stats.expon(scale=1 / rate))
    # The counts of windows scatter as they should, and as those of when the calls were due.
    scatter, planned = dispersion(came, max(10 / rate, 0.1)), dispersion(due, max(10 / rate, 0.1))
    assert scatter == pytest.approx(planned, rel=0.25)
    assert scatter == pytest.approx(burstiness, rel=0.6)


def follows(gaps: Times_s, law: Any) -> bool:
    gaps = gaps[gaps > FINEST_S]
    below, beyond = float(law.cdf(FINEST_S)), float(law.sf(FINEST_S))
    return float(stats.kstest(gaps, lambda x: (law.cdf(x) - below) / beyond).pvalue) > 0.001


def dispersion(times: Times_s, window_s: float) -> float:
    counts = np.histogram(times, np.arange(times[0], times[-1], window_s))[0]
    return float(counts.var(ddof=1) / counts.mean())


def test_a_constant_rate_comes_in_even_steps(ask: Ask) -> None:
    told, log = ask(LAW, LoadSetup(rate=200.0, seconds=SECONDS))
    skip_where_the_client_was_bound(told)
    came = np.sort(log.arrived)[told.due >= 0.5]
    place = (came - told.due[told.due >= 0.5]) - np.median(came - told.due[told.due >= 0.5])
    assert np.quantile(place, 0.9) - np.quantile(place, 0.1) < 0.002


def test_a_streamed_answers_first_piece_comes_when_the_server_sent_it(ask: Ask) -> None:
    law = Law("uniform", 0.04, 0.08, pieces=6, gap_s=0.02)
    told, log = ask(law, LoadSetup(rate=100.0, seconds=SECONDS, is_streamed=True))
    assert told.model.gap.count == 5 * told.model.calls
    skip_where_the_client_was_bound(told)
    for times, truth in ((told.model.first_token, log.drawn), (told.model.latency, log.took)):
        found = compared(times, told.measured(log.arrived, truth))
        assert found and all(each.agrees for each in found), found
    gap = told.model.gap.at(50.0)
    assert gap is not None and gap.value_s == pytest.approx(0.02, rel=0.05)


STALL_S = 1.0
BRIEF = Law("uniform", 0.005, 0.015)


class Stall:
    """The server stands still for a second, one after its first call came. `took_s`: how long that was in fact."""

    def __init__(self) -> None:
        self.took_s = 0.0

    def __call__(self, server: Steady, client: int = 0) -> None:
        deadline = time.monotonic() + 30
        while not len(server.log().arrived) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.0)
        began = time.perf_counter()
        with stopped(server.pid):
            time.sleep(STALL_S)
        self.took_s = time.perf_counter() - began


def test_a_stall_shows_in_an_open_loop_as_it_should_and_as_wrk_reckons_it(
    program: Path, ask: Ask, tmp_path: Path
) -> None:
    """Of 400 calls 100 are due in the stall and wait for what is left of it: the n-th longest 1 s - n / 100 s. wrk runs
    a closed loop, and makes up the calls that it did not send in the stall."""
    stall = Stall()
    told, log = ask(BRIEF, LoadSetup(rate=100.0, seconds=4.0, warm_up_s=0.0), stall)
    assert len(log.arrived) == told.model.begun == 400
    for percent in (85.0, 90.0, 95.0, 99.0):
        found = at(told, percent)
        assert found == pytest.approx(stall.took_s - (1 - percent / 100) * 400 / 100 + 0.01, abs=0.1)
    assert at(told, 50.0) < 0.1
    if shutil.which("wrk") is None:
        pytest.skip("wrk is not installed: sh speed/install-servers.sh")
    with steady(BRIEF, program=program) as server:
        freezer = threading.Thread(target=stall, args=(server,))
        freezer.start()
        rival = wrk(server.url, 2, 4.0, tmp_path)
        freezer.join()
    assert rival is not None
    assert rival.latency[99.0] == pytest.approx(at(told, 99.0), abs=0.15)


def test_a_closed_loop_forgets_a_stall_and_its_page_must_not_be_read_otherwise(ask: Ask) -> None:
    """Each of its two waits once: that is two in hundreds, and their 99th percentile knows nothing of it."""
    told, _ = ask(BRIEF, LoadSetup(in_flight=2, seconds=4.0, warm_up_s=0.0), stall := Stall())
    assert told.model.begun > 200
    assert at(told, 99.0) < 0.3 < stall.took_s - 0.1 < told.model.latency.longest_s


def at(told: CommandResult, percent: float) -> float:
    """Of the whole histogram, as it stands in load.json."""
    return float(HdrHistogram.decode(told.model.latency.hdr).get_value_at_percentile(percent)) / 1e6
