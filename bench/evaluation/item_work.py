"""Prepares, sends and counts a run of a benchmark made of items."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from ...wiring import Settings, access_to
from .call_items import CallBenchmark
from .defect import BenchmarkDefect, benchmark_code
from .forecast import Chain, Expected, Load, Span, expected_of
from .item import Item, steps_in, steps_of
from .journals import read_done
from .judges import Judges
from .preparation import (
    ItemsOfPilot,
    PreparedRun,
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
from .work import RunCounts, entry_of

if TYPE_CHECKING:
    from ...wiring.engine import Engine
    from .benchmark import Order

_CHARS_A_TOKEN = 4
# Of a call whose model answers at its usual speed; one that thinks may take longer.
_CALL_SECONDS = Span(2, 20)
# Options that the specification has under names of its own.
# Options that older specifications do not have.
_IF_SET = ("judge_reasoning_effort",)
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

    def others(self, options: Any) -> Sequence[str] | Mapping[str, int | None]: ...

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
        return tuple(dict.fromkeys([*(pair.model for pair in self.asked_pairs), *self.of.others(self.options)]))

    @property
    def max_tokens(self) -> dict[str, int | None]:
        return limits_of(self.of, self.options)

    @property
    def score_columns(self) -> tuple[str, ...]:
        return self.of.columns

    @property
    def at_once(self) -> int:
        """The number of items of several calls that run at once."""
        under_test = dict.fromkeys(pair.model for pair in self.asked_pairs)
        return at_once_of(map(self.settings.concurrency_of, under_test))

    def pairs(self) -> list[Pair]:
        return list(self.asked_pairs)

    def calls(self, pair: Pair) -> Iterator[tuple[str, Call]]:
        """Yields a pair's calls with their items' ids, for items of one call."""
        for item in self.of.items(self.options):
            yield item.id, self.of.call(item, self.options, pair)

    def worst_calls(self, settings: Settings) -> dict[str, float]:
        """Returns the dollars of each lane's dearest call: the one with the longest prompt, or one that fills the
        model's window where prompts contain answers. Lanes without a price are left out."""
        prices = settings.price_table()
        return worst_costs(
            map(self._dearest_call, (lane for lane in self.lanes if prices.get(lane) is not None)), settings
        )

    def _dearest_call(self, lane: str) -> Call:
        pair = next((pair for pair in self.asked_pairs if pair.model == lane), None)
        if self.of.has_calls and pair is not None:
            return max((call for _, call in self.calls(pair)), key=chars_of, default=Call(lane, ""))
        text = "x" * (_CHARS_A_TOKEN * (self.settings.window(lane) or WINDOW))
        return Call(lane, text, max_tokens=self.max_tokens[lane])

    def read_done(self, folder: RunFolder) -> FinishedItems:
        return read_done(folder)

    async def send(
        self, engine: Engine, folder: RunFolder, done: FinishedItems, item_ended: Callable[[], None]
    ) -> list[Stop]:
        if self.of.has_calls:
            return await send_calls_of(
                self.of, engine, folder, SendPlan(self.asked_pairs, self.options, done, self.steps)
            )
        sent = SendPlan(self.asked_pairs, self.options, done, self.steps, self.at_once, Judges(self.settings))
        return await send_steps_of(self.of, engine, folder, sent, item_ended)

    def count(self, folder: RunFolder) -> RunCounts:
        journals = {str(each.path): each.read() for each in (folder.records, folder.failures)}
        steps = None if self.of.has_calls else dict.fromkeys(self.asked_pairs, self.steps)
        counted = recount(StepTotals(), journals, steps)
        rows = served_rows(counted.pairs, folder.manifest["answers_as"], folder.records.read)
        run = ScoredRun(
            folder=folder.folder,
            manifest=rows.manifest(folder.manifest),
            readings=self.readings,
            rows=rows,
            source=str(folder.records.path),
        )
        scores = scores_of(self.of, rows.lines(folder.records.read()), run)
        found = scores[self.of.name]
        return RunCounts(counted.pairs, scores, tuple(said_of(found)), unmeasured=tuple(found["unmeasured"]))

    def score_cells(self, scores: Mapping[str, Any], pair: Pair) -> tuple[str, ...]:
        return self.of.cells(entry_of(scores[self.of.name], pair))


