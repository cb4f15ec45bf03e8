"""How long a ledger says to wait and for what, by hand: of each quota 0.5% is kept, and a minute lasts 60.5 s in it."""

from __future__ import annotations

import pytest

from millstream.engine.lanes.ledger import Ledger
from millstream.engine.limits import Quota, Tokens


def test_output_counts_beside_input_where_one_limit_is_for_both() -> None:
    ledger = Ledger(Quota(tpm=1000))
    assert ledger.take(0.0, Tokens(100, 500)) == (0.0, "")
    # 600 and 400 are more than the 995 that are not kept: until the first leaves, 60.5 s after its slot began.
    assert ledger.take(50.0, Tokens(300, 100)) == (10.5, "tokens")


def test_a_full_minute_of_requests_waits_until_the_oldest_leaves() -> None:
    ledger = Ledger(Quota(rpm=600))
    for now in (0.0, 1.0, 2.0, 3.0):
        assert ledger.take(now, Tokens(1)) == (0.0, "")
    ledger.set_quota(Quota(rpm=4))
    assert ledger.take(4.0, Tokens(1)) == (56.5, "requests")


def test_a_minute_with_room_for_one_more_is_not_waited_for() -> None:
    ledger = Ledger(Quota(rpm=2))
    assert ledger.take(0.0, Tokens(1)) == (0.0, "")
    # Half a minute apart: 60.5 / (2 * 0.995) s, but for what may come at once, 60.5 / (200 * 0.995) s.
    wait_s, what = ledger.take(1.0, Tokens(1))
    assert wait_s == pytest.approx(60.5 / 0.995 * (1 / 2 - 1 / 200) - 1.0, abs=1e-5)
    assert what == "requests"


def test_input_of_its_own_limit_is_paced_from_where_the_last_one_ended() -> None:
    ledger = Ledger(Quota(itpm=1000))
    pace = 60.5 / (1000 * 0.995)
    assert ledger.take(0.0, Tokens(400)) == (0.0, "")
    # A little early, within what may come at once.
    assert ledger.take(400 * pace - 0.2, Tokens(400)) == (0.0, "")
    wait_s, what = ledger.take(400 * pace, Tokens(1))
    assert wait_s == pytest.approx(400 * pace - 60.5 / (200 * 0.995), abs=1e-4)
    assert what == "tokens"


def test_what_was_sent_in_this_very_moment_is_waited_for_too() -> None:
    ledger = Ledger(Quota(rpm=600))
    for _ in range(3):
        assert ledger.take(0.0, Tokens(1)) == (0.0, "")
    ledger.set_quota(Quota(rpm=3))
    assert ledger.take(0.1, Tokens(1)) == (60.4, "requests")


@pytest.mark.parametrize(("more", "fits"), [(395, True), (396, False)])
def test_of_a_minutes_tokens_one_in_two_hundred_is_kept(more: int, fits: bool) -> None:
    ledger = Ledger(Quota(tpm=1000))
    assert ledger.take(0.0, Tokens(600)) == (0.0, "")
    assert (ledger.take(50.0, Tokens(more)) == (0.0, "")) is fits


@pytest.mark.parametrize(("refusals", "made_up_s"), [(0, 10.0), (1, 5.0), (2, 2.5)])
def test_each_refusal_halves_the_time_that_is_made_up_at_once(refusals: int, made_up_s: float) -> None:
    quota = Quota(rpm=600, tpm=1000, made_up_s=10.0)
    ledger = Ledger(quota)
    for _ in range(refusals):
        ledger.make_up_less()
    assert ledger.take(0.0, Tokens(900)) == (0.0, "")
    wait_s, what = ledger.take(1.0, Tokens(500))
    assert what == "tokens"
    sent = 0
    while ledger.take(1.0 + wait_s, Tokens()) == (0.0, ""):
        sent += 1
    # As many as the lost time has room for, and what may come at once anyway.
    assert sent == pytest.approx((made_up_s + 0.3) * 600 * 0.995 / 60.5, abs=1.1)
