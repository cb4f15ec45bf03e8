"""Forecasts the calls, tokens, cost and time of judging a run's kept answers anew."""

from __future__ import annotations

from typing import Any

from .forecast import forecast_of, lanes_under_test, look_up
from .judging.preparation import judgement_lines
from .judging.work import JudgingWork
from .preparation import PreparedRun


def forecast(prepared: PreparedRun, *, looks_into_cache: bool = True) -> dict[str, Any]:
    """Returns the calls, tokens, dollars and minutes that the missing judgements are expected to take."""
    work = prepared.work
    assert isinstance(work, JudgingWork)
    done = work.finished(iter(judgement_lines(prepared.out)))
    missing = look_up(
        work.pairs(), lambda pair: work.calls(pair, done), prepared.settings, looks_into_cache=looks_into_cache
    )
    limits = work.max_tokens
    lanes = lanes_under_test(prepared, missing, {pair: limits.get(pair.model) for pair in missing})
    there = sum(len(done.of(pair)) for pair in work.pairs())
    return {
        "items": work.items,
        "what": f"{work.items:,} kept answers, {there:,} of {prepared.total:,} judgements are there",
        "remarks": ["a reply that can't be read is asked for once more: such calls are not counted"],
        **forecast_of(prepared, lanes, missing, None),
    }
