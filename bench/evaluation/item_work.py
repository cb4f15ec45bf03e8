"""Prepares, sends and counts a run of a benchmark made of items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from ...configuration.configuration import settings_for
from ...configuration.declared_options import kept_of
from ...configuration.errors import UsageError
from ...engine.attempts.estimate import chars_of
from ...engine.call import Call
from ...engine.fault import Stop
from ...engine.runs.pairs import FinishedItems, Pair
from ...engine.runs.run_folder import RunFolder
from ...providers.models import WINDOW
from ...providers.search.access import is_search
from ...wiring import Settings
from .benchmark import ItemBenchmark, Order
from .call_items import CallSweep
from .defect import BenchmarkDefect, benchmark_code
from .item import Item
from .item_set import ItemSet, no_item
from .journals import read_done
from .judges import Judges, judge_note
from .preparation import (
    PreparedRun,
    RunBasis,
    address_of,
    begun_with,
    check_cost_is_bounded,
    check_models_take,
    kept,
    pairs_of,
    worst_costs,
)
from .recount import recount
from .scoring import scores_of
from .sending import SendPlan, at_once_of, send_steps_of
from .served import ScoredRun, served_rows
from .stored_calls import RunLine, StoredCall
from .treatments import pairs_in, specified_pairs
from .work import RunCounts, entry_of

if TYPE_CHECKING:
    from ...wiring.engine import Engine

_CHARS_A_TOKEN = 4
# Options that older specifications do not have.
_IF_SET = ("judge_reasoning_effort",)
# Options that the specification has under names of its own.
_WHO = ("model", "temperature", "reasoning_effort", "dataset")


class ItemWork(Struct, frozen=True):
    """A run of a benchmark made of items, ready to be sent, counted and scored."""

    of: ItemBenchmark[Any]
    """The benchmark."""
    options: Any
    """Its options."""
    readings: Any
    """The readings of the run's own scores."""
    limits: Mapping[Pair, int | None]
    """The models and their treatments, with the max_tokens of their calls; None: none is sent."""
    item_set: ItemSet
    """The items."""
    specification: dict[str, Any]
    """The values that decide prompts and answers, as the manifest holds them."""
    settings: Settings
    """The settings by which calls are sent."""

    @property
    def benchmark(self) -> str:
        return self.of.name

    @property
    def item(self) -> str:
        return self.of.unit

    @property
    def is_item_a_call(self) -> bool:
        return self.of.has_calls

    @property
    def items(self) -> int:
        return self.item_set.lines

    @property
    def lanes(self) -> tuple[str, ...]:
        return tuple(self.max_tokens)

    @property
    def max_tokens(self) -> dict[str, int | None]:
        return highest_limits(self.limits, other_calls(self.of, self.options))

    @property
    def score_columns(self) -> tuple[str, ...]:
        return self.of.columns

    @property
    def at_once(self) -> int:
        """The number of items of several calls that run at once."""
        settings, share = self.settings, self.of.items_per_rpm
        under_test = dict.fromkeys(pair.model for pair in self.limits)
        return at_once_of(
            ((settings.concurrency_of(model), settings.quota_of(model).rpm) for model in under_test), share
        )

    def pairs(self) -> list[Pair]:
        return list(self.limits)

    def options_of(self, pair: Pair) -> Any:
        """Returns the options with the max_tokens of a pair's calls."""
        return _with_limit(self.options, self.limits[pair])

    def calls(self, pair: Pair, skip: Callable[[str], bool] = no_item) -> Iterator[tuple[str, Call]]:
        """Yields a pair's calls with their items' ids, for items of one call; none of the items that are skipped."""
        options = self.options_of(pair)
        for item in self.item_set.left(skip):
            yield item.id, self.of.call(item, options, pair)

    def first_calls(self) -> Iterator[Call]:
        """Yields a call to each pair with the parameters of all its calls."""
        first = next(iter(self.item_set))
        for pair, limit in self.limits.items():
            if self.of.has_calls:
                with benchmark_code(f"{self.of.title}, item {first.id!r}"):
                    yield self.of.call(first, self.options_of(pair), pair)
            else:
                yield _plain_call(pair, limit)

    def worst_calls(self, settings: Settings) -> dict[str, float]:
        """Returns the dollars of each lane's dearest call: the one with the longest prompt, or, where prompts contain
        answers, one that fills the model's window or what the specification's `prompt_tokens` have for the lane. Lanes
        without a price are left out."""
        prices = settings.price_table()
        lanes = [lane for lane in self.lanes if prices.get(lane) is not None]
        return worst_costs((call for lane in lanes for call in self._dearest_calls(lane)), settings)

    def _dearest_calls(self, lane: str) -> Iterator[Call]:
        pairs = [pair for pair in self.limits if pair.model == lane]
        if self.of.has_calls and pairs:
            options = self.options_of(pairs[0])
            longest = max(self.item_set.longest(), key=lambda item: chars_of(self.of.call(item, options, pairs[0])))
            yield from (self.of.call(longest, self.options_of(pair), pair) for pair in pairs)
        else:
            limits = self.specification.get("prompt_tokens")
            tokens = (self.settings.window(lane) or WINDOW) if limits is None else limits.get(lane, 0)
            yield Call(lane, "x" * (_CHARS_A_TOKEN * tokens), max_tokens=self.max_tokens[lane])

    def read_done(self, folder: RunFolder) -> FinishedItems:
        return read_done(folder, self.of.Line)

    async def send(
        self, engine: Engine, folder: RunFolder, done: FinishedItems, item_ended: Callable[[], None]
    ) -> list[Stop]:
        if self.of.reads_pages and self.settings.mode not in ("replay", "strict"):
            # Checked before anything is paid for. A replay has its texts already.
            await engine.check_pages()
        if self.of.has_calls:
            streams = {
                pair: (
                    self.item_set.left(done.of(pair).__contains__, is_untried=pair.model not in done.answered),
                    self.options_of(pair),
                )
                for pair in self.limits
            }
            return await CallSweep(self.of, engine, folder, self.options).run(streams)
        plan = SendPlan(
            self.pairs(), self.options, done, self.item_set, self.at_once, Judges(self.settings), self.specification
        )
        return await send_steps_of(self.of, engine, folder, plan, item_ended)

    def count(self, folder: RunFolder) -> RunCounts:
        journals = {str(each.path): each.read() for each in (folder.records, folder.failures)}
        steps = None if self.of.has_calls else dict.fromkeys(self.limits, self.item_set.steps)
        counted = recount(self.of.Totals(), journals, steps, self.of.Line)
        rows = served_rows(counted.pairs, folder.manifest["answers_as"], folder.records.read)
        run = ScoredRun(
            folder=folder.folder,
            manifest=rows.manifest(folder.manifest),
            readings=self.readings,
            rows=rows,
            source=str(folder.records.path),
        )
        scores = scores_of(self.of, rows.lines(folder.records.read()), run)
        part = scores[self.of.name]
        prices = self.settings.price_table()
        unpriced = [lane for lane in self.lanes if not is_search(lane) and prices.get(lane) is None]
        sentences, details = counted.summary(folder.folder, folder.manifest, unpriced)
        remarks = (*sentences, *self.of.remarks(part))
        return RunCounts(counted.pairs, scores, remarks, details, tuple(part["unmeasured"]))

    def score_cells(self, scores: Mapping[str, Any], pair: Pair) -> tuple[str, ...]:
        return self.of.cells(entry_of(scores[self.of.name], pair))


