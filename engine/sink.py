"""The interface of what receives each outcome before anyone sees it: a journal, a database, a list."""

from __future__ import annotations

from contextvars import Context, copy_context
from typing import Protocol

from msgspec import Struct, field

from .call import Outcome
from .fault import LocalFault


class Sink(Protocol):
    """The place that an engine writes outcomes to, each before it returns it to the caller: a journal, a database, a
    list."""

    @property
    def fault(self) -> LocalFault | None:
        """Why the sink can take no more; None: it can. With a fault, sending stops and the run raises it."""
        ...

    def write(self, outcome: Outcome) -> None:
        """Takes an outcome."""
        ...

    def flush(self) -> None:
        """Makes everything taken safe against a kill."""
        ...


class SinkLine(Struct, eq=False):
    """An outcome on its way to a sink, which is called in the caller's `context`, whichever answer comes last. `sink`
    None: its caller has left, so that nothing is written."""

    sink: Sink | None
    outcome: Outcome
    context: Context = field(default_factory=copy_context)
