"""Forecasts the calls, tokens, cost and time of judging a run's kept answers anew."""

from __future__ import annotations

from .forecast import Expected, expected_of
from .judging.judgement import Judgement, read_judgements
from .judging.work import JudgingWork
from .preparation import PreparedRun


def forecast(prepared: PreparedRun, *, looks_into_cache: bool = True) -> Expected:
    """Returns what the missing judgements are expected to take."""
    work = prepared.work
    assert isinstance(work, JudgingWork)
    done = work.finished(read_judgements(prepared.out, Judgement))
    expected = expected_of(
        prepared,
        lambda pair: work.calls(pair, done),
        lambda pair: work.max_tokens.get(pair.model),
        looks_into_cache=looks_into_cache,
    )
    there = sum(len(done.of(pair)) for pair in work.pairs())
    expected.what = f"{work.items:,} kept answers, {there:,} of {prepared.total:,} judgements are there"
    expected.remarks.append("a reply that can't be read is asked for once more: such calls are not counted")
    expected.more["items"] = work.items
    return expected
