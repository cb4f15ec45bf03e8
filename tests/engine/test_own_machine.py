"""A fault of our own machine is no end of a call: it waits where that may help, else everything stops, and no record or
cache says that the outside failed."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from scripted import ListSink, ScriptedProvider, engine_over, prompts
from virtual_time import run_virtually

from millstream.engine.call import WEB, Call, Outcome
from millstream.engine.endpoint import Cleared, Fault, Request, Response
from millstream.engine.fault import LocalFault
from millstream.engine.missing import missing_module, missing_text
from millstream.engine.run import run_calls

M = "script/m"
URL = "http://a.example/0"


class Broken(ScriptedProvider):
    """Raises, the first `times` that something is sent."""

    def __init__(self, error: Callable[[], Exception], times: float = float("inf")) -> None:
        super().__init__()
        self.error = error
        self.times = times

    async def send(self, request: Request, cleared: Cleared) -> Response:
        if self.times > 0:
            self.times -= 1
            raise self.error()
        return await super().send(request, cleared)


def in_place_of_another() -> ImportError:
    try:
        raise ModuleNotFoundError("No module named 'inner_part'", name="inner_part.deep")
    except ImportError:
        try:
            raise ImportError("it is a separate project now") from None
        except ImportError as error:
            return error


LASTING: dict[str, tuple[Callable[[], Exception], str]] = {
    "a library is missing": (
        lambda: ModuleNotFoundError("x", name="some_library.part"),
        "some_library is missing",
    ),
    "another one says so": (in_place_of_another, "inner_part is missing: pip install inner_part"),
    "a library is broken": (lambda: ImportError("libx.so: no such file"), "libx.so: no such file: install Millstream"),
    "no memory": (MemoryError, "has no memory left"),
    "a folder": (lambda: LocalFault("the folder is gone"), "the folder is gone"),
}


CALLS = {"model": Call(M, "x"), "search": Call("search/brave", "x"), "page": Call(WEB, URL)}


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("name", LASTING)
def test_what_somebody_has_to_mend_ends_the_run_and_fails_no_call(tmp_path: Path, kind: str, name: str) -> None:
    call, (error, told) = CALLS[kind], LASTING[name]
    sink, provider = ListSink(), Broken(error, times=1)

    async def main() -> Outcome:
        async with engine_over({call.model: provider}, tmp_path) as bench:
            with pytest.raises(LocalFault, match=told):
                [_ async for _ in run_calls(bench.scheduler, [call], sink)]
            assert bench.scheduler.maybe_billed_pending == 0
        # Once it is mended, the same folder knows of no failure.
        async with engine_over({call.model: provider}, tmp_path, mode="replay") as bench:
            return await bench.scheduler.ask(call)

    outcome = run_virtually(main())
    assert sink.taken == [] and (outcome.status, outcome.cached) == ("ok", False)


PASSING: dict[str, Callable[[], Exception]] = {
    "file descriptors": lambda: OSError(errno.EMFILE, "Too many open files"),
    "local ports": lambda: OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address"),
    "memory": lambda: socket.gaierror(socket.EAI_MEMORY, "Memory allocation failure"),
    "threads": lambda: RuntimeError("can't start new thread"),
}


@pytest.mark.parametrize("name", PASSING)
def test_what_may_come_back_is_waited_for_and_is_no_attempt(tmp_path: Path, name: str) -> None:
    async def main() -> list[Outcome]:
        async with engine_over({M: Broken(PASSING[name], times=20)}, tmp_path) as bench:
            return [outcome async for outcome in run_calls(bench.scheduler, prompts(10))]

    found = run_virtually(main())
    assert [(outcome.status, outcome.maybe_billed) for outcome in found] == [("ok", 0)] * 10


def test_a_host_is_not_given_up_for_what_our_own_machine_lacks(tmp_path: Path) -> None:
    """A minute of it ends the run instead, and no failure of the page is kept."""
    lacking = Fault("connect", "this machine resolves no names", "wait", quota="refund", retry_after_s=1.0)
    provider = ScriptedProvider(lambda prompt, at: lacking if at < 200 else None)

    async def main() -> Outcome:
        async with engine_over({WEB: provider}, tmp_path) as bench:
            with pytest.raises(LocalFault, match="this machine resolves no names: make room"):
                [_ async for _ in run_calls(bench.scheduler, [Call(WEB, URL)])]
        provider.script = None
        async with engine_over({WEB: provider}, tmp_path, mode="replay") as bench:
            return await bench.scheduler.ask(Call(WEB, URL))

    outcome = run_virtually(main())
    assert (outcome.status, outcome.cached) == ("ok", False)


def test_what_is_missing_is_told_in_one_line() -> None:
    assert missing_module(ValueError("x")) == ""
    told = missing_text(ImportError("two\nlines"))
    assert told == "two lines: install Millstream anew"
