"""The summary of a Chameleon run beyond its table: pages, failed steps, judgements, citations, and costs by role.

Owns what is counted for it. Says what to do about problems that can be fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from msgspec import field

from ...engine.call import known_sum
from ...engine.pairs import Pair
from ...engine.runs.proof import ANSWERED
from ...format import command_text, count_text, listed_counts
from ..evaluation.door.item_line import ItemLine, StepTotals
from ..evaluation.running.journals import UNRECORDED
from .turn_line import TurnLine

READ = "ok"
STEPS = ("query", "search", "answer", "judge", "repair")
_COUNTS = ("repaired", "unreadable", "invalid_citations", "unwritten_queries", "search_remarks")


class TurnTotals(StepTotals):
    """The counts of a run's turns, with what its summary says of the answered ones."""

    pages: Counter[str] = field(default_factory=Counter)
    """The retrieved pages by the status of reading."""
    counts: Counter[str] = field(default_factory=Counter)
    """What the summary says of the answered turns."""

    def add(self, pair: Pair, line: ItemLine) -> None:
        super().add(pair, line)
        assert isinstance(line, TurnLine)
        if line.status not in ANSWERED:
            return
        self.pages.update(page.status for page in line.retrieved)
        self.counts.update(
            repaired=line.judge_repaired,  # the judge was asked twice
            unreadable=line.raw_judgement is not None,  # even so
            invalid_citations=len(line.invalid_citations),
            unwritten_queries=line.query_by == "question",
            search_remarks=bool(line.search_remarks),
            judged_without=line.is_judged and line.judge_temperature is None,
        )

    def summary(
        self, folder: Path, manifest: Mapping[str, Any], unpriced: Sequence[str]
    ) -> tuple[Sequence[str], Mapping[str, Any]]:
        specification, costs = manifest["specification"], self._costs(float(manifest.get(UNRECORDED, 0.0)))
        judge, planned = specification["judge"], specification["judge_temperature"]
        for pair, ended in self.pairs.items():
            # The cost of free searches does not count for models without a price.
            if not ended.cost and {pair.model, judge} & set(unpriced):
                ended.cost = None
        steps: Counter[str] = Counter()
        for of_pair in self.roles.values():
            steps.update(of_pair)
        details = {
            "pages": dict(self.pages.most_common()),
            "steps": {step: steps[step] for step in (*STEPS, *sorted(steps.keys() - set(STEPS))) if steps[step]},
            "held": sum(ended.held for ended in self.pairs.values()),
            **{name: self.counts[name] for name in _COUNTS},
            "cost": costs,
            "unpriced": list(unpriced),
        }
        sentences = [*_sentences(details, folder), *_cost_sentences(costs, unpriced)]
        if planned is not None and (without := self.counts["judged_without"]):
            judged = f"it judged {count_text(without, 'answer')} at its own"
            sentences.append(f"the judge {judge} refused temperature {planned:g}: {judged}")
        return sentences, details

    def _costs(self, unrecorded: float) -> dict[str, float | None]:
        """Returns the dollars by role, None where nothing has a price. `unrecorded`: those of turns without a line
        because of a stop, which the cache answered later."""
        whole = reduce(known_sum, (ended.cost for ended in self.pairs.values()), None)
        judge = reduce(known_sum, (judging.cost for judging in self.judging.values()), None)
        search = reduce(known_sum, self.searches.values(), None)
        models = None if whole is None else max(0.0, whole - (judge or 0.0) - (search or 0.0))
        return {"models": models, "judge": judge, "search": search, "unrecorded": unrecorded}


def _sentences(details: Mapping[str, Any], folder: Path) -> Iterator[str]:
    if details["pages"]:
        yield _pages(details["pages"])
    if details["steps"]:
        yield f"turns failed at: {listed_counts(details['steps'])}"
    if held := details["held"]:
        yield (
            f"{count_text(held, 'later turn')} of their conversations {'is' if held == 1 else 'are'} held back, and "
            f"asked once those are tried again: {command_text('retry', folder)}"
        )
    if details["repaired"] or details["unreadable"]:
        yield (
            f"judge: {count_text(details['repaired'], 'reply', 'replies')} had to be asked for again; "
            f"{count_text(details['unreadable'], 'judgement')} could not be read even so and count as unclear"
        )
    if invalid := details["invalid_citations"]:
        yield f"citations: {count_text(invalid, 'answer')} {'cites' if invalid == 1 else 'cite'} what was not shown"
    if unwritten := details["unwritten_queries"]:
        yield f"queries: {count_text(unwritten, 'turn')} searched for the question itself"
    if remarks := details["search_remarks"]:
        yield f"searches: {count_text(remarks, 'turn')} with a remark of the engine (search_remarks in records.jsonl)"


def _pages(pages: Mapping[str, int]) -> str:
    whole, read = sum(pages.values()), pages.get(READ, 0)
    without = {status: count for status, count in pages.items() if status != READ}
    sentence = f"pages: {read:,} of {whole:,} retrieved had a text"
    return f"{sentence}; without: {listed_counts(without)}" if without else sentence


def _cost_sentences(costs: Mapping[str, float | None], unpriced: Sequence[str]) -> Iterator[str]:
    parts = {"models under test": costs["models"], "judge": costs["judge"], "searches": costs["search"]}
    if costs["unrecorded"]:
        parts["turns that a stop left without a line"] = costs["unrecorded"]
    if any(parts.values()):
        yield "cost: " + ", ".join(f"{who} ${amount or 0:,.4f}" for who, amount in parts.items())
    if unpriced:
        yield f"without a price, so in no cost: {', '.join(unpriced)}"
