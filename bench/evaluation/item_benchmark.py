"""The base class for benchmarks made of items: an author fills in a few methods, the framework serves every verb."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from ...configuration.declared_options import read_kept, words_kept
from ...engine.runs.pairs import Pair
from ...engine.runs.run_folder import MANIFEST, read_manifest
from ...report.interval_text import interval_cell
from ...report.text import table
from .benchmark import Benchmark, Order
from .defect import benchmark_code
from .item_line import ItemLine
from .kept_options import command_again
from .record import Record as BaseRecord
from .record import StepRecord, WholeLine
from .recount import StepTotals
from .scoring import (
    ScoredRun,
    kept_readings,
    score_decoded,
    score_folder,
    scores_again,
)
from .treatments import pairs_in

if TYPE_CHECKING:
    from ...engine.call import Call, Outcome
    from ...engine.runs.proof import Proof
    from ...wiring import Settings
    from .ask import Ask
    from .forecast import Expected
    from .item import Item
    from .item_set import ItemSet
    from .item_work import RunBasis
    from .preparation import ItemsOfPilot, PreparedRun
    from .proof import Wrong
    from .stored_calls import RunLine, StoredCall


_Record = TypeVar("_Record", bound=StepRecord)


class ItemBenchmark(Benchmark, Generic[_Record]):
    """The base class for one's own benchmarks, with the type of their records. Items of one call are asked with `call`
    and `record`, items of several calls with `run`."""

    unit: ClassVar[str] = "item"
    """The noun for a journal line in counts."""
    columns: ClassVar[tuple[str, ...]] = ("score", "95% interval")
    """The columns of the table of scores."""
    kept_instead: ClassVar[str] = "the run's own readings; these scores are only shown"
    """What scores.json keeps where other readings than the run's own are given."""
    Record: ClassVar[type[Any]] = BaseRecord
    """A line of records.jsonl."""
    Line: ClassVar[type[ItemLine]] = ItemLine
    """The fields of a line that the framework reads; another type where records have other names for them."""
    Totals: ClassVar[type[StepTotals]] = StepTotals
    """The counts of a run's lines; another type for a benchmark that counts more, for the run's summary."""
    noun_of_line: ClassVar[str] = "id"
    """The word for a line in the findings of `verify`."""
    temperatures: ClassVar[tuple[float | None, ...]] = ()
    """The temperatures of a run whose options have none; empty: none is sent."""
    reads_pages: ClassVar[bool] = False
    """Whether items read pages: that this machine can is checked before anything is paid for."""
    items_per_rpm: ClassVar[float | None] = None
    """How many items of several calls run at once for each request a minute of a model under test, at most its calls in
    flight; None: as many as these."""

    @property
    def has_calls(self) -> bool:
        """Whether an item is one call."""
        return type(self).run is ItemBenchmark.run

    def items(self, options: Any) -> Iterable[Item] | ItemSet:
        """Yields the items, lazily, or returns an `ItemSet`, which the run keeps, so that their data are read once. The
        ids must be the same each time the run is prepared."""
        raise NotImplementedError(f"{self.title}: items() is missing")

    def call(self, item: Item, options: Any, pair: Pair) -> Call:
        """Returns the call of an item to the pair's model."""
        raise NotImplementedError(f"{self.title}: call() or run() is missing")

    def record(self, item: Item, outcome: Outcome, options: Any) -> _Record:
        """Returns the record made from the outcome of an item's call."""
        return cast(_Record, self.Record())

    def line_of(self, outcome: Outcome, options: Any) -> WholeLine:
        """Returns the line of a call's outcome, a failure or not, where lines are of a type of its own. `call` then
        makes calls with their item as `tag`, and the framework fills in nothing."""
        raise NotImplementedError(f"{self.title}: line_of() is missing")

    def run(
        self, item: Item, ask: Ask, done: Mapping[int, _Record]
    ) -> AsyncIterator[_Record | Coroutine[Any, Any, _Record]]:
        """Yields the records of an item of several calls, one for each step. In place of a record it may yield the
        coroutine that makes it, such as a judgement: that runs while the next step is asked, at most one step behind.
        `done` holds the records that were already written, by step from 1."""
        raise NotImplementedError(f"{self.title}: run() is missing")

    def others(self, options: Any) -> Sequence[str | Call] | Mapping[str, int | None]:
        """Returns the names of the other models that are called, such as judges, and of search engines; empty: there
        are none. In place of a name there may be a call with the parameters of all calls to that model, which are
        checked before anything is sent; the `max_tokens` are what --max-cost reckons with. A mapping has these alone
        (None, as for a name: the calls set none)."""
        return ()

    def max_tokens_of(
        self, options: Any, pair: Pair, begun: Mapping[str, int | None], *, thinks: bool | None = None
    ) -> int | None:
        """Returns the `max_tokens` of a pair's calls; None: none is sent. `begun`: what the specification of the run
        that goes on has as `max_tokens`; `thinks`: whether the model thinks before it answers (None: not known)."""
        limit: int | None = getattr(options, "max_tokens", None)
        return limit

    def settled(self, options: Any, settings: Settings) -> tuple[Any, Settings]:
        """Returns a run's options and settings with what they leave open, as where it depends on the model."""
        return options, settings

    def specification(self, run: RunBasis) -> dict[str, Any]:
        """Returns the values that decide prompts and answers. `resume` with others is refused, and `run()` finds them
        in `ask.specification`."""
        from .item_work import specification_of

        return specification_of(self, run)

    def listed(self, manifest: Mapping[str, Any]) -> Iterable[Item] | None:
        """Returns the items that a run's manifest lists, for `verify` where their data can't be read; None: it lists
        none."""
        return None

    def check(self, record: _Record, item: Item) -> Wrong:
        """Returns what is wrong with a record, for `verify`: a sentence or several; None: nothing."""
        return None

    def score_records(
        self, records: Iterable[_Record], readings: Any, specification: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        """Returns the scores. `models` has an entry for each model, by its name, or `str(record.pair)` where one has
        several treatments; `unmeasured` has a sentence for each thing that could not be measured; `remarks` has what a
        reader must know; `compared` has a sentence for each pair of models. `specification` is the run's; None for
        records of other programs."""
        raise NotImplementedError(f"{self.title}: score_records() is missing")

    def remarks(self, part: Mapping[str, Any]) -> Iterable[str]:
        """Returns the sentences below a table of scores: by default their remarks, then the comparisons."""
        return (*part.get("remarks", ()), *part.get("compared", ()))

    def cells(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        """Returns the texts of a model's row under `columns`."""
        score = entry.get("score")
        return ("-" if score is None else f"{score:.3f}", interval_cell(entry, 3) if entry else "-")

    def prepare(self, order: Order) -> PreparedRun:
        from .item_work import prepare

        return prepare(self, order)

    def score_lines(self, lines: Iterable[bytes], run: ScoredRun) -> Mapping[str, Any]:
        """Returns the scores from the lines of records, for benchmarks that read these faster than by decoding every
        record, or need more of the run than `score_records` gets. The rows stand in the lines already."""
        return score_decoded(self, lines, run)

    def scores_name(self, specification: Mapping[str, Any] | None) -> str:
        """Returns the key of a run's scores in scores.json."""
        return self.name

    def readings_of(self, manifest: Mapping[str, Any] | None) -> Any:
        """Returns the readings of a run's own scores, defaults where its manifest has none."""
        return kept_readings(self.Readings, self.name, manifest)

    def caveats(self, manifest: Mapping[str, Any] | None, readings: Any) -> Sequence[str]:
        """Returns sentences on a folder's records that a reader of its scores must know."""
        return ()

    def score(self, folder: Path, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        return score_folder(self, folder, given)

    def score_table(self, source: str, scores: Mapping[str, Any]) -> str:
        found = scores[self.name]
        rows = [("model", *self.columns), *((model, *self.cells(entry)) for model, entry in found["models"].items())]
        return "\n".join((source, table(rows), *self.remarks(found), *found["unmeasured"]))

    def manner(self, source: Path, scores: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, str]:
        if not (source / MANIFEST).exists():
            return {}
        specification = read_manifest(source)["specification"]
        options = {name.replace("_", " "): str(value) for name, value in specification["options"].items()}
        return options | {"data set": str(specification["data"])[:12]}

    def forecast(self, prepared: PreparedRun, *, looks_into_cache: bool) -> Expected:
        from .item_plan import forecast

        return forecast(prepared, looks_into_cache=looks_into_cache)

    def pilot_items(self, prepared: PreparedRun, size: int) -> ItemsOfPilot:
        from .item_plan import pilot_items

        return pilot_items(prepared, size)

    def call_of(self, line: RunLine) -> StoredCall | None:
        from .item_work import call_of

        return call_of(self, line) if self.has_calls else None

    def command_of(self, manifest: Mapping[str, Any]) -> str:
        """Returns the command that runs the same benchmark again with the same prompts; empty if the manifest has too
        little."""
        return command_again(manifest, self.name, self._words_of)

    def _words_of(self, kept: Mapping[str, Any]) -> list[str]:
        """Returns the words after `run` that name the benchmark and its options."""
        return [self.name, *words_kept(self.Options, kept)]

    def prove(self, folder: Path, manifest: dict[str, Any]) -> Proof:
        from .item_work import items_of
        from .proof import Provable, prove

        specification = manifest["specification"]
        data, items = None, self.listed(manifest)
        try:
            held = items_of(self, self._options(manifest))
        except (Exception, SystemExit):  # noqa: BLE001 (why its data can't be read, `run` says: the rest can be proven without)
            pass
        else:
            data = held.digest
            # Items of other data can't be compared with this run's lines.
            items = held if data == specification.get("data") else items

        def check(record: Any, item: Item | None) -> Wrong:
            with benchmark_code(self.title):
                return None if item is None else self.check(record, item)

        return prove(
            folder,
            manifest,
            Provable(
                name=self.name,
                title=self.title,
                kind=self.Record,
                noun=self.noun_of_line,
                pairs=pairs_in(specification),
                items=items,
                data=data,
                check=check,
                scores=lambda: scores_again(self, folder, manifest),
            ),
        )

    def _options(self, manifest: Mapping[str, Any]) -> Any:
        """Returns a run's options from its manifest. Raises KeyError or TypeError if it has none."""
        kept = manifest["options"][self.name]
        names = self.Options.__struct_fields__
        return read_kept(self.Options, {name: kept[name] for name in names if name in kept})
