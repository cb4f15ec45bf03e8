"""The base class of benchmarks: what an author writes, and what may be decided beside it.

An author writes `items`, `call` and `record` or `run`, `score_records`, and `check` where there is something to check.
Everything else has a default. Where that is None, the framework does what it does for every benchmark. Knows no
benchmark by name; the registry does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from msgspec import Struct

from ....configuration.declared_options import read_kept, words_kept
from ....configuration.errors import UsageError
from ....engine.pairs import Pair
from ....engine.runs.run_folder import MANIFEST, read_manifest
from ....report.interval_text import interval_cell
from ....report.text import table
from .item_line import ItemLine, StepTotals
from .item_reader import ItemReader
from .kept_options import command_again, kept_options
from .label import Label, Labeller
from .record import Record as BaseRecord
from .record import StepRecord

if TYPE_CHECKING:
    from ....configuration.benchmark_options import RunOptions
    from ....configuration.configuration import Configuration
    from ....configuration.options import SendingOptions
    from ....engine.call import Call, Message, Outcome
    from ....engine.runs.run_folder import WrongSpecification
    from ....report.sections import PageContents
    from ....wiring import Settings
    from .ask import Ask
    from .data_command import DataCommand
    from .expected import Expected
    from .item import Item, Wrong
    from .item_set import ItemSet
    from .judging import Judging
    from .listed_run import ListedRun
    from .run_figures import RunFigures
    from .served_rows import ScoredRun, Tally


class Order(Struct, frozen=True, kw_only=True):
    """The request for a run: its folder, options, and how to send it."""

    out: Path
    """The run's folder."""
    run: RunOptions
    """The benchmark's options and readings."""
    sending: SendingOptions
    """The options of how its calls are sent."""
    configuration: Configuration
    """Lanes, providers and prices."""
    needs_keys: bool = True
    """Whether the run will be sent; a plan alone needs no API key."""


