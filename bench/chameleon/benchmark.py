"""Chameleon's implementation of the benchmark protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...configuration.declared_options import words_kept
from ..evaluation.door.benchmark import ItemBenchmark, LoadPrompts, Order, RunBasis
from ..evaluation.door.item import Item
from ..evaluation.door.item_set import ItemSet
from ..evaluation.door.served_rows import ScoredRun
from .options import COLUMNS, DATA, PROMPTS, TITLE, Options, Readings
from .records import Record as TurnRecord
from .run_spec import TEMPERATURES
from .run_summary import TurnTotals
from .turn_line import TurnLine

if TYPE_CHECKING:
    from ...engine.call import Call
    from ...engine.runs.run_folder import WrongSpecification
    from ...report.sections import PageContents
    from ...wiring import Settings
    from ..evaluation.door.ask import Ask
    from ..evaluation.door.expected import Expected
    from ..evaluation.door.judging import Judging
    from ..evaluation.door.label import Labeller
    from .report.runs import ConversationRun

_Run = TypeVar("_Run", bound=RunBasis)


class Chameleon(ItemBenchmark[TurnRecord]):
    name = "chameleon"
    title = TITLE
    unit = "turn"
    unit_name = "conversation"
    noun_of_line = "turn"
    columns = COLUMNS
    Options = Options
    Readings = Readings
    Record = TurnRecord
    Line = TurnLine
    Totals = TurnTotals
    categories = ("conversation", "domain", "topic", "stance", "search", "query_by", "step")
    prompts = PROMPTS
    data = DATA
    temperatures = TEMPERATURES
    reads_pages = True
    # A turn asks the model under test twice and takes some half a minute.
    items_per_rpm = 0.25

    def items(self, options: Any) -> ItemSet:
        from .work import conversations_of

        return conversations_of(options)

    def others(self, options: Any) -> Sequence[str | Call]:
        from .work import others_of

        return others_of(options)

    def settled(self, options: Any, settings: Settings) -> tuple[Any, Settings]:
        from .work import with_corpus

        return options, with_corpus(options, settings)

    def specification(self, run: RunBasis) -> dict[str, Any]:
        from .work import specified

        return specified(run)

    def ordered(self, order: Order) -> tuple[Chameleon, Order]:
        from .work import check_options

        check_options(order.run.options)
        return self, order

    def completed(self, run: _Run) -> _Run:
        from .work import with_window_notes

        return with_window_notes(run)

    def run(
        self, item: Item, ask: Ask, done: Mapping[int, TurnRecord]
    ) -> AsyncIterator[Coroutine[Any, Any, TurnRecord]]:
        from .conversation import ConversationDriver
        from .run_spec import spec_in

        return ConversationDriver(item.data, spec_in(ask.specification), ask).records(done)

    def explain_other_run(self, folder: Path, dataset: Mapping[str, Any], error: WrongSpecification) -> str:
        from .readings import score_instead

        return f"{error}{score_instead(folder, error.asked)}"

    def listed(self, manifest: Mapping[str, Any]) -> Iterable[Item]:
        specification = manifest["specification"]
        turns = zip(specification["conversations"], specification["turns_each"], strict=True)
        return [Item(conversation, None, number, is_numbered=True) for conversation, number in turns]

    def check(self, record: TurnRecord, item: Item) -> Iterator[str]:
        from .turn import untrue_fields

        if item.data is not None and record.question != item.data.turns[record.turn - 1].question:
            yield f"turn {record.id} has another question than the data set"
        if record.stance is not None and (untrue := untrue_fields(record)):
            yield f"{', '.join(untrue)}: not what the text and the rationale in it give"

    def owns(self, fields: Mapping[str, Any]) -> bool:
        return "conversation" in fields or "retrieved" in fields

    def score_lines(self, lines: Iterable[bytes], run: ScoredRun) -> Mapping[str, Any]:
        from .score_table import score_lines

        return score_lines(lines, run)

    def remarks(self, part: Mapping[str, Any]) -> Iterable[str]:
        from .score_table import remarks_of

        return remarks_of(part)

    def cells(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        from .score_table import cells

        return cells(entry) if entry else ("-",) * len(self.columns)

    def score_table(self, source: str, scores: Mapping[str, Any]) -> str:
        from .score_table import score_text

        return score_text(source, scores[self.name], self.columns)

    def manner(self, source: Path, scores: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, str]:
        from .report.manner import manner_of_source

        return manner_of_source(source)

    def forecast(self, run: RunBasis, expected: Expected) -> Expected:
        from .forecast import forecast

        return forecast(run, expected)

    def read_run(self, path: Path, manifest: Mapping[str, Any] | None, given: Mapping[str, Any]) -> ConversationRun:
        from .report.runs import read

        return read(path, manifest, given.get("read"))

    def report(self, runs: Sequence[ConversationRun], given: Mapping[str, Any], flags: Sequence[str]) -> PageContents:
        from .report.part import page_contents

        return page_contents(self, runs, given, flags)

    def _words_of(self, kept: Mapping[str, Any]) -> list[str]:
        return [*super()._words_of(kept), *words_kept(Readings, kept)]

    def load_prompts(self, dataset: Path | None) -> LoadPrompts:
        from .dataset import load
        from .work import SAMPLE

        data = load(dataset or SAMPLE)
        questions = [question for each in data.conversations for question in each.questions]
        return LoadPrompts(questions, f"{len(questions):,} questions of Chameleon's conversations ({data.name})")

    def labeller(self, manifest: Mapping[str, Any] | None, *, is_shown: bool) -> Labeller:
        from ..evaluation.door.label import Labeller
        from .review import exchange_of, label_of

        return Labeller(self.Record, label_of, exchange_of)

    def judging(self, manifest: Mapping[str, Any]) -> Judging:
        from ..evaluation.door.run_items import items_of_run
        from .judging import TurnJudging

        return TurnJudging(manifest, lambda: items_of_run(self, manifest))


BENCHMARK = Chameleon()
