"""MillStone's implementation of the benchmark protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...configuration.errors import UsageError
from ..evaluation.benchmark import Benchmark, LoadPrompts, Order
from .options import DATA, PROMPTS, TITLE, Options, Readings
from .records import Record

if TYPE_CHECKING:
    from ...engine.runs.run_folder import WrongSpecification
    from ...report.sections import PageContents
    from ..evaluation.forecast import Expected
    from ..evaluation.labelling.label import Labeller
    from ..evaluation.preparation import ItemsOfPilot, PreparedRun
    from ..evaluation.stored_calls import RunLine, StoredCall
    from .published_counts import CountsTable
    from .report.folders import AnswerFolder


class MillStone(Benchmark):
    name = "millstone"
    title = TITLE
    Options = Options
    Readings = Readings
    Record = Record
    prompts = PROMPTS
    data = DATA
    categories = ("issue", "config", "orientation", "letter", "stance")
    unit_name = "issue"
    reads_counts = True

    def prepare(self, order: Order) -> PreparedRun:
        from .work import prepare

        return prepare(order)

    def explain_other_run(self, folder: Path, dataset: Mapping[str, Any], error: WrongSpecification) -> str:
        from .orientation_labels import other_labels

        return other_labels(folder, dataset, error.asked) or str(error)

    def owns(self, fields: Mapping[str, Any]) -> bool:
        return "issue" in fields

    def score(self, folder: Path, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        from .score_table import score_folder

        return score_folder(folder, given)

    def score_table(self, source: str, scores: Mapping[str, Any]) -> str:
        from .score_table import score_text

        return score_text(source, scores)

    def check_counts_readings(self, given: Mapping[str, Any]) -> None:
        if given.get("fix_orientation"):
            raise UsageError(
                "--fix-orientation: expected records, which tell their letters, got --counts, which have none"
            )
        if given.get("stance"):
            raise UsageError("--stance: expected records, whose texts can be read anew, got --counts, which have none")

    def score_counts(self, path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
        from .score_table import score_counts

        return score_counts(path, Readings(**given))

    def manner(self, source: Path, scores: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, str]:
        from .manner import manner_of_source

        return manner_of_source(source, scores, is_recorded="stance" not in given)

    def forecast(self, prepared: PreparedRun, *, looks_into_cache: bool) -> Expected:
        from .forecast import forecast

        return forecast(prepared, looks_into_cache=looks_into_cache)

    def pilot_items(self, prepared: PreparedRun, size: int) -> ItemsOfPilot:
        from .forecast import pilot_items

        return pilot_items(prepared, size)

    def read_run(self, path: Path, manifest: Mapping[str, Any] | None, given: Mapping[str, Any]) -> AnswerFolder:
        from .report.folders import read

        return read(path, manifest, fix_orientation=bool(given.get("fix_orientation")), read_as=given.get("read"))

    def read_counts(self, path: Path) -> CountsTable:
        from .published_counts import read_counts

        return read_counts(path)

    def run_remarks(self, run: AnswerFolder) -> Sequence[str]:
        from .report.folders import label_lines

        return label_lines(run)

    def report(
        self, runs: Sequence[AnswerFolder | CountsTable], given: Mapping[str, Any], flags: Sequence[str]
    ) -> PageContents:
        from .published_counts import CountsTable
        from .report.part import page_contents

        folders = [run for run in runs if not isinstance(run, CountsTable)]
        tables = [run for run in runs if isinstance(run, CountsTable)]
        return page_contents(folders, Readings(**given), flags, tables)

    def prove(self, folder: Path, manifest: dict[str, Any]) -> Any:
        from .proof import prove
        from .work import dataset_if_there

        return prove(folder, manifest, dataset_if_there(manifest))

    def load_prompts(self, dataset: Path | None) -> LoadPrompts:
        from .load_prompts import load_prompts

        return load_prompts(dataset)

    def call_of(self, line: RunLine) -> StoredCall:
        from .stored_calls import call_of

        return call_of(line)

    def unit_of(self, record_id: str) -> str:
        return record_id.partition("/")[0]

    def labeller(self, manifest: Mapping[str, Any] | None, *, is_shown: bool) -> Labeller:
        from .review import labeller

        return labeller(manifest, is_shown=is_shown)


BENCHMARK = MillStone()
