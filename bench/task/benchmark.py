"""The benchmark that runs tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...format import command_text
from ..evaluation.door.benchmark import LoadPrompts, Order
from ..evaluation.door.kept_options import kept_options
from .options import TITLE, Options
from .task_records import TaskRecords

if TYPE_CHECKING:
    from ...engine.runs.run_folder import WrongSpecification
    from ...report.sections import PageContents
    from ..evaluation.door.expected import Expected
    from ..evaluation.door.prepared_run import ItemsOfPilot, PreparedRun


class TaskBenchmark(TaskRecords):
    """The benchmark that runs any task; the run's options or its manifest name the task."""

    name = "task"
    title = TITLE
    Options = Options

    def prepare(self, order: Order) -> PreparedRun:
        from .work import prepare

        return prepare(order)

    def explain_other_run(self, folder: Path, dataset: Mapping[str, Any], error: WrongSpecification) -> str:
        if not all(name.startswith("score.") for name in error.asked):
            return str(error)
        file = dataset.get("declared", {}).get("file", "FILE")
        return f"{error}, or score its answers anew without a call: {command_text('score', folder, '--task', file)}"

    def owns(self, fields: Mapping[str, Any]) -> bool:
        return {"item", "row", "score"} <= fields.keys()

    def has_answers(self, part: Mapping[str, Any]) -> bool:
        return any(entry["answers"] for entry in part["models"].values())

    def score_table(self, source: str, scores: Mapping[str, Any]) -> str:
        from .score_table import told

        return told(source, scores)

    def manner(self, source: Path, scores: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, str]:
        from .score_table import manner_of

        return manner_of(source)

    def report(self, runs: Sequence[Any], given: Mapping[str, Any], flags: Sequence[str]) -> PageContents:
        """Returns the general part on these runs, under the tasks' names."""
        from ..evaluation.page.part import general_part

        names = dict.fromkeys(str((run.manifest or {}).get("specification", {}).get("task", "task")) for run in runs)
        named = TaskBenchmark()
        named.title = ", ".join(names)  # type: ignore[misc]
        return general_part(named, runs, given, flags)

    def command_of(self, manifest: Mapping[str, Any]) -> str:
        return super().command_of(manifest) if kept_options(manifest, self.name).get("file") else ""

    def _words_of(self, kept: Mapping[str, Any]) -> list[str]:
        _, *options = super()._words_of({**kept, "file": None})
        return [Path(kept["file"]).name, *options]

    def forecast(self, prepared: PreparedRun, *, looks_into_cache: bool) -> Expected:
        from .forecast import forecast

        return forecast(prepared, looks_into_cache=looks_into_cache)

    def load_prompts(self, dataset: Path | None) -> LoadPrompts:
        from .load_prompts import load_prompts

        return load_prompts(dataset)

    def pilot_items(self, prepared: PreparedRun, size: int) -> ItemsOfPilot:
        from .forecast import pilot_items

        return pilot_items(prepared, size)

    def prove(self, folder: Path, manifest: dict[str, Any]) -> Any:
        from .proof import prove_folder

        return prove_folder(self, folder, manifest)


BENCHMARK = TaskBenchmark()
