"""How the items of a run ended: what most failures of a kind say, without keeping what each says."""

from __future__ import annotations

import pytest

from millstream.engine.alike import gist_of, without_ids
from millstream.engine.pairs import PairCounts, Reason, failures_of


def ended_with(*said: str, kind: str = "rejected") -> PairCounts:
    ended = PairCounts()
    for one in said:
        ended.fail(kind, one)
    return ended


def test_the_commonest_reason_of_each_kind_is_told_over_all_pairs() -> None:
    first = ended_with("404: no such model", "400: too long", "400: too long")
    second = ended_with("404: no such model", "404: no such model")
    second.fail("timeout", "nothing came for 600 s")
    assert failures_of([first, second]) == {
        "rejected": (5, Reason("404: no such model", 3)),
        "timeout": (1, Reason("nothing came for 600 s", 1)),
    }
    assert first.failed == {"rejected": 3}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "500: oops (request id: req_011CSHoEeqs5C35K2UUqR7Fy)",
            "500: oops (request id: req_0a1b2c3d4e5f60718293a4b5)",
        ),
        ("call 81f0a2b3c4d5 needs 9,300 tokens; lane m", "call 00c1a2b3c4d5 needs 12,001 tokens; lane m"),
        ("try again in 1.254s", "try again in 20.1s"),
    ],
)
def test_ids_and_amounts_make_no_other_reason(one: str, other: str) -> None:
    assert gist_of(one) == gist_of(other)
    assert failures_of([ended_with(one, other)]) == {"rejected": (2, Reason(one, 2))}


def test_statuses_and_words_do_make_another_reason() -> None:
    assert len({gist_of(said) for said in ("500: oops", "503: oops", "500: ouch")}) == 3
    assert without_ids("at most 8,192 tokens, not 9,001") != without_ids("at most 8,192 tokens, not 9,002")


def test_reasons_that_are_all_different_need_no_memory_without_bound() -> None:
    ended = ended_with(*(f"{'x' * (number % 7)}{chr(0x4E00 + number)}" for number in range(5_000)))
    assert ended.failures == 5_000 and len(ended.reasons) <= 512


def test_what_says_nothing_is_counted_all_the_same() -> None:
    assert failures_of([ended_with("", " \n")]) == {"rejected": (2, None)}
    assert failures_of([PairCounts()]) == {}
