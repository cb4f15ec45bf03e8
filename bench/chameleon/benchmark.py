"""Chameleon's implementation of the benchmark protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..evaluation.benchmark import Benchmark, LoadPrompts, Order
from ..evaluation.kept_options import kept_options
from .options import DATA, PROMPTS, TITLE, Options, Readings
from .records import Record

if TYPE_CHECKING:
    from ...engine.runs.run_folder import WrongSpecification
    from ...report.sections import PageContents
    from ..evaluation.forecast import Expected
    from ..evaluation.judging.judging import Judging
    from ..evaluation.labelling.label import Labeller
    from ..evaluation.preparation import ItemsOfPilot, PreparedRun
    from .report.runs import ConversationRun


class Chameleon(Benchmark):
    name = "chameleon"
    title = TITLE
    Options = Options
    Readings = Readings
    Record = Record
    categories = ("conversation", "domain", "topic", "stance", "search", "query_by", "step")
    prompts = PROMPTS
    data = DATA
    unit_name = "conversation"

    def prepare(self, order: Order) -> PreparedRun:
        from .work import prepare

        return prepare(order)

    def explain_other_run(self, folder: Path, dataset: Mapping[str, Any], error: WrongSpecification) -> str:
        from .readings import score_instead

        return f"{error}{score_instead(folder, error.asked)}"

    def owns(self, fields: Mapping[str, Any]) -> bool:
        return "conversation" in fields or "retrieved" in fields

    def score(self, folder: Path, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        from .score_table import score_folder

        return score_folder(folder, given)

    def score_table(self, source: str, scores: Mapping[str, Any]) -> str:
        from .score_table import told

        return told(source, scores)

    def manner(self, source: Path, scores: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, str]:
        from .report.manner import manner_of_source

        return manner_of_source(source)

    def forecast(self, prepared: PreparedRun, *, looks_into_cache: bool) -> Expected:
        from .forecast import forecast

        return forecast(prepared)

    def pilot_items(self, prepared: PreparedRun, size: int) -> ItemsOfPilot:
        from .work import pilot_items

        return pilot_items(prepared, size)

    def read_run(self, path: Path, manifest: Mapping[str, Any] | None, given: Mapping[str, Any]) -> ConversationRun:
        from .report.runs import read

        return read(path, manifest, given.get("read"))

    def report(self, runs: Sequence[ConversationRun], given: Mapping[str, Any], flags: Sequence[str]) -> PageContents:
        from .report.part import page_contents

        return page_contents(runs, given, flags)

    def prove(self, folder: Path, manifest: dict[str, Any]) -> Any:
        from .proof import prove
        from .work import dataset_of

        return prove(folder, manifest, dataset_of(manifest))

    def load_prompts(self, dataset: Path | None) -> LoadPrompts:
        from .dataset import load
        from .work import SAMPLE

        found = load(dataset or SAMPLE)
        questions = [question for each in found.conversations for question in each.questions]
        return LoadPrompts(questions, f"{len(questions):,} questions of Chameleon's conversations ({found.name})")

    def labeller(self, manifest: Mapping[str, Any] | None, *, is_shown: bool) -> Labeller:
        from ..evaluation.labelling.label import Labeller
        from .review import exchange_of, label_of

        return Labeller(self.Record, label_of, exchange_of)

    def judging(self, manifest: Mapping[str, Any]) -> Judging:
        from .judging import TurnJudging
        from .work import SAMPLE

        path = kept_options(manifest, self.name).get("dataset")
        return TurnJudging(manifest, SAMPLE if path is None else Path(path))


BENCHMARK = Chameleon()
