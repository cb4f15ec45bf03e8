"""The benchmark that runs tasks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from msgspec import structs

from ...configuration.errors import UsageError
from ...engine.call import Call, Outcome
from ...engine.pairs import Pair
from ...engine.runs.run_folder import RECORDS, WrongSpecification
from ...format import command_text
from ...wiring.reach import family_of
from ..evaluation.door.ask import Ask
from ..evaluation.door.benchmark import ItemBenchmark, LoadPrompts, Order, RunBasis
from ..evaluation.door.expected import Expected
from ..evaluation.door.item import Item
from ..evaluation.door.judging import Judging
from ..evaluation.door.kept_options import kept_options
from ..evaluation.door.label import Label, Labeller
from ..evaluation.door.listed_run import ListedRun
from ..evaluation.door.several_orders import SeveralOrders
from ..evaluation.door.treatments import specified_pairs
from ..evaluation.running.journals import decoded
from ..evaluation.running.record_lines import record_lines
from ..evaluation.running.scoring import SCORES
from .asking import QuestionTrial, TaskItems, items_of, judged, record_of, weighed
from .described import options_of
from .figures import Figure, functions_in, uncomputed, with_kept
from .files import SeveralTasks, TaskSource, load_prompts, source_of
from .forecast import with_judges, with_steps, with_weighings
from .judging import GradeJudging
from .likelihood import WEIGHS
from .options import TITLE, Options, Readings
from .proof import listed_run
from .records import Record as TaskRecord
from .review import check_is_share, label_of
from .run_figures import run_figures
from .score_document import COLUMNS, NAME, NO_MANIFEST, own_readings, score_cells, scores_in
from .score_table import by_scorers_of, manner_of, more_tables, told
from .shown_items import TaskItemReader
from .steps_class import StepsTask
from .steps_item import carried_out
from .task import several

if TYPE_CHECKING:
    from ...report.sections import PageContents
    from ..evaluation.door.run_figures import RunFigures
    from ..evaluation.door.served_rows import ScoredRun


_Run = TypeVar("_Run", bound=RunBasis)


class TaskBenchmark(ItemBenchmark[TaskRecord]):
    """The benchmark that runs any task. For a run it has the task's items. Without these it reads the records of any
    task: the task's own program is not executed."""

    name = NAME
    title = TITLE
    unit = "question"
    columns = COLUMNS
    kept_instead = "the run's own scores; these are only shown"
    Options = Options
    Readings = Readings
    Record = TaskRecord
    compares_runs = True

    def __init__(self, asked: TaskItems | None = None) -> None:
        self._asked = asked
        if asked is not None:
            self.title = asked.task.name or NAME
            self.temperatures = asked.task.temperatures()
            self.efforts = several(asked.task.reasoning_effort)

    @property
    def has_calls(self) -> bool:
        return self.is_asked_once and self._asked is not None and not self._asked.judgements

    @property
    def is_asked_once(self) -> bool:
        return self._asked is None or not (isinstance(self._asked.task, StepsTask) or self._asked.weigher)

    def ordered(self, order: Order, source: TaskSource | None = None) -> tuple[TaskBenchmark, Order]:
        """Returns the benchmark of the ordered task. `source` None: the options name the file of the task; raises
        SeveralOrders if it has several."""
        try:
            items = items_of(source or source_of(order.run.options, order.sending.config), order.run.options)
        except SeveralTasks as several:
            raise SeveralOrders(str(several), [_of_task(order, name) for name in several.names]) from several
        run = structs.replace(order.run, readings=own_readings(order.run.readings, items.task))
        return TaskBenchmark(items), structs.replace(order, run=run)

    def items(self, options: Any) -> TaskItems:
        assert self._asked is not None
        return self._asked

    def others(self, options: Any) -> Sequence[Call]:
        return self.items(options).others

    def max_tokens_of(
        self, options: Any, pair: Pair, begun: Mapping[str, int | None], *, thinks: bool | None = None
    ) -> int | None:
        return self.items(options).task.max_tokens

    def specification(self, run: RunBasis) -> dict[str, Any]:
        items = self.items(run.options)
        return {
            "benchmark": NAME,
            "task": items.task.name,
            **specified_pairs(run.pairs),
            "endpoints": dict(run.endpoints),
            **items.specified,
            "lines": items.lines,
        }

    def call(self, item: Item, options: Any, pair: Pair) -> Call:
        trial: QuestionTrial = item.data
        return trial.question.call(self.items(options).task, pair, trial.number)

    def record(self, item: Item, outcome: Outcome, options: Any) -> TaskRecord:
        assert outcome.reply is not None
        return record_of(self.items(options), item.data, outcome.reply)

    async def run(self, item: Item, ask: Ask, done: Mapping[int, TaskRecord]) -> AsyncIterator[TaskRecord]:
        items = self.items(ask.options)
        if isinstance(items.task, StepsTask):
            yield await carried_out(items, items.task, item.data, ask)
            return
        if items.weigher is not None:
            yield await weighed(items, item.data, ask)
            return
        reply = await ask(self.call(item, ask.options, ask.pair))
        yield await judged(items, item.data, reply, ask)

    async def close(self) -> None:
        if self._asked is not None and isinstance(self._asked.task, StepsTask):
            await self._asked.task.toolset.close()

    def forecast(self, run: RunBasis, expected: Expected) -> Expected:
        items = self.items(None)
        if isinstance(items.task, StepsTask):
            with_steps(expected, items, items.task, run)
        if items.weigher is not None:
            with_weighings(expected, items, run)
        return with_judges(expected, items, run.total)

    def completed(self, run: _Run) -> _Run:
        for pair in run.pairs if self.items(run.options).weigher is not None else ():
            if (family := family_of(pair.model, run.settings)) != WEIGHS:
                raise UsageError(
                    f"loglikelihood: {pair.model} gives no log-probabilities of given answers (its protocol is "
                    f"{family}): expected a provider of kind {WEIGHS}, such as vllm-completions"
                )
        return run

    def explain_other_run(self, folder: Path, dataset: Mapping[str, Any], error: WrongSpecification) -> str:
        if "prompt.sha256" in error.asked:
            return f"{error}; calls that are the same as before come from the cache"
        if not all(name.startswith(("score.", "figures")) for name in error.asked):
            return str(error)
        file = dataset.get("declared", {}).get("file", "FILE")
        return f"{error}, or score its answers anew without a call: {command_text('rescore', folder, '--task', file)}"

    def listed(self, manifest: Mapping[str, Any]) -> ListedRun:
        return listed_run(manifest)

    def owns(self, fields: Mapping[str, Any]) -> bool:
        return {"item", "row", "score"} <= fields.keys()

    def score_records(
        self, records: Iterable[TaskRecord], readings: Any, specification: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        specification = specification or NO_MANIFEST
        figures: Mapping[str, Figure] | None = None if self._asked is None else self._asked.task.own_figures()
        if readings.task is not None:
            records, specification, figures = by_scorers_of(readings.task, records, specification)
        return scores_in(records, specification, readings, figures)

    def with_kept(self, part: Mapping[str, Any], run: ScoredRun) -> Mapping[str, Any]:
        functions = functions_in(run.specification)
        if self._asked is None and run.readings.task is None and functions:
            with suppress(OSError, ValueError):  # a file that is not there or is damaged holds nothing
                kept = orjson.loads((run.folder / SCORES).read_bytes())
                with_kept(part, kept, self.scores_name(run.specification), functions)
        return {**part, "unmeasured": [*part["unmeasured"], *uncomputed(part)]}

    def scores_name(self, specification: Mapping[str, Any] | None) -> str:
        return str((specification or NO_MANIFEST)["task"])

    def has_answers(self, part: Mapping[str, Any]) -> bool:
        return any(entry["answers"] for entry in part["models"].values())

    def cells(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        return score_cells(entry)

    def more_tables(self, part: Mapping[str, Any]) -> Sequence[str]:
        return more_tables(part)

    def score_table(self, source: str, scores: Mapping[str, Any]) -> str:
        return told(source, scores)

    def manner(self, source: Path, scores: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, str]:
        return manner_of(source)

    def run_figures(self, run: ScoredRun) -> RunFigures:
        records: Iterable[TaskRecord] = decoded(
            run.rows.lines(record_lines(run.folder / RECORDS)), self.Record, run.source
        )
        specification = run.specification or NO_MANIFEST
        if run.readings.task is not None:
            records, specification, _ = by_scorers_of(run.readings.task, records, specification)
        return run_figures(records, specification, run.readings)

    def described(self, specification: Mapping[str, Any]) -> Mapping[str, str]:
        return options_of(specification)

    def report(self, runs: Sequence[Any], given: Mapping[str, Any], flags: Sequence[str]) -> PageContents:
        """Returns the general part on these runs, under the tasks' names."""
        from ..evaluation.page.part import general_part

        names = dict.fromkeys(str((run.manifest or {}).get("specification", {}).get("task", NAME)) for run in runs)
        named = TaskBenchmark()
        named.title = ", ".join(names)
        return general_part(named, runs, given, flags)

    def command_of(self, manifest: Mapping[str, Any]) -> str:
        return super().command_of(manifest) if kept_options(manifest, self.name).get("file") else ""

    def _words_of(self, kept: Mapping[str, Any]) -> list[str]:
        _, *options = super()._words_of({**kept, "file": None})
        return [Path(kept["file"]).name, *options]

    def item_reader(self, manifest: Mapping[str, Any] | None) -> TaskItemReader:
        return TaskItemReader(manifest)

    def load_prompts(self, dataset: Path | None) -> LoadPrompts:
        return load_prompts(dataset)

    def label(self, record: Any) -> Label | None:
        return _label_of(record, self.item_reader(None))

    def labeller(self, manifest: Mapping[str, Any] | None, *, is_shown: bool) -> Labeller:
        check_is_share(manifest)
        return Labeller(self.Record, partial(_label_of, reader=self.item_reader(manifest)))

    def judging(self, manifest: Mapping[str, Any]) -> Judging:
        return GradeJudging(manifest, self.readings_of(manifest))


def _label_of(record: TaskRecord, reader: TaskItemReader) -> Label | None:
    return label_of(record, reader.expected(record.row))


def _of_task(order: Order, name: str) -> Order:
    """Returns the order of one of the tasks in its file."""
    options = structs.replace(order.run.options, file=f"{order.run.options.file}:{name}")
    return structs.replace(order, out=order.out / name, run=structs.replace(order.run, options=options))


BENCHMARK = TaskBenchmark()
