"""`--forks N`: tests are collected once, and N forks of this process share them, a file each at a time.

Owns the forks and what they are given; the order of the files is that of the collected items. Knows no test.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count, groupby
from multiprocessing.connection import Connection, wait
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest._io import TerminalWriter

# For the ends of fixtures, once a fork has run its last test or was interrupted.
END_S = 20.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, help="share the tests among so many forks of this process")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    if not session.config.option.forks or session.config.option.collectonly or session.testsfailed:
        return None
    forks = Forks(session)
    try:
        forks.run()
    finally:
        forks.end()
    return True


@dataclass
class Fork:
    process: Any
    connection: Connection
    # The places of its next items among those of the session, and of the one that it runs.
    waiting: deque[int]
    running: int | None = None


@dataclass
class Forks:
    """All forks, seen from the process that reports."""

    session: pytest.Session
    _files: deque[list[int]] = field(default_factory=deque)
    _at_work: dict[Connection, Fork] = field(default_factory=dict)
    _ended: list[Fork] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def run(self) -> None:
        places = range(len(self.session.items))
        self._files.extend(list(file) for _, file in groupby(places, lambda place: self.session.items[place].path))
        config = self.session.config
        # Forks report at the same time: a line a file would change at every test.
        config.pluginmanager.getplugin("terminalreporter").showfspath = False
        config._tmp_path_factory.getbasetemp()
        for _ in range(min(config.option.forks, len(self._files))):
            self._start(self._files.popleft())
        while self._at_work:
            # A process that a test has left behind may hold the connection of a fork that died: no end of file comes.
            for connection in wait(list(self._at_work), timeout=1) or list(self._at_work):
                self._hear(self._at_work[connection])

    def end(self) -> None:
        """Interrupt the forks that are still at work, and kill those which do not end."""
        for fork in self._at_work.values():
            if fork.process.is_alive():
                os.kill(fork.process.pid, signal.SIGINT)
        until = time.monotonic() + END_S
        for fork in (*self._at_work.values(), *self._ended):
            fork.process.join(max(0.0, until - time.monotonic()))
            if fork.process.is_alive():
                os.killpg(fork.process.pid, signal.SIGKILL)
            fork.process.join()

    def _start(self, places: list[int]) -> None:
        ours, theirs = multiprocessing.Pipe()
        arguments = self.session, theirs, places, next(self._numbers)
        process = multiprocessing.get_context("fork").Process(target=_work, args=arguments)
        process.start()
        theirs.close()
        self._at_work[ours] = Fork(process, ours, deque(places))

    def _hear(self, fork: Fork) -> None:
        has_died = not fork.process.is_alive()
        try:
            if fork.connection.poll():
                kind, value = fork.connection.recv()
                getattr(self, f"_{kind}")(fork, value)
            elif has_died:
                self._died(fork)
        except (EOFError, ConnectionError):
            self._died(fork)
        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)

    def _wants(self, fork: Fork, _: None) -> None:
        file = self._files.popleft() if self._files else []
        fork.waiting.extend(file)
        fork.connection.send(file)

    def _begins(self, fork: Fork, place: int) -> None:
        fork.waiting.remove(place)
        fork.running = place

    def _ran(self, fork: Fork, recorded: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> None:
        fork.running = None
        config = self.session.config
        reports, warnings = recorded
        for warning in warnings:
            config.hook.pytest_warning_recorded.call_historic(kwargs=warning)
        self._report([config.hook.pytest_report_from_serializable(config=config, data=data) for data in reports])

    def _report(self, reports: list[pytest.TestReport]) -> None:
        hook, first = self.session.config.hook, reports[0]
        hook.pytest_runtest_logstart(nodeid=first.nodeid, location=first.location)
        for report in reports:
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=first.nodeid, location=first.location)

    def _interrupted(self, fork: Fork, why: str) -> None:
        pytest.exit(why)

    def _finished(self, fork: Fork, _: None) -> None:
        self._ended.append(self._at_work.pop(fork.connection))

    def _died(self, fork: Fork) -> None:
        """Blame the test that ran, and give the rest of its file to a new fork."""
        del self._at_work[fork.connection]
        fork.process.join()
        if fork.running is None:
            raise RuntimeError(f"a fork died between two tests, with exit code {fork.process.exitcode}")
        item = self.session.items[fork.running]
        why = f"the process that ran this test died: exit code {fork.process.exitcode}"
        self._report([pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")])
        rest = list(fork.waiting) or (self._files.popleft() if self._files else [])
        if rest and not self.session.shouldfail:
            self._start(rest)


class Recorder:
    """The reports and the warnings of one test, in a fork."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._reports: list[dict[str, Any]] = []
        self._warnings: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self._config.hook
        self._reports.append(hook.pytest_report_to_serializable(config=self._config, report=report))

    def pytest_warning_recorded(self, warning_message: Any, when: str, nodeid: str, location: Any) -> None:
        recorded = {"warning_message": warning_message, "when": when, "nodeid": nodeid, "location": location}
        self._warnings.append(recorded)

    def take(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        taken = self._reports, self._warnings
        self._reports, self._warnings = [], []
        return taken


def _send(connection: Connection, kind: str, value: Any = None) -> None:
    connection.send((kind, value))


def _work(session: pytest.Session, connection: Connection, places: list[int], number: int) -> None:
    """The life of a fork."""
    # A terminal's ctrl-C reaches the process that reports, which hands it on.
    os.setpgid(0, 0)
    recorder = Recorder(session.config)
    # Where the process that reports is gone, nothing is left to do.
    with _apart(session.config, number), suppress(ConnectionError, EOFError):
        session.config.pluginmanager.register(recorder)
        recorder.take()  # what was warned before this fork
        try:
            _run(session, connection, places, recorder)
        except (KeyboardInterrupt, pytest.exit.Exception) as interruption:
            _send(connection, "interrupted", str(interruption) or "interrupted")
        else:
            _send(connection, "finished")
        finally:
            session._setupstate.teardown_exact(None)


def _run(session: pytest.Session, connection: Connection, places: list[int], recorder: Recorder) -> None:
    waiting = deque(places)
    while waiting and not session.shouldfail and not session.shouldstop:
        place = waiting.popleft()
        if not waiting:
            # Before the last test of a file, since fixtures end after it which the next one does not share.
            _send(connection, "wants")
            waiting.extend(connection.recv())
        _send(connection, "begins", place)
        following = session.items[waiting[0]] if waiting else None
        session.config.hook.pytest_runtest_protocol(item=session.items[place], nextitem=following)
        _send(connection, "ran", recorder.take())


@contextmanager
def _apart(config: pytest.Config, number: int) -> Generator[None]:
    """What a fork may not share: files that take its output, the folder of its tests, the terminal, lines covered."""
    plugins = config.pluginmanager
    capture = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    folders = config._tmp_path_factory
    folders._basetemp = folders.getbasetemp() / f"fork{number}"
    folders._basetemp.mkdir()
    # pytest-timeout writes there.
    plugins.unregister(name="terminalreporter")
    plugins.register(SimpleNamespace(_tw=TerminalWriter(sys.stderr)), "terminalreporter")
    yield
    if coverage := plugins.getplugin("_cov"):
        coverage.cov_controller.cov.stop()
        coverage.cov_controller.cov.save()
