"""What a run of a benchmark made of items is expected to take, and the items of its pilot."""

from __future__ import annotations

from collections import Counter

from msgspec import structs

from .forecast import Chain, Expected, Load, Span, expected_of
from .item_work import other_calls, work_of
from .preparation import ItemsOfPilot, PreparedRun

# Of a call whose model answers at its usual speed; one that thinks may take longer.
_CALL_SECONDS = Span(2, 20)
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
        treatments = Counter(pair.model for pair in work.asked_pairs)
        others = {call.model for call in other_calls(work.of, work.options)}
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
    """Returns `size` of the run's items: the first ones if these stand for all, else some spread evenly over it."""
    work = work_of(prepared)
    names = list(work.steps)
    size = min(size, len(names))
    is_balanced = work.held is not None and work.held.is_balanced
    chosen = {names[at if is_balanced else at * len(names) // size] for at in range(size)}
    if work.of.has_calls:
        calls = {pair: [call for name, call in work.calls(pair) if name in chosen] for pair in work.asked_pairs}
        return ItemsOfPilot(run=prepared, items=len(chosen), of=len(work.steps), noun="prompt", calls=calls)
    few = structs.replace(work, steps={name: steps for name, steps in work.steps.items() if name in chosen})
    run = structs.replace(prepared, work=few)
    return ItemsOfPilot(run=run, items=len(chosen), of=len(work.steps), noun=work.of.unit_name, at_once=work.at_once)
