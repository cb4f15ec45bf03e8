"""The meter: what it counts, that merging changes nothing, and that it does not grow."""

from __future__ import annotations

import pytest
from msgspec import structs

from millstream.bench.load.meter import SLICES_MAX, LoadMeter, Promise
from millstream.bench.load.timing import CallTimes


def timed(due: float, latency_s: float = 0.1, status: str = "ok", first_s: float = 0.05, tokens: int = 6) -> CallTimes:
    ended = due + latency_s
    return CallTimes(
        due=due,
        free=0.0,
        begun=due,
        sent=due,
        first=due + first_s,
        last=ended,
        ended=ended,
        gaps=(latency_s - first_s,),
        status=status,
        attempts=1,
        input_tokens=10,
        output_tokens=tokens,
    )


def test_slices_grow_wider_and_never_more_and_lose_no_call() -> None:
    meter = LoadMeter()
    for second in range(5_000):
        meter.take(timed(float(second)))
    assert len(meter.slices) <= SLICES_MAX and meter.slice_s == 64.0
    assert sum(part.calls for part in meter.slices.values()) == meter.calls == 5_000
    assert sorted(meter.slices) == list(range(79))
    assert meter.slices[3].latency.count == 64


def test_merged_meters_are_one_that_took_all() -> None:
    promise = Promise(latency_s=0.3)
    whole, first, second = LoadMeter(promise), LoadMeter(promise), LoadMeter(promise)
    for number in range(600):
        call = timed(number / 2, 0.1 + number / 2_000, "ok" if number % 10 else "timeout")
        whole.take(call, number % 3)
        (first if number % 2 else second).take(call, number % 3)
    first.merge(second)
    for name in ("calls", "answered", "kept", "errors", "attempts", "output_tokens", "failures", "slice_s"):
        assert getattr(first, name) == getattr(whole, name), name
    for name in ("latency", "service", "first_token", "token", "gap"):
        assert getattr(first, name).percentile(95) == getattr(whole, name).percentile(95), name
    assert {n: part.calls for n, part in first.slices.items()} == {n: part.calls for n, part in whole.slices.items()}
    assert {n: part.errors for n, part in first.steps.items()} == {n: part.errors for n, part in whole.steps.items()}
    for name in ("kept", "output_tokens"):
        steps = {n: getattr(step, name) for n, step in first.steps.items()}
        assert steps == {n: getattr(step, name) for n, step in whole.steps.items()} and len(steps) == 3
        assert sum(steps.values()) == getattr(whole, name) > 0
    for n, step in whole.steps.items():
        # 6 tokens after a first one at 50 ms: 540 answers have one time per token and one gap each.
        assert (step.token.count, step.gap.count) == (180, 180)
        assert first.steps[n].token.percentile(95) == step.token.percentile(95)
    kinds = {n: part.failures for n, part in whole.slices.items()}
    assert {n: part.failures for n, part in first.slices.items()} == kinds
    assert sum((each["timeout"] for each in kinds.values()), 0) == 60


@pytest.mark.parametrize(
    ("promise", "kept"),
    [
        (Promise(latency_s=0.1000001), True),
        (Promise(latency_s=0.09), False),
        (Promise(first_token_s=0.06), True),
        (Promise(first_token_s=0.04), False),
        (Promise(token_s=0.011), True),
        (Promise(token_s=0.009), False),
        (Promise(first_token_s=0.06, token_s=0.009), False),
    ],
)
def test_goodput_counts_the_answers_that_keep_all_of_the_promise(promise: Promise, kept: bool) -> None:
    meter = LoadMeter(promise)
    meter.take(timed(0.0))
    meter.take(timed(0.0, status="timeout"))
    assert meter.kept == int(kept)


def test_an_answer_of_one_token_keeps_a_promise_on_tokens() -> None:
    assert Promise(token_s=0.001).is_kept(timed(0.0, tokens=1))


def test_where_the_server_tells_no_tokens_its_pieces_must_keep_the_promise_on_them() -> None:
    """A piece holds a token or more: what pieces keep, tokens keep. An answer without a piece tells nothing."""
    answer = structs.replace(timed(0.0, tokens=0), gaps=(0.01, 0.01, 0.01), first=0.05, last=0.08)
    assert Promise(token_s=0.011).is_kept(answer) and not Promise(token_s=0.009).is_kept(answer)
    # One piece has no time between pieces: nothing is known of its tokens, and 0 s would keep any promise.
    for tokens in (0, 6):
        one_piece = structs.replace(timed(0.0, tokens=tokens), gaps=(), first=0.1, last=0.1)
        assert (one_piece.token_s, one_piece.piece_s) == (None, None)
        assert not Promise(token_s=10.0).is_kept(one_piece)
    for tokens in (0, 6):
        silent = structs.replace(timed(0.0, tokens=tokens), gaps=(), first=None, last=None)
        assert not Promise(token_s=10.0).is_kept(silent)