class RunBasis(Struct, frozen=True, kw_only=True):
    """What is decided of a run before it begins."""

    out: Path
    """The run's folder. What a run has begun with there stays, whatever the table of models says by now."""
    settings: Settings
    """The settings by which calls are sent."""
    items: ItemSet
    """The items."""
    limits: Mapping[Pair, int | None]
    """The models under test and their treatments, with the max_tokens of their calls; None: none is sent."""
    options: Any = None
    """The benchmark's options, settled."""
    readings: Any = None
    """The readings of the run's own scores."""
    endpoints: Mapping[str, str] = MappingProxyType({})
    """The address of each lane, as in the cache keys of its calls."""
    specification: dict[str, Any] = {}
    """The values that decide prompts and answers, as the manifest holds them; empty before they are decided."""
    kept: Mapping[str, Any] = MappingProxyType({})
    """The options as the manifest holds them."""
    notes: tuple[str, ...] = ()
    """Sentences on the options, printed once."""
    warnings: tuple[str, ...] = ()
    """Sentences on the data, printed by every command."""

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The models under test and their treatments."""
        return tuple(self.limits)

    @property
    def total(self) -> int:
        """The number of journal lines over all pairs."""
        return self.items.lines * len(self.limits)


_Record = TypeVar("_Record", bound=StepRecord)
_Run = TypeVar("_Run", bound=RunBasis)


class PublishedCounts(Struct, frozen=True):
    """How a benchmark's published tables of counts are read. Both functions raise UsageError for a file that is no such
    table, and for a given reading that needs more than counts."""

    score: Callable[[Path, Mapping[str, Any]], dict[str, Any]]
    """Returns scores, in the form of scores.json, by the given readings."""
    read: Callable[[Path, Mapping[str, Any]], Any]
    """Returns a table in the form that `report` takes beside the records of runs."""


class LoadPrompts(Struct, frozen=True):
    """The prompts that a load test takes from a data set."""

    prompts: Sequence[str | tuple[Message, ...]]
    """The prompts: texts, or conversations in texts."""
    text: str
    """A description of the prompts."""


class ItemBenchmark(Generic[_Record]):
    """The base class for one's own benchmarks, with the type of their records. Items of one call are asked with `call`
    and `record`, items of several calls with `run`."""

    name: ClassVar[str]
    """Its name on the command line, and its key in scores.json."""
    title: str
    """Its name in a sentence."""
    Options: ClassVar[type[Struct]]
    """The options that decide prompts and answers: flags, run-file keys, help and the manifest's options are made from
    them."""
    Readings: ClassVar[type[Struct]]
    """The options that decide how records are read; no prompt and no answer depends on them."""
    prompts: ClassVar[str] = ""
    """A description of the prompts that `load --dataset` takes from its data sets. Empty: it offers none."""
    data: ClassVar[DataCommand | None] = None
    """The command `data NAME`, which builds, imports and checks data sets. None: it has none."""
    categories: ClassVar[tuple[str, ...]] = ()
    """The record's fields that have few different texts: an exported table stores them as categories."""
    unit_name: ClassVar[str] = "item"
    """The noun for an item."""
    counts: ClassVar[PublishedCounts | None] = None
    """How `score --counts` and `report --counts` read published tables of this benchmark; None: there are none."""

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
    temperatures: tuple[float | None, ...] = ()
    """The temperatures of a run whose options have none; empty: none is sent."""
    efforts: tuple[str, ...] = ()
    """The reasoning efforts of calls whose run's options have none. They are parameters of the calls, in no record."""
    compares_runs: ClassVar[bool] = False
    """Whether `run_figures` gives figures by which two runs on the same rows are compared."""
    reads_pages: ClassVar[bool] = False
    """Whether items read pages: that this machine can is checked before anything is paid for."""
    items_per_rpm: ClassVar[float | None] = None
    """How many items of several calls run at once for each request a minute of a model under test, at most its calls in
    flight; None: as many as these."""

    def __repr__(self) -> str:
        return f"<ItemBenchmark {self.name}>"

    @property
    def has_calls(self) -> bool:
        """Whether an item is one call, which `call` makes."""
        return type(self).run is ItemBenchmark.run

    @property
    def is_asked_once(self) -> bool:
        """Whether the model under test is asked once for an item, by `call`, even if `run` asks others of its answer.
        The calls of `others` are then the longest ones."""
        return self.has_calls

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

    def line_of(self, outcome: Outcome, options: Any) -> StepRecord:
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
        (None, as for a name: the calls set none). A text as the call's `tag` says where its temperature was set: that
        the model takes none is then an error."""
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

    def specification(self, run: RunBasis) -> dict[str, Any] | None:
        """Returns the values that decide prompts and answers; None: the options, and what the items are. `resume` with
        others is refused, and `run()` finds them in `ask.specification`. If they have `prompt_tokens`, the most tokens
        of a prompt by lane, --max-cost reckons with these where prompts contain answers."""
        return None

    def ordered(self, order: Order) -> tuple[ItemBenchmark[Any], Order]:
        """Returns the benchmark that carries out an order, and the order as it does so: by default both as they are.
        Raises UsageError for options that contradict each other."""
        return self, order

    def completed(self, run: _Run) -> _Run:
        """Returns a run that is ready to begin, with what is the benchmark's own, as notes and warnings. Raises
        UsageError for a run that can't be carried out."""
        return run

    def listed(self, manifest: Mapping[str, Any]) -> Iterable[Item] | ListedRun | None:
        """Returns the items that a run's manifest lists, for `verify` where their data can't be read; None: it lists
        none. A `ListedRun` is all that `verify` needs: it asks for no `items` and for no `check`."""
        return None

    async def close(self) -> None:
        """Closes what the items of a run share, such as a server of tools. No item is under way then."""

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

    def score_lines(self, lines: Iterable[bytes], run: ScoredRun) -> Mapping[str, Any] | None:
        """Returns the scores from the lines of records, for benchmarks that read these faster than by decoding every
        record, or need more of the run than `score_records` gets; None: `score_records` scores them. The rows stand in
        the lines already."""
        return None

    def tally(self, run: ScoredRun) -> Tally | None:
        """Returns what gathers the lines of a run for its scores one by one, so that they are read once for whatever
        else is asked of them; None: `score_lines` or `score_records` reads them. `run` may have no rows yet."""
        return None

    def with_kept(self, part: Mapping[str, Any], run: ScoredRun) -> Mapping[str, Any]:
        """Returns the scores with what only the run's own program computes, as the run's scores.json has it."""
        return part

    def scores_name(self, specification: Mapping[str, Any] | None) -> str:
        """Returns the key of a run's scores in scores.json."""
        return self.name

    def readings_of(self, manifest: Mapping[str, Any] | None) -> Any:
        """Returns the readings of a run's own scores, defaults where its manifest has none."""
        kept = kept_options(manifest, self.name)
        return read_kept(self.Readings, {name: kept[name] for name in self.Readings.__struct_fields__ if name in kept})

    def has_answers(self, part: Mapping[str, Any]) -> bool:
        """Returns whether there was anything to score, from the benchmark's part of scores.json."""
        return bool(part["models"])

    def caveats(self, manifest: Mapping[str, Any] | None, readings: Any) -> Sequence[str]:
        """Returns sentences on a folder's records that a reader of its scores must know."""
        return ()

    def more_tables(self, part: Mapping[str, Any]) -> Sequence[str]:
        """Returns what stands below the table of scores, before their remarks, as tables for people: such as scores by
        group."""
        return ()

    def score_table(self, source: str, scores: Mapping[str, Any]) -> str:
        """Returns scores as a table for people, with the name of their source above."""
        part = scores[self.name]
        rows = [("model", *self.columns), *((model, *self.cells(entry)) for model, entry in part["models"].items())]
        return "\n".join((source, table(rows), *self.more_tables(part), *self.remarks(part), *part["unmeasured"]))

    def manner(self, source: Path, scores: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, str]:
        """Returns how a source's records were made, as names with texts; sources that differ in one are not compared.
        `given`: the readings used for scoring."""
        if not (source / MANIFEST).exists():
            return {}
        specification = read_manifest(source)["specification"]
        options = {name.replace("_", " "): str(value) for name, value in specification["options"].items()}
        return options | {"data set": str(specification["data"])[:12]}

    def described(self, specification: Mapping[str, Any]) -> Mapping[str, str]:
        """Returns what decided prompts and scores, for a reader, as names with texts; empty: the options say it."""
        return {}

    def run_figures(self, run: ScoredRun) -> RunFigures:
        """Returns the figures of a run's items, and the options that decided them, for a comparison with another run
        on the same rows."""
        raise NotImplementedError(f"{self.title}: run_figures() is missing")

    def forecast(self, run: RunBasis, expected: Expected) -> Expected:
        """Returns the calls and tokens that a run is expected to take on each lane. `expected`: those of a benchmark
        that says nothing of its own, which may be changed."""
        return expected

    def explain_other_run(self, folder: Path, dataset: Mapping[str, Any], error: WrongSpecification) -> str:
        """Returns the message that says why this command can't continue in a folder that holds another run. `dataset`
        describes this command's data as its manifest would."""
        return str(error)

    def owns(self, fields: Mapping[str, Any]) -> bool:
        """Returns whether a record that has no manifest is this benchmark's, judged by its fields."""
        return False

    def read_run(self, path: Path, manifest: Mapping[str, Any] | None, given: Mapping[str, Any]) -> Any:
        """Returns a folder's records in the form that `report` takes; None: in that of the general part. Without a
        manifest, there must be records."""
        return None

    def report(self, runs: Sequence[Any], given: Mapping[str, Any], flags: Sequence[str]) -> PageContents | None:
        """Returns the benchmark's own part of a report page on these runs; None: the general one. `given` are the
        readings, `flags` the same as command-line words."""
        return None

    def item_reader(self, manifest: Mapping[str, Any] | None) -> ItemReader:
        """Returns what the table of items by models shows of a run's records. `manifest` None: another program wrote
        them."""
        return ItemReader(self.Record)

    def load_prompts(self, dataset: Path | None) -> LoadPrompts:
        """Returns prompts for a load test from a data set; None: from the sample that comes with this program. Raises
        DatasetError or OSError where the path holds no data set of this benchmark."""
        raise UsageError(f"load --dataset: the benchmark {self.name} does not offer it")

    def label(self, record: Any) -> Label | None:
        """Returns the question that `review` asks people about a record; None: no question. A benchmark without this
        method has no review."""
        raise UsageError(f"review: {self.title} offers nothing to label")

    def labeller(self, manifest: Mapping[str, Any] | None, *, is_shown: bool) -> Labeller:
        """Returns the maker of labels for one run, where labels need more than a record. `is_shown`: whether a person
        will see the question; otherwise choices and readings are enough."""
        return Labeller(self.Record, self.label)

    def judging(self, manifest: Mapping[str, Any]) -> Judging:
        """Returns how the kept answers of the run with this manifest are judged anew. A benchmark without this method
        has no judge."""
        raise UsageError(
            f"judge: no judge reads the answers of {self.title}: `millstream review` lets people check them"
        )

    def command_of(self, manifest: Mapping[str, Any]) -> str:
        """Returns the command that runs the same benchmark again with the same prompts; empty if the manifest has too
        little."""
        return command_again(manifest, self.name, self._words_of)

    def _words_of(self, kept: Mapping[str, Any]) -> list[str]:
        """Returns the words after `run` that name the benchmark and its options."""
        return [self.name, *words_kept(self.Options, kept)]
