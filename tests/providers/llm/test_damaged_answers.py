"""Garbage from a provider is a reply or a fault, never an exception, and never takes long: each protocol's own answers,
whole and streamed, damaged by the thousand, and everything that once broke a decoder (tests/kept/corpus/answers)."""

from __future__ import annotations

import time

import pytest
from mutants import kept, mutants
from protocols import ROWS, ProtocolRow
from torture import SEED, record, times

from millstream.engine.call import Reply
from millstream.engine.endpoint import Fault, Response

COUNT = times(150, 20_000)
# Of the processor's time; a decoder that backtracks takes minutes.
DECODE_S = 1.0


def sound(row: ProtocolRow, stream: bool) -> list[bytes]:
    other = [each.answer(*each.sample, stream=stream).body for each in ROWS.values()]
    return [row.answer(*row.sample, stream=stream).body, row.answer(stream=stream).body, *other]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_damaged_answer_is_a_reply_or_a_fault(row: ProtocolRow, stream: bool) -> None:
    slowest = 0.0
    replies = 0
    for body in [*kept("answers"), *mutants(sound(row, stream), COUNT, SEED)]:
        begun = time.process_time()
        found = row.wire.decode(Response(200, body, stream=stream))
        slowest = max(slowest, time.process_time() - begun)
        assert isinstance(found, Reply | Fault), body
        if isinstance(found, Reply):
            replies += 1
            # Whatever was repaired: what is kept can be written.
            found.text.encode("utf-8")
        else:
            assert found.kind and found.detail is not None and len(found.detail) < 100_000, body
    assert slowest < DECODE_S
    record("6", COUNT, COUNT, f"damaged answers: none raised, the slowest took {slowest * 1000:.0f} ms", f"{SEED}")
