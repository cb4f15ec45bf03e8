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
from .kept_options import command_again
from .record import Record as BaseRecord
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
    from .ask import Ask
    from .forecast import Expected
    from .item import Item
    from .preparation import ItemsOfPilot, PreparedRun
    from .stored_calls import RunLine, StoredCall


_Record = TypeVar("_Record", bound=BaseRecord)


class ItemBenchmark(Benchmark, Generic[_Record]):
    """The base class for one's own benchmarks, with the type of their records. Items of one call are asked with `call`
    and `record`, items of several calls with `run`."""

    unit: ClassVar[str] = "item"
    """The noun for a journal line in counts."""
    columns: ClassVar[tuple[str, ...]] = ("score", "95% interval")
    """The columns of the table of scores."""
    kept_instead: ClassVar[str] = "the run's own readings; these scores are only shown"
    """What scores.json keeps where other readings than the run's own are given."""
    Record: ClassVar[type[BaseRecord]] = BaseRecord
    """A line of records.jsonl."""

    @property
    def has_calls(self) -> bool:
        """Whether an item is one call."""
        return type(self).run is ItemBenchmark.run

    def items(self, options: Any) -> Iterable[Item]:
        """Yields the items, lazily. Their ids must be the same each time the run is prepared."""
        raise NotImplementedError(f"{self.title}: items() is missing")

    def call(self, item: Item, options: Any, pair: Pair) -> Call:
        """Returns the call of an item to the pair's model."""
        raise NotImplementedError(f"{self.title}: call() or run() is missing")

    def record(self, item: Item, outcome: Outcome, options: Any) -> _Record:
        """Returns the record made from the outcome of an item's call."""
        return cast(_Record, self.Record())

    def run(
        self, item: Item, ask: Ask, done: Mapping[int, _Record]
    ) -> AsyncIterator[_Record | Coroutine[Any, Any, _Record]]:
        """Yields the records of an item of several calls, one for each step. In place of a record it may yield the
        coroutine that makes it, such as a judgement: that runs while the next step is asked, at most one step behind.
        `done` holds the records that were already written, by step from 1."""
        raise NotImplementedError(f"{self.title}: run() is missing")

    def others(self, options: Any) -> Sequence[str] | Mapping[str, int | None]:
        """Returns the names of the other models that are called, such as judges; empty: there are none. A mapping has
        the `max_tokens` of each model's calls, which --max-cost reckons with; None, as in a sequence: they set none."""
        return ()

    def check(self, record: _Record, item: Item) -> str | None:
        """Returns what is wrong with a record, for `verify`; None: nothing."""
        return None

    def score_records(
        self, records: Iterable[_Record], readings: Any, specification: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        """Returns the scores. `models` has an entry for each model, by its name, or `str(record.pair)` where one has
        several treatments; `unmeasured` has a sentence for each thing that could not be measured; `remarks` has what a
        reader must know; `compared` has a sentence for each pair of models. `specification` is the run's; None for
        records of other programs."""
        raise NotImplementedError(f"{self.title}: score_records() is missing")

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

    def score(self, folder: Path, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        return score_folder(self, folder, given)

    def score_table(self, source: str, scores: Mapping[str, Any]) -> str:
        from .item_work import said_of

        found = scores[self.name]
        rows = [("model", *self.columns), *((model, *self.cells(entry)) for model, entry in found["models"].items())]
        return "\n".join((source, table(rows), *said_of(found), *found["unmeasured"]))

    def manner(self, source: Path, scores: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, str]:
        if not (source / MANIFEST).exists():
            return {}
        specification = read_manifest(source)["specification"]
        options = {name.replace("_", " "): str(value) for name, value in specification["options"].items()}
        return options | {"data set": str(specification["data"])[:12]}

    def forecast(self, prepared: PreparedRun, *, looks_into_cache: bool) -> Expected:
        from .item_work import forecast

        return forecast(prepared, looks_into_cache=looks_into_cache)

    def pilot_items(self, prepared: PreparedRun, size: int) -> ItemsOfPilot:
        from .item_work import pilot_items

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
        from .item_work import digest_of
        from .proof import Provable, prove

        specification, options = manifest["specification"], self._options(manifest)
        items: dict[str, Item] | None
        try:
            items = {item.id: item for item in self.items(options)}
        except (Exception, SystemExit):  # noqa: BLE001 (why its data can't be read, `run` says: the rest can be proven without)
            items = None
        data = None if items is None else digest_of(items.values())

        def check(record: BaseRecord, item: Item | None) -> str | None:
            with benchmark_code(self.title):
                return None if item is None else self.check(cast(_Record, record), item)

        return prove(
            folder,
            manifest,
            Provable(
                name=self.name,
                title=self.title,
                kind=self.Record,
                pairs=pairs_in(specification),
                # Items of other data can't be compared with this run's lines.
                items=items if data == specification.get("data") else None,
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
