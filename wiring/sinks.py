"""Sinks of other packages, which receive outcomes besides a run's own folder.

An exception in such a sink becomes its fault, which ends the run as a full disk does; what was written before stands.
"""

from __future__ import annotations

from collections.abc import Callable

from ..engine.call import Outcome
from ..engine.fault import LocalFault
from ..engine.page_urls import with_shown_addresses
from ..engine.sink import Sink
from .plugins import SINKS, Others, in_one_line


def open_sink(told: str) -> OpenedSink:
    """Opens and returns the sink that `NAME` or `NAME:ARGUMENT` names: one that an installed package offers as an entry
    point of the group `millstream.sinks`. Give it to `Engine.run` and `close` it at the end, or use it as a context
    manager."""
    return opened_sink(told, Others())


def opened_sink(word: str, others: Others) -> OpenedSink:
    name, _, argument = word.partition(":")
    made = others.sink(name)
    whose = f"sink {name} of {others.package_of(SINKS, name)}"
    try:
        sink = made(argument)
        lacking = [each for each in ("write", "flush") if not callable(getattr(sink, each, None))]
        if not hasattr(sink, "fault"):
            lacking.append("fault")
    except (Exception, SystemExit) as error:
        safe_argument = with_shown_addresses(argument)
        raise LocalFault(
            f"{whose} can't be opened with {safe_argument!r} ({in_one_line(error)}): correct what it names"
        ) from error
    if lacking:
        raise LocalFault(f"{whose} gave a {type(sink).__name__}, which has no {', '.join(lacking)}: it is no Sink")
    return OpenedSink(whose, sink)


class OpenedSink:
    """Another package's open sink; `whose` names it in messages. Its errors are kept in `fault`; only leaving it as a
    context manager raises them."""

    def __init__(self, whose: str, sink: Sink) -> None:
        self._whose = whose
        self._sink = sink
        self._is_open = True
        self.fault: LocalFault | None = None

    def __repr__(self) -> str:
        return f"<{self._whose} [{'closed' if not self._is_open else self.fault or 'open'}]>"

    def __enter__(self) -> OpenedSink:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()
        if self.fault is not None and kind is None:
            raise self.fault

    def write(self, outcome: Outcome) -> None:
        """Gives an outcome to the sink, unless it has failed."""
        # After a failure nothing more is written, since it would follow a gap.
        if self.fault is None:
            self._hold(lambda: self._sink.write(outcome))

    def flush(self) -> None:
        """Makes everything written safe against a kill."""
        if self.fault is None:
            self._hold(self._sink.flush)

    def close(self) -> None:
        """Flushes the sink and calls its own `close`, if it has one. A second time does nothing."""
        if self._is_open:
            self.flush()
            self._is_open = False
            end: Callable[[], None] | None = getattr(self._sink, "close", None)
            if end is not None:
                self._hold(end)

    def _hold(self, do: Callable[[], None]) -> None:
        try:
            do()
            fault = self._sink.fault
        except (Exception, SystemExit) as error:  # noqa: BLE001  (others' code, which may raise whatever it likes)
            fault = LocalFault(in_one_line(error))
        if fault is not None and self.fault is None:
            self.fault = LocalFault(
                f"{self._whose}: {fault}; the run's own folder and the cache are whole: fix it, then resume, or run "
                f"into another folder, where it is given everything, out of the cache"
            )


class SinkPair:
    """Two sinks as one: the second receives what the first has saved."""

    def __init__(self, first: Sink, second: Sink) -> None:
        self._first = first
        self._second = second
        self._taken: list[Outcome] = []

    @property
    def fault(self) -> LocalFault | None:
        return self._first.fault or self._second.fault

    def write(self, outcome: Outcome) -> None:
        self._first.write(outcome)
        self._taken.append(outcome)

    def flush(self) -> None:
        self._first.flush()
        if self._first.fault is not None:
            return
        taken, self._taken = self._taken, []
        for outcome in taken:
            self._second.write(outcome)
        self._second.flush()
