"""Where outcomes go before anyone sees them: what the engine asks of a journal, a database, a list."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from .call import Outcome
from .fault import LocalFault


class Sink(Protocol):
    """`write` takes an outcome, `flush` makes everything taken safe against a kill. A sink that can take
    no more says so in `fault`: sending stops and the run ends with it."""

    @property
    def fault(self) -> LocalFault | None: ...

    def write(self, outcome: Outcome) -> None: ...

    def flush(self) -> None: ...


class Line(NamedTuple):
    """An outcome on its way to a sink."""

    sink: Sink
    outcome: Outcome
