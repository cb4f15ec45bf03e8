"""Promise 22 by force: a run on two nodes of a Ray cluster ends as one without it, whatever is killed.

Nine kills in `make long`, and four with a server of a shared cache; ten times as many in `make torture`. The simulated
provider's log is the judge.
"""

from __future__ import annotations

import os
import random
import signal
import time
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from command_line import Done, Provider, finish, simulated_provider, start
from ray_nodes import RayNodes
from ray_runs import GRID, PROMPTS, records_of, scores_of
from shared_server import KEEPING, SharedServer
from torture import IS_LONG, SEED, record, times

pytest.importorskip("ray")
pytestmark = [pytest.mark.process, pytest.mark.long, pytest.mark.needs_benchmark("millstone")]

ROUNDS = times(1, 10)
WORKERS, CONCURRENCY = 4, 16
RPM = 900
# Dollars a million tokens, of prompts and of answers alike: what is billed follows from the sum of both.
DOLLARS = 20.0
PRICES = f'[prices."sim/open"]\ninput = {DOLLARS}\noutput = {DOLLARS}\n'
# A run that has written nothing for so long hangs: a busy machine takes a minute to start a worker.
HANGS_S = 300.0
WORKER, NODE, DRIVER, SERVER = "worker", "node", "driver", "server"


@pytest.fixture(scope="module")
def slow_provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    """One whose calls are in flight for most of the time."""
    with simulated_provider(tmp_path_factory.mktemp("slow"), "constant:0.8") as running:
        yield running


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayNodes]:
    with RayNodes(tmp_path_factory.mktemp("nodes")) as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServer]:
    with SharedServer(tmp_path_factory.mktemp("server"), *KEEPING) as running:
        yield running


