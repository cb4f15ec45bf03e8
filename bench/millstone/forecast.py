"""What a run of MillStone is expected to ask, counted without a pass over the grid where possible, and its pilot."""

from __future__ import annotations

from ..evaluation.forecast import Expected, expected_of
from ..evaluation.preparation import ItemsOfPilot, PreparedRun
from ..evaluation.work import Remainder
from .grid import calls, total_chars
from .sample import sample_ids
from .work import millstone_of


def forecast(prepared: PreparedRun, *, looks_into_cache: bool = True) -> Expected:
    """Returns what the prompts that the cache does not answer are expected to take."""
    work = millstone_of(prepared)
    limit_of = work.asked.max_tokens_of
    expected = expected_of(
        prepared,
        lambda pair: calls(work.grid, pair, limit_of(pair)),
        limit_of,
        looks_into_cache=looks_into_cache,
        whole=lambda: Remainder(work.items, total_chars(work.grid)),
    )
    labels = prepared.dataset["labels"]
    if labels["differ"] or labels["unread"]:
        expected.remarks.append(labels["summary"])
    expected.what = f"{prepared.total:,} prompts"
    expected.more["prompts"] = prepared.total
    return expected


def pilot_items(prepared: PreparedRun, size: int) -> ItemsOfPilot:
    """Returns `size` of the run's own prompts, in the sample's order."""
    work = millstone_of(prepared)
    rank = {item_id: number for number, item_id in enumerate(sample_ids(work.grid, size))}
    chosen = {}
    for pair in work.pairs():
        made = calls(work.grid, pair, work.asked.max_tokens_of(pair), lambda item_id: item_id not in rank)
        # In the sample's order, not the grid's: the answers before a stop are then spread over the grid too.
        chosen[pair] = sorted(made, key=lambda call: rank[call.tag.id])
    return ItemsOfPilot(run=prepared, items=len(rank), of=work.items, noun=work.item, calls=chosen)
