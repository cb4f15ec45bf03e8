"""A lane as it is declared: refused where its figures can't be meant."""

from __future__ import annotations

import math

import pytest
from msgspec import structs

from millstream.engine.lane import CONCURRENCY_DEFAULT, GROWN_MOST, Lane


def test_an_undeclared_quota_is_none_and_the_rest_has_defaults() -> None:
    lane = Lane("a/b")
    assert (lane.rpm, lane.tpm, lane.concurrency, lane.timeout_s) == (None, None, None, 600.0)
    # Without any quota the lane finds out itself how many it can have.
    assert (lane.in_flight_most, Lane("a/b", rpm=60).in_flight_most) == (GROWN_MOST, CONCURRENCY_DEFAULT)
    assert Lane("a/b", concurrency=7).in_flight_most == 7


@pytest.mark.parametrize("name", ["rpm", "tpm"])
@pytest.mark.parametrize("value", [-1, 0, 0.5, math.nan, math.inf, 1.1e12])
def test_an_impossible_quota_is_refused_by_lane_name_and_number(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"lane a/b: {name} \(.*\) must be 1 to 1,000,000,000,000 a minute"):
        structs.replace(Lane("a/b"), **{name: value})


@pytest.mark.parametrize("name", ["rpm", "tpm"])
def test_the_least_quota_is_one_a_minute(name: str) -> None:
    assert getattr(structs.replace(Lane("a/b"), **{name: 1}), name) == 1


@pytest.mark.parametrize(
    ("name", "value"), [("concurrency", 0), ("concurrency", -3), ("timeout_s", 0), ("timeout_s", math.nan)]
)
def test_a_lane_that_could_never_send_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"lane a/b: {name} \({value:g}\) must be >"):
        structs.replace(Lane("a/b"), **{name: value})


def test_a_lane_can_not_be_changed() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        Lane("a/b").rpm = 5  # type: ignore[misc]
