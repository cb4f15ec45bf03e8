"""What a test needs besides this process, read from its code: another process, node, a browser.

Owns the walk from a test over its fixtures and helpers, and the guard that fails an unmarked test which starts a
process in `make quick`. Processes that the program starts are seen by the guard alone: such a test is marked by hand.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import unwrap
from multiprocessing import util
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any

import pytest

TESTS = str(Path(__file__).parent.parent)
STARTERS = (subprocess, multiprocessing)
# Fixtures whose helpers are imported only when they are used.
BY_FIXTURE: Mapping[str, str] = MappingProxyType(
    {"running_provider": "process", "running_outside": "process", "browser": "browser"}
)
EVENTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "pty.spawn"})


GUARD: pytest.StashKey[ProcessGuard] = pytest.StashKey()


class Needs:
    """The markers of every function that tests are made of, each read once."""

    def __init__(self) -> None:
        self._found: dict[FunctionType, frozenset[str]] = {}
        self._of_tests: dict[tuple[ModuleType, Callable[..., object]], frozenset[str]] = {}

    def of_test(self, item: pytest.Function) -> frozenset[str]:
        """The markers of a test: those of its function and of all its fixtures, which its cases share."""
        test = item.module, item.function
        if test not in self._of_tests:
            fixtures = item._fixtureinfo.name2fixturedefs
            functions = [item.function, *(each.func for definitions in fixtures.values() for each in definitions)]
            by_fixture = frozenset(BY_FIXTURE[name] for name in fixtures if name in BY_FIXTURE)
            self._of_tests[test] = by_fixture.union(*map(self.of, functions))
        return self._of_tests[test]

    def of(self, function: Any) -> frozenset[str]:
        """The markers of one function of the tests, and of all that it names there; none for anything else."""
        function = unwrap(getattr(function, "__func__", function))
        # A property test has its own function inside.
        function = unwrap(getattr(getattr(function, "hypothesis", None), "inner_test", function))
        if not isinstance(function, FunctionType) or not function.__code__.co_filename.startswith(TESTS):
            return frozenset()
        if function not in self._found:
            self._found[function] = frozenset()  # where it calls itself
            self._found[function] = frozenset(self._read(function))
        return self._found[function]

    def _read(self, function: FunctionType) -> Iterator[str]:
        for code in _codes(function.__code__):
            if "node" in code.co_consts:
                yield "node"
            named: list[Any] = [function.__globals__.get(name) for name in code.co_names]
            helpers = [module for module in named if isinstance(module, ModuleType) and _is_ours(module)]
            named += [getattr(module, name, None) for module in helpers for name in code.co_names]
            for thing in named:
                if any(thing is starter for starter in STARTERS):
                    yield "process"
                elif str(getattr(thing, "__module__", "")).startswith("playwright."):
                    yield "browser"
                elif isinstance(thing, type):
                    for method in list(vars(thing).values()):
                        yield from self.of(method)
                elif callable(thing):
                    yield from self.of(thing)


def _is_ours(module: ModuleType) -> bool:
    return str(getattr(module, "__file__", "")).startswith(TESTS)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of every function inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


class ProcessGuard:
    """Raises where a process is started while `forbidden()` lasts, and again at its end if somebody caught that."""

    def __init__(self) -> None:
        self._is_forbidden = False
        self._started: list[str] = []
        sys.addaudithook(self._hear)
        # Python tells of no process that multiprocessing starts.
        util.spawnv_passfds = _told(util.spawnv_passfds)

    @contextmanager
    def forbidden(self) -> Iterator[None]:
        self._is_forbidden = True
        try:
            yield
        finally:
            self._is_forbidden = False
            started, self._started = self._started, []
            if started:
                pytest.fail(started[0], pytrace=False)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in EVENTS and self._is_forbidden:
            what = f"a process was started ({event}: {str(arguments)[:120]}) by a test without the marker `process`"
            self._started.append(what)
            raise RuntimeError(what)


def _told(spawn: Callable[..., int]) -> Callable[..., int]:
    def spawn_and_tell(path: bytes, args: list[bytes], passfds: list[int]) -> int:
        sys.audit("subprocess.Popen", path, args, None, None)
        return spawn(path, args, passfds)

    return spawn_and_tell
