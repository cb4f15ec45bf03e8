"""What tests of every room share: the files as git lists them, the command line in this process, one simulated
provider, one simulated outside, a browser; and a heap that is searched once."""

from __future__ import annotations

import gc
import os
import platform
import re
import subprocess
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from alone import Room, is_alone
from bundled import take_kept_script
from durations import is_slow, seconds_of_modules, write_durations
from hypothesis import HealthCheck, settings
from left_out import imports_an_sdk, is_left_out
from needs import GUARD, Needs, ProcessGuard
from prepared import freeze_heap
from rewriting import rewritten

if TYPE_CHECKING:
    from command_line import CommandLine, Provider
    from playwright.sync_api import Browser
    from simulated_outside import Outside

pytest_plugins = ("forked",)

MARKER = "needs_benchmark"
TEST_FILE = re.compile(r"tests/(.*/)?(test_[^/]*|conftest)\.py")
# Read before any test, since a test needs a marker to start a process.
TREE: pytest.StashKey[list[str]] = pytest.StashKey()
ROOM: pytest.StashKey[Room] = pytest.StashKey()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    # Thousands of tests and all that they import come to stay: while they come there is nothing to find.
    gc.disable()
    root = Path(__file__).parent.parent
    files = [root / path for path in session.config.stash[TREE] if TEST_FILE.fullmatch(path)]
    with rewritten(session.config, files if session.config.option.forks else ()):
        return (yield)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """True for a file that need not be imported, since -m leaves out all its tests."""
    is_ours = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if is_ours and is_left_out(collection_path, config.option.markexpr) else None


def pytest_collection_finish() -> None:
    take_kept_script()
    # Official clients ask for the processor's name. Python starts a process to find it, and keeps it: here for all
    # forks.
    platform.processor()
    # Half a gigabyte that stays is no part of any later search.
    freeze_heap()
    gc.enable()


@pytest.hookimpl(tryfirst=True)  # before -m looks at the markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give every test the markers of what it needs, and leave out those whose benchmark this tree does not have."""
    _mark(items)
    _leave_out_benchmarks(config, items)
    if config.option.forks:
        # The long modules first, so that all forks end at the same time. Tests that want the machine for themselves
        # come last, apart from the rest of their modules: before, every fork would have to wait for all others.
        seconds = seconds_of_modules(item.nodeid for item in items)
        items.sort(key=lambda item: (is_alone(item), -seconds[item.nodeid.partition("::")[0]]))


def _mark(items: list[pytest.Item]) -> None:
    needs = Needs()
    for item in items:
        if isinstance(item, pytest.Function):
            for marker in needs.of_test(item):
                item.add_marker(marker)
        if is_slow(item.nodeid):
            item.add_marker("slow")
        if imports_an_sdk(item.path):
            item.add_marker("sdk")


def _leave_out_benchmarks(config: pytest.Config, items: list[pytest.Item]) -> None:
    """See .ci/without.py."""
    from millstream.bench.evaluation.door.declarations import BUILT_IN

    needing = [item for item in items if any(set(mark.args) - set(BUILT_IN) for mark in item.iter_markers(MARKER))]
    if needing:
        left_out = set(needing)
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=needing)


def pytest_configure(config: pytest.Config) -> None:
    # Some libraries look at their end for what nobody has freed. Last of all, so that pytest's own two searches of the
    # heap skip what came with the collection.
    config.add_cleanup(gc.unfreeze)
    config.stash[GUARD] = ProcessGuard()
    config.stash[ROOM] = Room()
    # A busy machine draws slowly; that is no fault of what is tested.
    settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("busy")
    config.stash[TREE] = _listed(Path(__file__).parent.parent)


def _listed(root: Path) -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return sorted({path for path in listed.split("\0") if path and (root / path).is_file()})


def _guarded(item: pytest.Item) -> AbstractContextManager[None]:
    """Where tests that start processes are left out, as by `make quick`, no other may start one."""
    is_left_out = "not process" in item.config.option.markexpr
    return item.config.stash[GUARD].forbidden() if is_left_out else nullcontext()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    with _guarded(item):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    with _guarded(item):
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, bool, bool]:
    # Outside of the time-out: waiting for other forks is no part of a test.
    with item.config.stash[ROOM].entered(item, nextitem):
        return (yield)


def pytest_sessionstart(session: pytest.Session) -> None:
    _note_exit_status(session.config, None)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    _note_exit_status(session.config, int(exitstatus))


def _note_exit_status(config: pytest.Config, status: int | None) -> None:
    """See .ci/again.py. None: the run has not come to its end."""
    if (kept := getattr(config, "cache", None)) is not None:
        kept.set("millstream/exit_status", status)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if os.environ.get("MILLSTREAM_DURATIONS"):
        write_durations(terminalreporter.stats)


@pytest.fixture(scope="session")
def tree(pytestconfig: pytest.Config) -> list[str]:
    """Every file of the repository that git does not ignore, committed or not yet."""
    return pytestconfig.stash[TREE]


@pytest.fixture(scope="session")
def running_provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    from command_line import simulated_provider

    with simulated_provider(tmp_path_factory.mktemp("provider")) as provider:
        yield provider


@pytest.fixture
def provider(running_provider: Provider) -> Provider:
    running_provider.reset()
    return running_provider


@pytest.fixture(scope="session")
def running_outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    from simulated_outside import simulated_outside

    with simulated_outside(tmp_path_factory.mktemp("outside")) as outside:
        yield outside


@pytest.fixture
def outside(running_outside: Outside) -> Outside:
    """Models, a search engine and pages."""
    running_outside.reset()
    return running_outside


@pytest.fixture
def cli(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """One command in this process, in a folder and with a home of its own."""
    from command_line import Done

    from millstream.interfaces.cli.command import main

    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "SEARXNG_BASE_URL", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def run(*arguments: str) -> Done:
        capfd.readouterr()
        code = main(list(arguments))
        said = capfd.readouterr()
        return Done(code, said.out, said.err)

    return run


# The module's own end closes it: while it is open, nothing else in this process can run a loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from browser import headless

    with headless() as started:
        yield started


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """The folder for pictures that people look at; nothing compares them."""
    folder = Path(__file__).parent / "browser/screenshots"
    folder.mkdir(exist_ok=True)
    return folder
