"""What a Chameleon run came to beyond its table: pages, steps that failed, judgements, citations, and who cost what.

Pure functions of what was counted. Says what to do about what can be mended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..bench.chameleon.recount import Recount
from ..metrics.chameleon.traces import Traces

READ = "ok"
STEPS = ("query", "search", "answer", "judge", "repair")


class Costs(Struct, frozen=True):
    """Dollars; None where nothing has a price. `models` are those under test, queries included; `unrecorded` is what
    turns cost that a stop left without a line, and which came from the cache later."""

    models: float | None
    judge: float | None
    search: float | None
    unrecorded: float = 0.0


class Details(Struct, frozen=True):
    """Of all pairs. `pages` by how reading ended, `steps` that turns failed at; `unpriced` are the lanes whose cost is
    in no sum."""

    pages: Mapping[str, int]
    steps: Mapping[str, int]
    held: int
    repaired: int
    unreadable: int
    invalid_citations: int
    unwritten_queries: int
    search_remarks: int
    cost: Costs
    unpriced: Sequence[str]


def details_of(counted: Recount, traces: Traces, unpriced: Sequence[str], unrecorded: float = 0.0) -> Details:
    pages: Counter[str] = Counter()
    for troubles in traces.troubles.values():
        pages.update(troubles.pages)
    steps: Counter[str] = Counter()
    for own in counted.steps.values():
        steps.update(own)
    every = traces.troubles.values()
    whole = _sum(ended.cost for ended in counted.pairs.values())
    judge = _sum(judging.cost for judging in counted.judging.values())
    search = _sum(counted.searches.values())
    models = None if whole is None else max(0.0, whole - (judge or 0.0) - (search or 0.0))
    return Details(
        pages=dict(pages.most_common()),
        steps={step: steps[step] for step in (*STEPS, *sorted(steps.keys() - set(STEPS))) if steps[step]},
        held=sum(ended.held for ended in counted.pairs.values()),
        repaired=sum(judging.repaired for judging in counted.judging.values()),
        unreadable=sum(judging.unreadable for judging in counted.judging.values()),
        invalid_citations=sum(troubles.invalid_citations for troubles in every),
        unwritten_queries=sum(troubles.unasked for troubles in every),
        search_remarks=sum(troubles.search_remarks for troubles in every),
        cost=Costs(models, judge, search, unrecorded),
        unpriced=tuple(unpriced),
    )


def lines(details: Details, out: Path) -> list[str]:
    told = []
    if details.pages:
        told.append(_pages(details.pages))
    if details.steps:
        told.append(f"turns failed at: {_listed(details.steps)}")
    if details.held:
        told.append(
            f"{_count(details.held, 'later turn')} of their conversations {_are(details.held)} held back, and asked "
            f"once those are tried again: millstream retry {out}"
        )
    if details.repaired or details.unreadable:
        told.append(
            f"judge: {_count(details.repaired, 'reply', 'replies')} had to be asked for again; "
            f"{_count(details.unreadable, 'judgement')} could not be read even so and count as unclear"
        )
    if details.invalid_citations:
        verb = "cites" if details.invalid_citations == 1 else "cite"
        told.append(f"citations: {_count(details.invalid_citations, 'answer')} {verb} what was not shown")
    if details.unwritten_queries:
        told.append(f"queries: {_count(details.unwritten_queries, 'turn')} searched for the question itself")
    if details.search_remarks:
        told.append(
            f"searches: {_count(details.search_remarks, 'turn')} with a remark of the engine (search_remarks in "
            f"records.jsonl)"
        )
    return told + _costs(details)


def _pages(pages: Mapping[str, int]) -> str:
    whole, read = sum(pages.values()), pages.get(READ, 0)
    without = {status: count for status, count in pages.items() if status != READ}
    told = f"pages: {read:,} of {whole:,} retrieved had a text"
    return f"{told}; without: {_listed(without)}" if without else told


def _costs(details: Details) -> list[str]:
    cost, told = details.cost, []
    parts = {"models under test": cost.models, "judge": cost.judge, "searches": cost.search}
    if cost.unrecorded:
        parts["turns that a stop left without a line"] = cost.unrecorded
    if any(parts.values()):
        told.append("cost: " + ", ".join(f"{who} ${amount or 0:,.4f}" for who, amount in parts.items()))
    if details.unpriced:
        told.append(f"without a price, so in no cost: {', '.join(details.unpriced)}")
    return told


def as_json(details: Details) -> dict[str, Any]:
    from msgspec import to_builtins

    found: dict[str, Any] = to_builtins(details)
    return found


def _sum(amounts: Iterable[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