def prepare(benchmark: ItemBenchmark[Any], order: Order) -> PreparedRun:
    """Checks a run completely and returns it ready to begin. Writes nothing."""
    options, readings = order.run.options, order.run.readings
    names = dict.fromkeys([*options.model, *(call.model for call in other_calls(benchmark, options))])
    models, searches = (tuple(name for name in names if is_search(name) is kind) for kind in (False, True))
    settings = settings_for(models, order.sending, order.configuration, searches, needs_keys=order.needs_keys)
    options, settings = benchmark.settled(options, settings)
    others = other_calls(benchmark, options)
    temperatures = getattr(options, "temperature", ()) or benchmark.temperatures
    efforts = getattr(options, "reasoning_effort", ())
    pairs, notes = pairs_of(options.model, temperatures, efforts, settings, order.out)
    begun = begun_with(order.out, benchmark.name, "max_tokens", "max_tokens")
    limits = {
        pair: benchmark.max_tokens_of(options, pair, begun, thinks=settings.facts_of(pair.model).thinks_at(pair.effort))
        for pair in pairs
    }
    highest = {name: limit for name, limit in highest_limits(limits, others).items() if name in models}
    check_cost_is_bounded(highest, settings, has_option=not others)
    items = items_of(benchmark, options)
    if not len(items):
        raise UsageError(f"{benchmark.title}: these options leave no item to ask")
    basis = RunBasis(
        options=options,
        readings=readings,
        limits=limits,
        items=items,
        settings=settings,
        endpoints={name: address_of(name, settings) for name in names},
        out=order.out,
    )
    specified = benchmark.specification(basis) or specification_of(benchmark, basis)
    work = ItemWork(benchmark, options, readings, limits, items, specified, settings)
    checked = [*work.first_calls()]
    for call in benchmark.others(options):
        if isinstance(call, Call):
            checked.append(Judges(settings).as_sent(call))
            notes += judge_note(call.model, call.reasoning_effort, settings) if call.temperature is not None else ()
    check_models_take(checked, settings)
    path = getattr(options, "dataset", None) or f"those that come with {benchmark.title}"
    return PreparedRun(
        out=order.out,
        work=work,
        settings=settings,
        specification=specified,
        options={benchmark.name: {**kept_of(options), **kept_of(readings)}, "sending": kept(order.sending)},
        dataset={**(items.dataset or {"path": path, "digest": items.digest, "items": len(items)})},
        notes=(*items.notes, *dict.fromkeys(notes)),
    )


