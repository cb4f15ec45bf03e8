"""Prepares, sends and counts a run of a benchmark made of items."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
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
from .call_items import CallBenchmark
from .defect import BenchmarkDefect, benchmark_code
from .item import Item, ItemSet, each_item, steps_in, steps_of
from .item_line import ItemLine
from .journals import read_done
from .judges import Judges, judge_note
from .preparation import (
    PreparedRun,
    address_of,
    check_cost_is_bounded,
    check_models_take,
    kept,
    pairs_of,
    worst_costs,
)
from .recount import StepTotals, recount
from .scoring import ScoredBenchmark, ScoredRun, scores_of
from .sending import SendPlan, StepItems, at_once_of, send_calls_of, send_steps_of
from .served import served_rows
from .stored_calls import RunLine, StoredCall
from .treatments import pairs_in, specified_pairs
from .work import RunCounts

if TYPE_CHECKING:
    from ...wiring.engine import Engine
    from .benchmark import Order

_CHARS_A_TOKEN = 4
# Options that older specifications do not have.
_IF_SET = ("judge_reasoning_effort",)
# Options that the specification has under names of its own.
_WHO = ("model", "temperature", "reasoning_effort", "dataset")


class OfItems(CallBenchmark, StepItems, ScoredBenchmark, Protocol):
    """The interface of a benchmark made of items, of one call or several."""

    @property
    def name(self) -> str: ...

    @property
    def unit(self) -> str: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def has_calls(self) -> bool: ...

    @property
    def unit_name(self) -> str: ...

    @property
    def Line(self) -> type[ItemLine]: ...

    @property
    def temperatures(self) -> tuple[float | None, ...]: ...

    @property
    def reads_pages(self) -> bool: ...

    @property
    def items_per_rpm(self) -> float | None: ...

    def others(self, options: Any) -> Sequence[str | Call] | Mapping[str, int | None]: ...

    @property
    def Totals(self) -> type[StepTotals]: ...

    def entry(self, part: Mapping[str, Any], pair: Pair) -> Mapping[str, Any]: ...

    def remarks(self, part: Mapping[str, Any]) -> Iterable[str]: ...

    def settled(self, options: Any, settings: Settings) -> tuple[Any, Settings]: ...

    def specification(self, run: RunBasis) -> dict[str, Any]: ...

    def cells(self, entry: Mapping[str, Any]) -> tuple[str, ...]: ...


class ItemWork(Struct, frozen=True):
    """A run of a benchmark made of items, ready to be sent, counted and scored."""

    of: OfItems
    """The benchmark."""
    options: Any
    """Its options."""
    readings: Any
    """The readings of the run's own scores."""
    asked_pairs: tuple[Pair, ...]
    """The models and their treatments."""
    steps: Mapping[str, int]
    """The number of each item's journal lines, by its id."""
    specification: dict[str, Any]
    """The values that decide prompts and answers, as the manifest holds them."""
    settings: Settings
    """The settings by which calls are sent."""
    held: ItemSet | None = None
    """The items, where the run keeps them."""

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
        return steps_in(self.steps)

    @property
    def lanes(self) -> tuple[str, ...]:
        return tuple(self.max_tokens)

    @property
    def max_tokens(self) -> dict[str, int | None]:
        return limits_of(self.of, self.options)

    @property
    def score_columns(self) -> tuple[str, ...]:
        return self.of.columns

    @property
    def at_once(self) -> int:
        """The number of items of several calls that run at once."""
        settings, share = self.settings, self.of.items_per_rpm
        under_test = dict.fromkeys(pair.model for pair in self.asked_pairs)
        return at_once_of(
            ((settings.concurrency_of(model), settings.quota_of(model).rpm) for model in under_test), share
        )

    def pairs(self) -> list[Pair]:
        return list(self.asked_pairs)

    def each_item(self) -> Iterable[Item]:
        """Returns the items, also those that a pilot leaves out."""
        return each_item(self.held or self.of.items(self.options))

    def calls(self, pair: Pair) -> Iterator[tuple[str, Call]]:
        """Yields a pair's calls with their items' ids, for items of one call."""
        for item in self.each_item():
            yield item.id, self.of.call(item, self.options, pair)

    def worst_calls(self, settings: Settings) -> dict[str, float]:
        """Returns the dollars of each lane's dearest call: the one with the longest prompt, or, where prompts contain
        answers, one that fills the model's window or what the specification's `prompt_tokens` have for the lane. Lanes
        without a price are left out."""
        prices = settings.price_table()
        return worst_costs(
            map(self._dearest_call, (lane for lane in self.lanes if prices.get(lane) is not None)), settings
        )

    def _dearest_call(self, lane: str) -> Call:
        pair = next((pair for pair in self.asked_pairs if pair.model == lane), None)
        if self.of.has_calls and pair is not None:
            return max((call for _, call in self.calls(pair)), key=chars_of, default=Call(lane, ""))
        limits = self.specification.get("prompt_tokens")
        tokens = (self.settings.window(lane) or WINDOW) if limits is None else limits.get(lane, 0)
        return Call(lane, "x" * (_CHARS_A_TOKEN * tokens), max_tokens=self.max_tokens[lane])

    def read_done(self, folder: RunFolder) -> FinishedItems:
        return read_done(folder, self.of.Line)

    async def send(
        self, engine: Engine, folder: RunFolder, done: FinishedItems, item_ended: Callable[[], None]
    ) -> list[Stop]:
        if self.of.reads_pages and self.settings.mode not in ("replay", "strict"):
            # Checked before anything is paid for. A replay has its texts already.
            await engine.check_pages()
        sent = SendPlan(
            self.asked_pairs,
            self.options,
            done,
            self.steps,
            self.at_once,
            Judges(self.settings),
            self.specification,
            None if self.held is None else self.held.items,
        )
        if self.of.has_calls:
            return await send_calls_of(self.of, engine, folder, sent)
        return await send_steps_of(self.of, engine, folder, sent, item_ended)

    def count(self, folder: RunFolder) -> RunCounts:
        journals = {str(each.path): each.read() for each in (folder.records, folder.failures)}
        steps = None if self.of.has_calls else dict.fromkeys(self.asked_pairs, self.steps)
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
        return self.of.cells(self.of.entry(scores[self.of.name], pair))


