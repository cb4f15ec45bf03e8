"""The folder of a load test: `calls.jsonl` with a line for each ended call, and `load.json` with all figures.

Owns the files and the errors of an unusable folder. A thread writes, so that a slow disk does not delay the loop that
measures. Knows no engine and does not interpret figures.
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

from ...configuration.errors import UsageError
from ...engine.attempts.budget_file import BUDGET, amounts_in
from ...engine.fault import LocalFault
from ...engine.folder_file import write_whole
from ...engine.runs.journal import Journal
from ...engine.runs.run_folder import holding
from ...engine.spare_room import SpareRoom
from ...metrics.load.load_json import LoadFigures
from .timing import CallTimes

LOAD, CALLS = "load.json", "calls.jsonl"
WRITE_EVERY_S = 0.1
_FULL = (errno.ENOSPC, errno.EDQUOT)
# The fields of a call's line, beside its model, its step and whether it was measured: times in seconds since the start
# of the test, null for events that did not happen, then counts.
_TIMES = ("due", "begun", "sent", "first", "last", "ended")
_COUNTS = ("status", "attempts", "input_tokens", "output_tokens")


def check_unused(folder: Path) -> None:
    """Raises UsageError if the folder already holds a load test, since no test is added to another."""
    for name in (LOAD, CALLS):
        if (folder / name).exists():
            raise UsageError(
                f"--out: {folder} holds a load test already ({name}{_money_of(folder)}): name another folder"
            )


def _money_of(folder: Path) -> str:
    """Returns, as words for an error, what a killed test in this folder may have spent; empty if unknown."""
    if (folder / LOAD).exists() or (money := amounts_in(folder / BUDGET)) is None:
        return ""
    return f"; it was killed, ${money.spent:,.4f} was spent, up to ${money.granted:,.4f} counting what was in flight"


class LoadFolder:
    """The folder of one test, locked while it is open. Raises LocalFault if it can't be written and UsageError if it
    was used before. `on_fault` is called once, in another thread, when writing fails."""

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
            check_unused(folder)
            try:
                self._spare = SpareRoom(folder, 1 << 20)
                opened.callback(self._spare.give_back)
                self._journal = Journal(folder / CALLS, self._spare)
            except OSError as error:
                raise LocalFault(f"{folder} can't be written ({error.strerror}): choose another --out") from error
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
        """Removes an empty `calls.jsonl`, so that the same command works once its error is corrected."""
        path = self.folder / CALLS
        with suppress(OSError):
            if not path.stat().st_size:
                path.unlink()

    def note_call(self, model: str, timed: CallTimes, step: int, *, measured: bool) -> None:
        """Queues the line of an ended call."""
        line: dict[str, object] = {"model": model, "step": step, "measured": measured}
        for name in _TIMES:
            seconds = getattr(timed, name)
            line[name] = None if seconds is None else round(seconds, 6)
        for name in _COUNTS:
            line[name] = getattr(timed, name)
        self._lines.append(self._encode(line))

    def conclude(self, load: LoadFigures) -> None:
        """Writes the remaining calls, then the figures. A failure to write is kept in `fault`."""
        self._is_concluded = True
        self._end_calls()
        self._spare.give_back()
        path = self.folder / LOAD
        try:
            write_whole(path, msgspec.json.format(self._encode(load), indent=1) + b"\n")
        except OSError as error:
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
        """Writes the lines queued so far; those queued meanwhile wait for the next round."""
        for _ in range(len(self._lines)):
            self._journal.append(self._lines.popleft())
        try:
            self._journal.flush()
        except LocalFault as fault:
            self._tell(self._unwritable(self._journal.path, fault.__cause__))
        if self._journal.fault is not None:
            self._tell(self._unwritable(self._journal.path, self._journal.fault.__cause__))

    def _unwritable(self, path: Path, error: BaseException | None) -> LocalFault:
        # A full disk that the journal survived by its reserve is reported without a system error.
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
