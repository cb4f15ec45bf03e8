"""Prepares a run, says what it is expected to take, and chooses the items of its pilot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import structs

from ....configuration.configuration import settings_for
from ....configuration.declared_options import kept_of
from ....configuration.errors import UsageError
from ....engine.call import Call
from ....engine.pairs import Pair
from ....providers.search.access import is_search
from ..door.benchmark import ItemBenchmark, Order, RunBasis
from ..door.defect import benchmark_code
from ..door.expected import Chain, Expected, Load, Span
from ..door.item_set import no_item
from ..door.judges import Judges, judge_note
from ..door.prepared_run import PreparedRun
from ..door.registry import benchmark_named
from ..door.run_items import highest_limits, items_of, other_calls
from ..door.treatments import specified_pairs
from ..running.sending import at_once_in
from .forecast import expected_of
from .preparation import (
    address_of,
    begun_with,
    check_cost_is_bounded,
    check_hosts,
    check_models_take,
    check_sinks,
    check_snapshot,
    kept,
    model_remarks,
    pairs_of,
)
from .workers import CALL_SECONDS

_OF_ANSWERS = "prompts are made of answers, so nobody knows their tokens before: --pilot N measures them"
# Options that the specification has under names of its own.
_WHO = ("model", "temperature", "reasoning_effort", "dataset")


def prepare(order: Order) -> PreparedRun:
    """Checks a run completely and returns it ready to begin. Writes nothing."""
    return checked(run_of(*benchmark_named(order.run.benchmark).ordered(order)))


def checked(prepared: PreparedRun) -> PreparedRun:
    """Returns a run whose folder can be written, with what should be read about its models. Raises an error before a
    folder is created."""
    check_hosts(prepared.settings)
    check_snapshot(prepared.settings)
    check_sinks(prepared.settings)
    return structs.replace(prepared, notes=(*prepared.notes, *model_remarks(prepared)))


def run_of(benchmark: ItemBenchmark[Any], order: Order) -> PreparedRun:
    """Checks a run of a benchmark and returns it ready to begin. Writes nothing."""
    options, readings = order.run.options, order.run.readings
    names = dict.fromkeys([*options.model, *(call.model for call in other_calls(benchmark, options))])
    settings = settings_for(tuple(names), order.sending, order.configuration, needs_keys=order.needs_keys)
    options, settings = benchmark.settled(options, settings)
    others = other_calls(benchmark, options)
    temperatures = getattr(options, "temperature", ()) or benchmark.temperatures
    efforts = getattr(options, "reasoning_effort", ())
    pairs, notes = pairs_of(options.model, temperatures, efforts or benchmark.efforts, settings, order.out)
    if not efforts:
        pairs = tuple(pair._replace(effort=None) for pair in pairs)
    begun = begun_with(order.out, benchmark.name, "max_tokens", "max_tokens")
    limits = {
        pair: benchmark.max_tokens_of(options, pair, begun, thinks=settings.facts_of(pair.model).thinks_at(pair.effort))
        for pair in pairs
    }
    highest = {name: limit for name, limit in highest_limits(limits, others).items() if not is_search(name)}
    check_cost_is_bounded(highest, settings, has_option=benchmark.is_asked_once or not others)
    items = items_of(benchmark, options)
    if not len(items):
        raise UsageError(f"{benchmark.title}: these options leave no item to ask")
    path = getattr(options, "dataset", None) or f"those that come with {benchmark.title}"
    run = PreparedRun(
        benchmark=benchmark,
        out=order.out,
        options=options,
        readings=readings,
        limits=limits,
        items=items,
        settings=settings,
        endpoints={name: address_of(name, settings) for name in names},
        kept={benchmark.name: {**kept_of(options), **kept_of(readings)}, "sending": kept(order.sending)},
        dataset={**(items.dataset or {"path": path, "digest": items.digest, "items": len(items)})},
    )
    run = structs.replace(run, specification=benchmark.specification(run) or specification_of(benchmark, run))
    checked = [*first_calls(run)]
    for call in benchmark.others(options):
        if isinstance(call, Call):
            checked.append(Judges(settings).as_sent(call))
            if call.temperature is not None:
                notes += judge_note(call.model, call.reasoning_effort, settings, call.tag or "")
    check_models_take(checked, settings)
    return benchmark.completed(structs.replace(run, notes=(*items.notes, *dict.fromkeys(notes))))


def first_calls(run: PreparedRun) -> Iterator[Call]:
    """Yields a call to each pair with the parameters of all its calls."""
    benchmark, first = run.benchmark, next(iter(run.items))
    for pair, limit in run.limits.items():
        if benchmark.is_asked_once:
            with benchmark_code(f"{benchmark.title}, item {first.id!r}"):
                yield benchmark.call(first, run.options_of(pair), pair)
        else:
            yield Call(pair.model, "?", temperature=pair.temperature, max_tokens=limit, reasoning_effort=pair.effort)


def calls_of(run: PreparedRun, pair: Pair, skip: Callable[[str], bool] = no_item) -> Iterator[tuple[str, Call]]:
    """Yields a pair's calls with their items' ids, where it is asked once for an item; none of the items that are
    skipped."""
    options = run.options_of(pair)
    for item in run.items.left(skip):
        yield item.id, run.benchmark.call(item, options, pair)


def specification_of(benchmark: ItemBenchmark[Any], run: RunBasis) -> dict[str, Any]:
    """Returns the specification of a benchmark without one of its own: options, and what the items are. An option
    without a value is left out, so that one which is new changes no earlier run."""
    chosen = {name: value for name, value in kept_of(run.options).items() if name not in _WHO and value is not None}
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


def forecast(prepared: PreparedRun, *, looks_into_cache: bool) -> Expected:
    """Returns the calls and tokens that a run is expected to take on each lane. For items of several calls it assumes,
    for each step, one call of the model under test and one of every other model, if the benchmark says nothing else.
    `looks_into_cache`: calls that the cache answers are left out."""
    benchmark, items, limits = prepared.benchmark, prepared.items, prepared.limits
    if benchmark.is_asked_once:
        expected = expected_of(
            prepared,
            lambda pair: (call for _, call in calls_of(prepared, pair)),
            looks_into_cache=looks_into_cache,
            whole=items.whole,
        )
    else:
        treatments = Counter(pair.model for pair in limits)
        others = {call.model for call in other_calls(benchmark, prepared.options)}
        steps = max(items.steps.values())
        chain = Chain(len(items) * len(limits), at_once_in(prepared), steps, CALL_SECONDS, benchmark.unit)
        expected = Expected(loads={}, chain=chain, remarks=[_OF_ANSWERS])
        for lane in prepared.lanes:
            count = items.lines * (treatments[lane] + (len(limits) if lane in others else 0))
            expected.loads[lane] = Load(Span(count, count), input=None)
    expected.what = f"{len(items):,} items of {items.lines:,} {benchmark.unit}s"
    expected.more = {"items": len(items), "lines": items.lines}
    return benchmark.forecast(prepared, expected)