def specification_of(benchmark: ItemBenchmark[Any], run: RunBasis) -> dict[str, Any]:
    """Returns the specification of a benchmark without one of its own: options, and what the items are."""
    chosen = {
        name: value
        for name, value in kept_of(run.options).items()
        if name not in _WHO and (name not in _IF_SET or value is not None)
    }
    return {
        "benchmark": benchmark.name,
        **specified_pairs(run.pairs),
        "endpoints": dict(run.endpoints),
        "options": chosen,
        "items": len(run.items),
        "groups": dict(run.items.groups),
        "lines": run.items.lines,
        "data": run.items.digest,
    }


def call_of(benchmark: ItemBenchmark[Any], line: RunLine) -> StoredCall | None:
    """Returns the call of a one-call item, built as `resume` builds it; None: the line's own cache keys identify its
    calls. Raises UsageError if the run has no such item."""
    if not (benchmark.has_calls and benchmark.rebuilds_calls):
        return None
    specification = line.manifest["specification"]
    pair = line.pair(pairs_in(specification))
    items = items_of(benchmark, line.options)
    item = next(items.left(lambda name: name != line.id), None)
    if item is None:
        first = next(iter(items.steps), "none")
        raise UsageError(f"{line.folder} has no item {line.id!r}: {items.ids_are} {first}")
    begun = specification.get("max_tokens")
    limit = benchmark.max_tokens_of(line.options, pair, begun if isinstance(begun, Mapping) else {})
    with benchmark_code(f"{benchmark.title}, item {item.id!r}"):
        call = benchmark.call(item, _with_limit(line.options, limit), pair)
    return StoredCall(call, (items.have_changed,) if items.digest != specification.get("data") else ())


def highest_limits(limits: Mapping[Pair, int | None], others: Iterable[Call]) -> dict[str, int | None]:
    """Returns each model's highest `max_tokens`; None where its calls set none. A model that is both under test and a
    judge has the higher one."""
    every = [(pair.model, limit) for pair, limit in limits.items()]
    every += [(call.model, call.max_tokens) for call in others]
    highest: dict[str, int | None] = {}
    for model, limit in every:
        before = highest.get(model, limit)
        highest[model] = None if limit is None or before is None else max(limit, before)
    return highest


def other_calls(benchmark: ItemBenchmark[Any], options: Any) -> list[Call]:
    """Returns a call to each model that is called beside those under test, with its `max_tokens`."""
    others = benchmark.others(options)
    if isinstance(others, Mapping):
        return [Call(name, "?", max_tokens=limit) for name, limit in others.items()]
    return [other if isinstance(other, Call) else Call(other, "?") for other in others]


def items_of(benchmark: ItemBenchmark[Any], options: Any) -> ItemSet:
    """Returns a run's items. Raises UsageError for data that can't be read, and BenchmarkDefect if the benchmark's code
    raises anything else."""
    try:
        with benchmark_code(benchmark.title):
            items = benchmark.items(options)
            return items if isinstance(items, ItemSet) else made_anew(benchmark, options)
    except BenchmarkDefect as defect:
        if not isinstance(error := defect.__cause__, OSError):
            raise
        raise UsageError(
            f"{error.filename or benchmark.title}: expected readable data, got: {error.strerror}"
        ) from error


def made_anew(benchmark: ItemBenchmark[Any], options: Any) -> ItemSet:
    """Returns the items of a benchmark that is asked for them each time that they are needed."""

    def again() -> Iterable[Item]:
        items = benchmark.items(options)
        assert not isinstance(items, ItemSet)
        return items

    return ItemSet(again, title=benchmark.title)


def _with_limit(options: Any, limit: int | None) -> Any:
    return options if getattr(options, "max_tokens", None) == limit else structs.replace(options, max_tokens=limit)


def _plain_call(pair: Pair, limit: int | None) -> Call:
    return Call(pair.model, "?", temperature=pair.temperature, max_tokens=limit, reasoning_effort=pair.effort)


def work_of(prepared: PreparedRun) -> ItemWork:
    work = prepared.work
    assert isinstance(work, ItemWork)
    return work
