"""Scores and shows the records of any task, without executing the task's own program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..evaluation.door.benchmark import ItemBenchmark
from .options import Readings
from .records import Record as TaskRecord
from .score_document import COLUMNS, NO_MANIFEST, score_cells, scores_in

if TYPE_CHECKING:
    from ..evaluation.door.judging import Judging
    from ..evaluation.door.label import Label, Labeller


class TaskRecords(ItemBenchmark[TaskRecord]):
    """The part of a task's benchmark that needs only records: scores, labels and tables."""

    unit = "question"
    columns = COLUMNS
    kept_instead = "the run's own scores; these are only shown"
    Readings = Readings
    # Rebuilding a call would execute the task's program.
    rebuilds_calls = False
    Record = TaskRecord

    def label(self, record: Any) -> Label | None:
        from .review import label_of

        return label_of(record)

    def labeller(self, manifest: Mapping[str, Any] | None, *, is_shown: bool) -> Labeller:
        from .review import check_is_share

        check_is_share(manifest)
        return super().labeller(manifest, is_shown=is_shown)

    def judging(self, manifest: Mapping[str, Any]) -> Judging:
        from .judging import GradeJudging

        return GradeJudging(manifest, self.readings_of(manifest))

    def score_records(
        self, records: Iterable[TaskRecord], readings: Any, specification: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        from .score_table import by_scorers_of

        specification = specification or NO_MANIFEST
        if readings.task is not None:
            records, specification = by_scorers_of(readings.task, records, specification)
        return scores_in(records, specification, readings)

    def scores_name(self, specification: Mapping[str, Any] | None) -> str:
        return str((specification or NO_MANIFEST)["task"])

    def cells(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        return score_cells(entry)