class RunBasis(Struct, frozen=True, kw_only=True):
    """What is decided of a run before its specification."""

    options: Any
    """The benchmark's options, settled."""
    readings: Any
    """The readings of the run's own scores."""
    pairs: tuple[Pair, ...]
    """The models under test and their treatments."""
    items: ItemSet
    """The items."""
    settings: Settings
    """The settings by which calls are sent."""
    endpoints: Mapping[str, str]
    """The address of each lane, as in the cache keys of its calls."""
    out: Path
    """The run's folder. What a run has begun with there stays, whatever the table of models says by now."""


def prepare(benchmark: OfItems, order: Order) -> PreparedRun:
    """Checks a run completely and returns it ready to begin. Writes nothing."""
    options, readings = order.run.options, order.run.readings
    names = dict.fromkeys([*options.model, *(call.model for call in other_calls(benchmark, options))])
    models, searches = (tuple(name for name in names if is_search(name) is kind) for kind in (False, True))
    settings = settings_for(models, order.sending, order.configuration, searches, needs_keys=order.needs_keys)
    options, settings = benchmark.settled(options, settings)
    others = other_calls(benchmark, options)
    limits = {name: limit for name, limit in limits_of(benchmark, options).items() if name in models}
    check_cost_is_bounded(limits, settings, has_option=not others)
    temperatures = getattr(options, "temperature", ()) or benchmark.temperatures
    efforts = getattr(options, "reasoning_effort", ())
    pairs, notes = pairs_of(options.model, temperatures, efforts, settings, order.out)
    items = items_of(benchmark, options)
    steps = steps_of(items.items, benchmark.title)
    if not steps:
        raise UsageError(f"{benchmark.title}: these options leave no item to ask")
    checked = [*_first_calls(benchmark, options, items.items[0], pairs)]
    for call in benchmark.others(options):
        if isinstance(call, Call):
            checked.append(Judges(settings).as_sent(call))
            notes += judge_note(call.model, call.reasoning_effort, settings) if call.temperature is not None else ()
    check_models_take(checked, settings)
    specified = benchmark.specification(
        RunBasis(
            options=options,
            readings=readings,
            pairs=pairs,
            items=items,
            settings=settings,
            endpoints={name: address_of(name, settings) for name in names},
            out=order.out,
        )
    )
    held = items if items.is_kept else None
    path = getattr(options, "dataset", None) or f"those that come with {benchmark.title}"
    return PreparedRun(
        out=order.out,
        work=ItemWork(benchmark, options, readings, pairs, steps, specified, settings, held),
        settings=settings,
        specification=specified,
        options={benchmark.name: {**kept_of(options), **kept_of(readings)}, "sending": kept(order.sending)},
        dataset={**(items.dataset or {"path": path, "digest": items.digest, "items": len(items.items)})},
        notes=(*items.notes, *dict.fromkeys(notes)),
    )


