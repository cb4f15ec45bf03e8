"""Reads Chameleon runs for a report: the traces of their records, the planned turns, and the failures.

Records of another program need no manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from ....configuration.errors import UsageError
from ....engine.runs.journal import read_lines
from ....engine.runs.run_folder import FAILURES, MANIFEST, RECORDS
from ....metrics.chameleon.readings import Readings
from ....metrics.chameleon.traces import Plan, Traces
from ...evaluation.door.kept_options import kept_options
from ...evaluation.page.items import RunItems
from ...evaluation.running.reads import reads_of
from ...evaluation.running.record_lines import record_lines
from ...evaluation.running.served import rows_in
from ..run_spec import planned_turns, readings_of_run
from ..score_table import read_traces
from ..shown_items import ConversationReader


class ConversationRun(Struct, frozen=True):
    """The run of one folder. `label` distinguishes it from the others; `asked` is empty without a manifest. `readings`
    are the run's own; without a manifest, the defaults. `items` are its lines for the table of conversations."""

    label: str
    records: Path
    traces: Traces
    items: RunItems
    asked: Plan = MappingProxyType({})
    manifest: Mapping[str, Any] | None = None
    readings: Readings = Readings()

    @property
    def specification(self) -> Mapping[str, Any]:
        """What decides the run's answers; empty without a manifest."""
        return {} if self.manifest is None else self.manifest["specification"]

    @property
    def is_sample(self) -> bool:
        """Whether the conversations were those that come with the package, as when no data set is named."""
        kept = kept_options(self.manifest, "chameleon")
        return "model" in kept and kept.get("dataset") is None

    @property
    def turns(self) -> int:
        """The number of turns in its records."""
        return sum(troubles.turns for troubles in self.traces.troubles.values())


def read(path: Path, manifest: Mapping[str, Any] | None, read_as: str | None = None) -> ConversationRun:
    """Reads the run of a folder. Raises UsageError if it has neither a manifest nor records."""
    records = path / RECORDS
    try:
        rows = rows_in(path, manifest)
        manifest = rows.manifest(manifest)
        planned = {} if manifest is None else planned_turns(manifest["specification"])
        readings = Readings() if manifest is None else readings_of_run(manifest)
        lines = record_lines(records) if records.exists() else iter(())
        reads = reads_of("chameleon", manifest, read_as)
        items = RunItems(path, ConversationReader(), rows, planned)
        journals = {
            str(records): items.reading(lines, str(records)),
            FAILURES: items.reading(read_lines(path / FAILURES), FAILURES, is_failure=True),
        }
        traces = read_traces(journals, reads)
    except OSError as error:
        raise UsageError(f"{error.filename or path}: expected a readable file, got: {error.strerror}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: its {MANIFEST} is no Chameleon run's ({error!r})") from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    run = ConversationRun(path.name, records, traces, items, planned, manifest, readings)
    if traces.repeated:
        raise UsageError(f"{records}: {traces.repeated[0]} stands there twice: keep one")
    if manifest is None and not run.turns:
        raise UsageError(f"{records}: expected records, got none: nothing to report")
    return run
