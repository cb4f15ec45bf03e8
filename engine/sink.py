"""The interface of what receives each outcome before anyone sees it: a journal, a database, a list."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

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
    """An outcome on its way to a sink. `sink` None: its caller has left, so that nothing is written."""

    sink: Sink | None
    outcome: Outcome
