"""What a run of a benchmark made of items is expected to take, and the items of its pilot."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import structs

from .benchmark import ItemBenchmark
from .forecast import Chain, Expected, Load, Span, expected_of
from .item_work import other_calls, work_of
from .preparation import ItemsOfPilot, PreparedRun

# Of a call whose model answers at its usual speed; one that thinks may take longer.
_CALL_SECONDS = Span(2, 20)
_OF_ANSWERS = "prompts are made of answers, so nobody knows their tokens before: --pilot N measures them"


def forecast(benchmark: ItemBenchmark[Any], prepared: PreparedRun, *, looks_into_cache: bool) -> Expected:
    """Returns the calls and tokens that a run is expected to take on each lane. `looks_into_cache`: calls that the
    cache answers are left out."""
    own = benchmark.forecast(prepared, looks_into_cache=looks_into_cache)
    return general_forecast(prepared, looks_into_cache=looks_into_cache) if own is None else own


def general_forecast(prepared: PreparedRun, *, looks_into_cache: bool = True) -> Expected:
    """Returns what a run is expected to take. For items of several calls it assumes, for each step, one call of the
    model under test and one of every other model."""
    work = work_of(prepared)
    if work.of.has_calls:
        expected = expected_of(
            prepared,
            lambda pair: (call for _, call in work.calls(pair)),
            work.limits.__getitem__,
            looks_into_cache=looks_into_cache,
            whole=work.item_set.whole,
        )
    else:
        treatments = Counter(pair.model for pair in work.limits)
        others = {call.model for call in other_calls(work.of, work.options)}
        items = len(work.item_set) * len(work.limits)
        chain = Chain(items, work.at_once, max(work.item_set.steps.values()), _CALL_SECONDS, work.item)
        expected = Expected(loads={}, chain=chain, remarks=[_OF_ANSWERS])
        for lane in work.lanes:
            count = work.items * (treatments[lane] + (len(work.limits) if lane in others else 0))
            expected.loads[lane] = Load(Span(count, count), input=None)
    expected.what = f"{len(work.item_set):,} items of {work.items:,} {work.item}s"
    expected.more = {"items": len(work.item_set), "lines": work.items}
    return expected


def pilot_items(benchmark: ItemBenchmark[Any], prepared: PreparedRun, size: int) -> ItemsOfPilot:
    """Returns `size` of the run's items, which stand for all."""
    if (own := benchmark.pilot_items(prepared, size)) is not None:
        return own
    work = work_of(prepared)
    rank = {name: number for number, name in enumerate(work.item_set.sample(size))}
    if not work.of.has_calls:
        run, noun = (
            structs.replace(prepared, work=structs.replace(work, item_set=work.item_set.only(rank))),
            work.of.unit_name,
        )
        return ItemsOfPilot(run=run, items=len(rank), of=len(work.item_set), noun=noun, at_once=work.at_once)
    calls = {}
    for pair in work.limits:
        # In the sample's order, not the run's: the answers before a stop are then spread over the run too.
        chosen = sorted(work.calls(pair, lambda name: name not in rank), key=lambda each: rank[each[0]])
        calls[pair] = [call for _, call in chosen]
    return ItemsOfPilot(run=prepared, items=len(rank), of=len(work.item_set), noun="prompt", calls=calls)