def specification_of(benchmark: OfItems, run: RunBasis) -> dict[str, Any]:
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
        "items": len(run.items.items),
        "groups": dict(Counter(item.group for item in run.items.items)),
        "lines": sum(item.steps for item in run.items.items),
        "data": run.items.digest,
    }


def call_of(benchmark: OfItems, line: RunLine) -> StoredCall:
    """Returns the call of a one-call item, built as `resume` builds it. Raises UsageError if the run has no such
    item."""
    specification = line.manifest["specification"]
    pair = line.pair(pairs_in(specification))
    data = items_of(benchmark, line.options)
    items = {item.id: item for item in data.items}
    if (item := items.get(line.id)) is None:
        raise UsageError(f"{line.folder} has no item {line.id!r}: its ids are as {next(iter(items), 'none')}")
    with benchmark_code(f"{benchmark.title}, item {item.id!r}"):
        call = benchmark.call(item, line.options, pair)
    has_changed = data.digest != specification.get("data")
    return StoredCall(call, ("the data have changed since the run began",) if has_changed else ())


def limits_of(benchmark: OfItems, options: Any) -> dict[str, int | None]:
    """Returns each model's highest `max_tokens`; None where its calls set none. A model that is both under test and a
    judge has the higher one."""
    limits: dict[str, int | None] = dict.fromkeys(options.model, getattr(options, "max_tokens", None))
    for call in other_calls(benchmark, options):
        own, known = call.max_tokens, limits.get(call.model, call.max_tokens)
        limits[call.model] = None if own is None or known is None else max(own, known)
    return limits


def other_calls(benchmark: OfItems, options: Any) -> list[Call]:
    """Returns a call to each model that is called beside those under test, with its `max_tokens`."""
    others = benchmark.others(options)
    if isinstance(others, Mapping):
        return [Call(name, "?", max_tokens=limit) for name, limit in others.items()]
    return [other if isinstance(other, Call) else Call(other, "?") for other in others]


def digest_of(items: Iterable[Item]) -> str:
    """Returns the SHA-256 of all items; a value that JSON can't hold counts by its type's name."""
    found, encode = hashlib.sha256(), msgspec.json.Encoder(enc_hook=_type_of, order="sorted").encode
    for item in items:
        found.update(encode([item.id, item.of, item.steps, item.group, item.data]))
        found.update(b"\n")
    return found.hexdigest()


def _type_of(value: object) -> str:
    # A repr may contain an address in memory, which differs in the next process.
    return type(value).__qualname__


def items_of(benchmark: OfItems, options: Any) -> ItemSet:
    """Returns a run's items, with their digest."""
    try:
        with benchmark_code(benchmark.title):
            found = benchmark.items(options)
            items = found if isinstance(found, ItemSet) else ItemSet(items=list(found), is_kept=False)
            return structs.replace(items, digest=items.digest or digest_of(items.items))
    except BenchmarkDefect as defect:
        if not isinstance(error := defect.__cause__, OSError):
            raise
        raise UsageError(
            f"{error.filename or benchmark.title}: expected readable data, got: {error.strerror}"
        ) from error


def _first_calls(benchmark: OfItems, options: Any, first: Item, pairs: Iterable[Pair]) -> Iterator[Call]:
    """Yields a call to each pair with the parameters of all its calls."""
    for pair in pairs:
        limit = getattr(options, "max_tokens", None)
        call = Call(pair.model, "?", temperature=pair.temperature, max_tokens=limit, reasoning_effort=pair.effort)
        if benchmark.has_calls:
            with benchmark_code(f"{benchmark.title}, item {first.id!r}"):
                call = benchmark.call(first, options, pair)
        yield call


def work_of(prepared: PreparedRun) -> ItemWork:
    work = prepared.work
    assert isinstance(work, ItemWork)
    return work
