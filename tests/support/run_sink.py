"""A sink that writes outcomes into a run's folder, for tests of the engine alone."""

from __future__ import annotations

from collections.abc import Callable

from millstream.engine.call import Outcome
from millstream.engine.fault import LocalFault
from millstream.engine.runs.run_folder import RunFolder


class RunSink:
    """Writes replies and refusals to the records, final failures to the other journal."""

    def __init__(self, folder: RunFolder, row: Callable[[Outcome], bytes]) -> None:
        self._folder = folder
        self._row = row

    @property
    def fault(self) -> LocalFault | None:
        return self._folder.fault

    def write(self, outcome: Outcome) -> None:
        journal = self._folder.records if outcome.failure is None else self._folder.failures
        journal.append(self._row(outcome))

    def flush(self) -> None:
        self._folder.records.flush()
        self._folder.failures.flush()