class Attack:
    """One run, and what is killed of it: `kinds`, each at a number of records that `chance` draws. `caps` in dollars:
    a run that reaches one goes on under the next."""

    def __init__(
        self, home: Path, nodes: RayNodes, provider: Provider, chance: random.Random, caps: tuple[float, ...]
    ) -> None:
        self._home, self._nodes, self._provider, self._chance = home, nodes, provider, chance
        self._caps = list(caps)
        self._starting: Thread | None = None
        self._lines = home / "run/records.jsonl"
        # The most calls that were in flight where something was killed.
        self.in_flight = 0
        self.killed: list[str] = []

    def run(self, kinds: list[str], *command: str, server: SharedServer | None = None) -> Done:
        """Returns how the last command ended, after all kills."""
        self._command, self._server = command, server
        self._provider.reset()
        marks = sorted(self._chance.sample(range(20, PROMPTS * 9 // 10), len(kinds)))
        self._chance.shuffle(kinds)
        self._start()
        for mark, kind in zip(marks, kinds, strict=True):
            self._await_records(mark)
            self._kill(kind)
            self.killed.append(kind)
        self._await_records(PROMPTS)
        done = self._ended()
        print(done.err)
        if self._starting is not None:
            self._starting.join()
        self._await_workers(0)
        return done

    def _start(self) -> None:
        cap = () if not self._caps else ("--max-cost", f"{self._caps[0]:.6f}")
        fleet = (*self._nodes.flags, "--workers", str(WORKERS))
        self._process = start(self._home, *self._command, *cap, *fleet, **self._nodes.variables)

    def _ended(self) -> Done:
        done = finish(self._process, HANGS_S)
        assert "Traceback" not in done.err, done.err
        return done

    def _await_records(self, count: int) -> None:
        """Waits until the run has so many records."""
        before, until = -1, 0.0
        while (now := self._lines.read_bytes().count(b"\n") if self._lines.exists() else 0) < count:
            if now > before:
                before, until = now, time.monotonic() + HANGS_S
            if time.monotonic() > until:
                self._process.terminate()
                workers = len(self._nodes.workers())
                raise AssertionError(f"{now} records and {workers} workers, after {self.killed}: {self._ended().err}")
            if self._process.poll() is not None:
                done = self._ended()
                assert done.code == 4 and len(self._caps) > 1, f"{self.killed}: {done}"
                assert billed(self._provider) <= self._caps.pop(0) + 1e-9
                self._start()
            time.sleep(0.05)

    def _kill(self, kind: str) -> None:
        if kind == NODE and self._starting is not None:
            self._starting.join()
        self.in_flight += _allowed(kind, self._nodes)
        if kind == WORKER:
            while not killed_one(self._nodes, self._chance):
                self._await_workers(1)
        elif kind == NODE:
            self._nodes.other.kill()
            self._starting = Thread(target=self._nodes.other.start)
            self._starting.start()
        elif kind == DRIVER:
            self._process.kill()
            finish(self._process)
            self._start()
        else:
            assert self._server is not None
            self._server.kill()
            time.sleep(self._chance.uniform(0.1, 2.0))
            self._server.start()

    def _await_workers(self, count: int) -> None:
        """Waits until there are workers; with `count` 0: none."""
        until = time.monotonic() + HANGS_S
        while bool(self._nodes.workers()) is not bool(count):
            assert time.monotonic() < until, f"workers: {self._nodes.workers()}, expected {count}"
            time.sleep(0.05)


def _allowed(kind: str, nodes: RayNodes) -> int:
    """How many calls a kill may find in flight."""
    each = -(-CONCURRENCY // WORKERS)
    return {WORKER: each, NODE: each * max(1, len(nodes.other.workers())), DRIVER: CONCURRENCY, SERVER: 0}[kind]


def billed(provider: Provider) -> float:
    """For every call that was received, whether anybody was still there to hear its answer."""
    return float(provider.summary()["tokens_admitted"]) * DOLLARS / 1e6


def answers_of(folder: Path) -> dict[tuple[str, str], object]:
    return {place: (line["status"], line["text"]) for place, line in records_of(folder).items()}


def fullest_minute(arrivals: list[float]) -> int:
    return max(bisect_left(arrivals, at + 60.0) - number for number, at in enumerate(arrivals))


def killed_one(nodes: RayNodes, chance: random.Random) -> bool:
    """Kills a worker, unless there is none, or it has just ended by itself."""
    if not (workers := nodes.workers()):
        return False
    try:
        os.kill(chance.choice(workers), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def judged(attack: Attack, folder: Path, provider: Provider) -> str:
    """Fails if a run that has ended broke what is promised; returns what was seen."""
    assert len(records_of(folder / "run")) == PROMPTS
    assert finish(start(folder, "verify", "run"), 120).code == 0
    again = sum(provider.received().values()) - PROMPTS
    assert 0 <= again <= attack.in_flight, attack.killed
    killed = ", ".join(f"{attack.killed.count(kind)} x {kind}" for kind in dict.fromkeys(sorted(attack.killed)))
    return f"killed: {killed}; {again} calls sent again, of {attack.in_flight} that may have been in flight"


def flags_of(provider: Provider, concurrency: int) -> tuple[str, ...]:
    return ("--base-url", provider.base_url, "--config", "prices.toml", "--concurrency", str(concurrency))


def folder_of(home: Path, number: int) -> Path:
    (folder := home / str(number)).mkdir()
    (folder / "prices.toml").write_text(PRICES)
    return folder


@pytest.mark.timeout(600 + 900 * ROUNDS)
def test_workers_nodes_and_drivers_are_killed_and_the_run_is_the_one_without_them(
    slow_provider: Provider, nodes: RayNodes, tmp_path: Path
) -> None:
    slow_provider.reset()
    (tmp_path / "prices.toml").write_text(PRICES)
    into = ("--cache", "plain-cache", "--out", "plain")
    plain = finish(start(tmp_path, *GRID, *flags_of(slow_provider, 256), *into), 300)
    assert plain.code == 0, plain.err
    cost = billed(slow_provider)
    for number in range(ROUNDS):
        folder = folder_of(tmp_path, number)
        attack = Attack(folder, nodes, slow_provider, random.Random(f"{SEED} {number}"), (cost / 2, 10 * cost))
        where = ("--rpm", str(RPM), "--cache", "cache", "--out", "run")
        kinds = [WORKER] * 7 + [NODE, DRIVER]
        done = attack.run(kinds, *GRID, *flags_of(slow_provider, CONCURRENCY), *where)
        assert done.code == 0, done.err
        seen = judged(attack, folder, slow_provider)
        assert answers_of(folder / "run") == answers_of(tmp_path / "plain")
        assert scores_of(folder / "run") == scores_of(tmp_path / "plain")
        assert billed(slow_provider) <= 10 * cost
        fullest = fullest_minute(slow_provider.arrivals())
        assert fullest <= RPM
        record("22", len(kinds), len(kinds), f"{seen}; the fullest minute had {fullest} of {RPM} requests", f"{SEED}")


@pytest.mark.timeout(600 + 900 * ROUNDS)
def test_a_server_and_workers_are_killed_and_every_record_stands_once(
    slow_provider: Provider, nodes: RayNodes, server: SharedServer, tmp_path: Path
) -> None:
    for number in range(ROUNDS):
        folder = folder_of(tmp_path, number)
        attack = Attack(folder, nodes, slow_provider, random.Random(f"{SEED} {number}"), ())
        # After a kill of the server, a quota waits a minute.
        quota = ("--rpm", str(RPM)) if IS_LONG and number % 3 == 0 else ()
        # Each round asks something else, since the server keeps the answers.
        where = ("--cache", server.address, "--temperature", str((number + 1) / 100), "--out", "run", *quota)
        kinds = [WORKER] * 3 + [SERVER]
        done = attack.run(kinds, *GRID, *flags_of(slow_provider, CONCURRENCY), *where, server=server)
        assert done.code == 0, done.err
        seen = judged(attack, folder, slow_provider)
        fullest = fullest_minute(slow_provider.arrivals())
        assert fullest <= RPM or not quota
        record("22", len(kinds), len(kinds), seen, f"{SEED}")


@pytest.mark.timeout(1200)
def test_workers_die_and_join_and_the_quota_is_used(slow_provider: Provider, nodes: RayNodes, tmp_path: Path) -> None:
    slow_provider.reset()
    folder, chance = folder_of(tmp_path, 0), random.Random(SEED)
    where = ("--rpm", str(RPM), "--cache", "cache", "--out", "run", *nodes.flags, "--workers", str(WORKERS))
    command = (*GRID, "--trials", str(times(30, 60)), *flags_of(slow_provider, 4 * CONCURRENCY), *where)
    process = start(folder, *command, **nodes.variables)
    killed: list[float] = []
    while process.poll() is None:
        # One at a time: where all have died, nothing can be used.
        if len(nodes.workers()) == WORKERS and slow_provider.calls():
            time.sleep(chance.uniform(5.0, 10.0))
            if process.poll() is None and killed_one(nodes, chance):
                killed.append(time.monotonic())
        time.sleep(0.05)
    done = finish(process)
    assert done.code == 0, done.err
    arrivals = slow_provider.arrivals()
    fullest = fullest_minute(arrivals)
    assert 0.95 * RPM <= fullest <= RPM
    # From the first death on, until calls run out.
    sent = arrivals[bisect_left(arrivals, killed[0]) : bisect_left(arrivals, arrivals[-1] - 2.0)]
    used = len(sent) / (sent[-1] - sent[0]) * 60.0 / RPM
    assert used >= 0.95 and len(killed) > 2, f"{used:.1%} after {len(killed)} deaths"
    seen = f"{len(killed)} workers killed one after the other: {used:.1%} of the quota used, {fullest} of {RPM} at most"
    record("22", len(killed), len(killed), seen, f"{SEED}")
