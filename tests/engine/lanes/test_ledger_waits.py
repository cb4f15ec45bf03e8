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
