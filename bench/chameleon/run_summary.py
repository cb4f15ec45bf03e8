"""The summary of a Chameleon run beyond its table: pages, failed steps, judgements, citations, and costs by role.

Pure functions of counts. Says what to do about problems that can be fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...format import command_text, count_text
from ...metrics.chameleon.traces import Traces
from ..evaluation.recount import StepTotals

READ = "ok"
STEPS = ("query", "search", "answer", "judge", "repair")


class ConversationCosts(Struct, frozen=True):
    """Costs in dollars; None: nothing has a price. `models` are those under test, queries included; `unrecorded` is the
    cost of turns without a line because of a stop, which were later answered from the cache."""

    models: float | None
    judge: float | None
    search: float | None
    unrecorded: float = 0.0


class Details(Struct, frozen=True):
    """Counts over all pairs. `pages` are by the status of reading, `steps` by the step at which turns failed; `held`:
    turns that a failure holds back; `repaired`: judge's replies that were asked for again, `unreadable`: those that
    could not be read even so; `unwritten_queries`: turns that searched for the question itself; `unpriced`: lanes
    without a price, whose cost is in no sum."""

    pages: Mapping[str, int]
    steps: Mapping[str, int]
    held: int
    repaired: int
    unreadable: int
    invalid_citations: int
    unwritten_queries: int
    search_remarks: int
    cost: ConversationCosts
    unpriced: Sequence[str]


def details_of(counted: StepTotals, traces: Traces, unpriced: Sequence[str], unrecorded: float = 0.0) -> Details:
    pages: Counter[str] = Counter()
    for troubles in traces.troubles.values():
        pages.update(troubles.pages)
    steps: Counter[str] = Counter()
    for own in counted.roles.values():
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
        repaired=sum(troubles.repaired for troubles in every),
        unreadable=sum(troubles.unreadable for troubles in every),
        invalid_citations=sum(troubles.invalid_citations for troubles in every),
        unwritten_queries=sum(troubles.unasked for troubles in every),
        search_remarks=sum(troubles.search_remarks for troubles in every),
        cost=ConversationCosts(models, judge, search, unrecorded),
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
            f"{count_text(details.held, 'later turn')} of their conversations {_are(details.held)} held back, and "
            f"asked once those are tried again: {command_text('retry', out)}"
        )
    if details.repaired or details.unreadable:
        told.append(
            f"judge: {count_text(details.repaired, 'reply', 'replies')} had to be asked for again; "
            f"{count_text(details.unreadable, 'judgement')} could not be read even so and count as unclear"
        )
    if details.invalid_citations:
        verb = "cites" if details.invalid_citations == 1 else "cite"
        told.append(f"citations: {count_text(details.invalid_citations, 'answer')} {verb} what was not shown")
    if details.unwritten_queries:
        told.append(f"queries: {count_text(details.unwritten_queries, 'turn')} searched for the question itself")
    if details.search_remarks:
        told.append(
            f"searches: {count_text(details.search_remarks, 'turn')} with a remark of the engine (search_remarks in "
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


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
