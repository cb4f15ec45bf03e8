"""The folder of a load test: each call a line of `calls.jsonl` as it ends, and all that was measured in `load.json`.

Owns the files and what a folder that can't be used means. A thread writes, so that a slow disk is no lag of the loop
that measures. Knows no engine, and not what the figures mean.
"""

from __future__ import annotations

import errno
import threading
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec import Struct

from ...bench.load.timing import Timed
from ...engine.budget_file import BUDGET, amounts_in
from ...engine.fault import LocalFault
from ...engine.journal import Journal, Reserve
from ...engine.run_folder import holding, write_whole
from ...metrics.load.file import Load
from ..refusal import UsageError

LOAD, CALLS = "load.json", "calls.jsonl"
WRITE_EVERY_S = 0.1
_FULL = (errno.ENOSPC, errno.EDQUOT)


class CallLine(Struct, frozen=True):
    """One call of `calls.jsonl`: its times in seconds since the start of the test, null where that never happened.
    `step`: of the rate, or of a search, from 0. `measured`: false in warm-up and cool-down."""

    model: str
    step: int
    measured: bool
    due: float
    begun: float
    sent: float | None
    first: float | None
    last: float | None
    ended: float
    status: str
    attempts: int
    input_tokens: int
    output_tokens: int


def refuse_used(folder: Path) -> None:
    """A load test is never added to."""
    for name in (LOAD, CALLS):
        if (folder / name).exists():
            raise UsageError(
                f"--out: {folder} holds a load test already ({name}{_money_of(folder)}): name another folder"
            )


def _money_of(folder: Path) -> str:
    """What a test that was killed may have spent."""
    if (folder / LOAD).exists() or (found := amounts_in(folder / BUDGET)) is None:
        return ""
    return f"; it was killed, ${found.spent:,.4f} was spent, up to ${found.granted:,.4f} counting what was in flight"


class LoadFolder:
    """A folder open for one test. Raises LocalFault where it can't be written, UsageError where it was used before.
    `on_fault` is called once, by another thread, when something can't be written any more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fault: LocalFault | None = None
        self.on_fault: Callable[[LocalFault], None] = lambda fault: None
        self._lines: deque[bytes] = deque()
        self._is_closing = threading.Event()
        self._is_concluded = False
        self._encode = msgspec.json.Encoder().encode
        with ExitStack() as opened:
            opened.enter_context(holding(folder))
            refuse_used(folder)
            try:
                reserve = Reserve(folder / ".reserve", 1 << 20)
                opened.callback(reserve.release)
                self._journal = Journal(folder / CALLS, reserve)
            except OSError as error:
                raise LocalFault(f"{folder} can't be written ({error.strerror}): choose another --out") from error
            self._reserve = reserve
            self._opened = opened.pop_all()
        self._writer = threading.Thread(target=self._write_often, name=f"write {CALLS}", daemon=True)
        self._writer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._opened:
            self._end_calls()
            if not self._is_concluded:
                self._forget_no_call()

    def _forget_no_call(self) -> None:
        """Nothing was sent, so that no test stands here: once its want is mended, the same command goes."""
        path = self.folder / CALLS
        with suppress(OSError):
            if not path.stat().st_size:
                path.unlink()

    def note_call(self, model: str, timed: Timed, step: int, begins_s: float, *, measured: bool) -> None:
        """One that has ended, of a part of the test that began so late."""

        def at(seconds: float | None) -> float | None:
            return None if seconds is None else round(begins_s + seconds, 6)

        line = CallLine(
            model,
            step,
            measured,
            round(begins_s + timed.due, 6),
            round(begins_s + timed.begun, 6),
            at(timed.sent),
            at(timed.first),
            at(timed.last),
            round(begins_s + timed.ended, 6),
            timed.status,
            timed.attempts,
            timed.input_tokens,
            timed.output_tokens,
        )
        self._lines.append(self._encode(line))

    def conclude(self, load: Load) -> None:
        """The calls to their last line, then the figures. What can't be written is told in `fault`."""
        self._is_concluded = True
        self._end_calls()
        self._reserve.release()
        path = self.folder / LOAD
        try:
            write_whole(path, msgspec.json.format(self._encode(load), indent=1) + b"\n")
        except OSError as error:
            with suppress(OSError):
                path.with_name(f"{LOAD}.new").unlink(missing_ok=True)
            self._tell(self._unwritable(path, error))

    def _end_calls(self) -> None:
        if self._is_closing.is_set():
            return
        self._is_closing.set()
        self._writer.join()
        try:
            self._journal.close()
        except LocalFault as fault:
            self._tell(self._unwritable(self._journal.path, fault.__cause__))

    def _write_often(self) -> None:
        while not self._is_closing.wait(WRITE_EVERY_S):
            self._write()
        self._write()

    def _write(self) -> None:
        """What is taken here is taken by no one else; what comes meanwhile is the next round's."""
        for _ in range(len(self._lines)):
            self._journal.append(self._lines.popleft())
        try:
            self._journal.flush()
        except LocalFault as fault:
            self._tell(self._unwritable(self._journal.path, fault.__cause__))
        if self._journal.fault is not None:
            self._tell(self._unwritable(self._journal.path, self._journal.fault.__cause__))

    def _unwritable(self, path: Path, error: BaseException | None) -> LocalFault:
        # The journal tells of the disk that its reserve has saved a line from without an error of the system's.
        is_full = not isinstance(error, OSError) or error.errno in _FULL
        why = "the disk is full" if is_full else str(getattr(error, "strerror", error))
        return LocalFault(
            f"{path} can't be written ({why}), so the load test was ended: what was measured until then stands; make "
            f"room or choose another --out, then measure again"
        )

    def _tell(self, fault: LocalFault) -> None:
        if self.fault is None:
            self.fault = fault
            self.on_fault(fault)