def prepare(benchmark: OfItems, order: Order) -> PreparedRun:
    """Checks a run completely and returns it ready to begin. Writes nothing."""
    options, readings = order.run.options, order.run.readings
    models: tuple[str, ...] = options.model
    others = tuple(benchmark.others(options))
    every = tuple(dict.fromkeys([*models, *others]))
    settings = settings_for(every, order.sending, order.configuration, needs_keys=order.needs_keys)
    check_cost_is_bounded(limits_of(benchmark, options), settings, has_option=not others)
    temperatures, efforts = (getattr(options, name, ()) for name in ("temperature", "reasoning_effort"))
    pairs, notes = pairs_of(models, temperatures, efforts, settings, order.out)
    items = _items_of(benchmark, options)
    steps = steps_of(items, benchmark.title)
    if not steps:
        raise UsageError(f"{benchmark.title}: these options leave no item to ask")
    check_models_take(_first_calls(benchmark, options, items[0], pairs), settings)
    chosen = {
        name: value
        for name, value in kept_of(options).items()
        if name not in _WHO and (name not in _IF_SET or value is not None)
    }
    specified = {
        "benchmark": benchmark.name,
        **specified_pairs(pairs),
        "endpoints": {model: access_to(model, settings).target.specified for model in every},
        "options": chosen,
        "items": len(items),
        "groups": dict(Counter(item.group for item in items)),
        "lines": steps_in(steps),
        "data": digest_of(items),
    }
    dataset = getattr(options, "dataset", None)
    return PreparedRun(
        out=order.out,
        work=ItemWork(benchmark, options, readings, pairs, steps, specified, settings),
        settings=settings,
        specification=specified,
        options={benchmark.name: {**kept_of(options), **kept_of(readings)}, "sending": kept(order.sending)},
        dataset={
            "path": dataset or f"those that come with {benchmark.title}",
            "digest": specified["data"],
            "items": len(items),
        },
        notes=notes,
    )


def call_of(benchmark: OfItems, line: RunLine) -> StoredCall:
    """Returns the call of a one-call item, built as `resume` builds it. Raises UsageError if the run has no such
    item."""
    specification = line.manifest["specification"]
    pair = line.pair(pairs_in(specification))
    items = {item.id: item for item in _items_of(benchmark, line.options)}
    if (item := items.get(line.id)) is None:
        raise UsageError(f"{line.folder} has no item {line.id!r}: its ids are as {next(iter(items), 'none')}")
    with benchmark_code(f"{benchmark.title}, item {item.id!r}"):
        call = benchmark.call(item, line.options, pair)
    has_changed = digest_of(items.values()) != specification.get("data")
    return StoredCall(call, ("the data have changed since the run began",) if has_changed else ())


def limits_of(benchmark: OfItems, options: Any) -> dict[str, int | None]:
    """Returns each model's highest `max_tokens`; None where its calls set none. A model that is both under test and a
    judge has the higher one."""
    others = benchmark.others(options)
    limits: dict[str, int | None] = dict.fromkeys(options.model, getattr(options, "max_tokens", None))
    for model in others:
        own = others[model] if isinstance(others, Mapping) else None
        known = limits.get(model, own)
        limits[model] = None if own is None or known is None else max(own, known)
    return limits


def said_of(found: Mapping[str, Any]) -> list[str]:
    """Returns the sentences below the table of scores: remarks, then comparisons."""
    return [*found.get("remarks", ()), *found.get("compared", ())]


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


def _items_of(benchmark: OfItems, options: Any) -> list[Item]:
    try:
        with benchmark_code(benchmark.title):
            return list(benchmark.items(options))
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


_OF_ANSWERS = "prompts are made of answers, so nobody knows their tokens before: --pilot N measures them"


def forecast(prepared: PreparedRun, *, looks_into_cache: bool = True) -> Expected:
    """Returns what a run is expected to take. For items of several calls it assumes, for each step, one call of the
    model under test and one of every other model."""
    work = work_of(prepared)
    if work.of.has_calls:
        limit = getattr(work.options, "max_tokens", None)
        expected = expected_of(
            prepared,
            lambda pair: (call for _, call in work.calls(pair)),
            lambda pair: limit,
            looks_into_cache=looks_into_cache,
        )
    else:
        treatments, others = Counter(pair.model for pair in work.asked_pairs), work.of.others(work.options)
        items = len(work.steps) * len(work.asked_pairs)
        chain = Chain(items, work.at_once, max(work.steps.values()), _CALL_SECONDS, work.item)
        expected = Expected(loads={}, chain=chain, remarks=[_OF_ANSWERS])
        for lane in work.lanes:
            count = work.items * (treatments[lane] + (len(work.asked_pairs) if lane in others else 0))
            expected.loads[lane] = Load(Span(count, count), input=None)
    expected.what = f"{len(work.steps):,} items of {work.items:,} {work.item}s"
    expected.more = {"items": len(work.steps), "lines": work.items}
    return expected


def pilot_items(prepared: PreparedRun, size: int) -> ItemsOfPilot:
    """Returns `size` of the run's items, spread evenly over it."""
    work = work_of(prepared)
    chosen = _spread(work, size)
    if work.of.has_calls:
        calls = {pair: [call for name, call in work.calls(pair) if name in chosen] for pair in work.asked_pairs}
        return ItemsOfPilot(run=prepared, items=len(chosen), of=len(work.steps), noun="prompt", calls=calls)
    few = structs.replace(work, steps={name: steps for name, steps in work.steps.items() if name in chosen})
    run = structs.replace(prepared, work=few)
    return ItemsOfPilot(run=run, items=len(chosen), of=len(work.steps), at_once=work.at_once)


def _spread(work: ItemWork, size: int) -> set[str]:
    """Returns the ids of `size` items that are spread evenly over the run."""
    names = list(work.steps)
    size = min(size, len(names))
    return {names[at * len(names) // size] for at in range(size)}


def work_of(prepared: PreparedRun) -> ItemWork:
    work = prepared.work
    assert isinstance(work, ItemWork)
    return work
