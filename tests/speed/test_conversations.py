"""A small copy of the conversations' bench: the pace of pages is kept and used, and the loop goes on."""

from __future__ import annotations

import pytest
from msgspec import structs

from millstream.speed.conversations import SIXTY, ConversationsMeasurement, ConversationsPlan, goals, measure, text_of
from millstream.speed.simulated import SimulatedWorld

# The simulated outside, started by what is measured.
pytestmark = pytest.mark.process

PLAN = ConversationsPlan(SimulatedWorld(400, 20, model_s=0.05, page_s=0.02), conversations=8, turns=4, pages_rpm=3_600)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> ConversationsMeasurement:
    return measure(PLAN, tmp_path_factory.mktemp("conversations"))


@pytest.mark.long
def test_every_turn_has_its_record_and_every_page_is_fetched_once(found: ConversationsMeasurement) -> None:
    assert (found.first.run.answered, found.first.run.failed, found.first.run.pending) == (32, 0, 0)
    assert found.traffic.pages == found.traffic.distinct > 150 and found.traffic.robots == 20


@pytest.mark.long
def test_pages_come_at_the_declared_pace_and_never_above_it(found: ConversationsMeasurement) -> None:
    traffic, rate = found.traffic, 3_600 / 60
    lasted_s = traffic.last_at - traffic.first_at
    # A two-hundredth of the quota may come at once, and one more.
    assert traffic.requests <= rate * lasted_s + 3_600 / 200 + 1
    assert found.share is not None and found.share > 0.2
    assert traffic.requests / lasted_s > rate / 3


def test_the_loop_is_not_held_up_for_long(found: ConversationsMeasurement) -> None:
    assert found.first.loop.ticks > 100
    assert found.first.loop.worst_own_ms < 250, found.first.loop.stalls


def test_figures_and_goals_are_told(found: ConversationsMeasurement) -> None:
    text = text_of(found)
    assert "records 32, failed 0" in text and "share" in text and "worst stall" in text and "scores of sim/open" in text
    assert next(text.partition(" (goal")[0] for text, _ in goals(found)) == "32 records"


def test_again_from_the_cache_it_asks_for_no_page_and_scores_the_same(found: ConversationsMeasurement) -> None:
    assert found.again_sent == 0 and found.again.run == found.first.run


def test_a_goal_that_is_missed_is_told_so(found: ConversationsMeasurement) -> None:
    loop = structs.replace(found.first.loop, worst_own_ms=51.0)
    first = structs.replace(found.first, loop=loop, ended_at=found.first.began_at + 1e6)
    held_up = structs.replace(found, first=first, again_sent=1)
    assert [is_reached for _, is_reached in goals(held_up)] == [True, False, False, False]
    assert not next(is_reached for _, is_reached in goals(structs.replace(found, plan=SIXTY)))
