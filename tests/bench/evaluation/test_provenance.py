"""When runs took place, how long they took and what they cost, in a line."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.bench.evaluation.provenance import run_facts


def manifest(started: str, ended: str | None, *costs: float | None) -> dict[str, Any]:
    return {"started": started, "ended": ended, "counts": [{"cost": cost} for cost in costs]}


FIRST = manifest("2026-11-22T10:00:00+00:00", "2026-11-22T10:30:00+00:00", 1.25, 0.5)


@pytest.mark.parametrize(
    ("manifests", "told"),
    [
        ([FIRST], "2026-11-22; 30 min from start to end; cost $1.75"),
        (
            [FIRST, manifest("2026-11-23T10:00:00+00:00", "2026-11-23T10:10:00+00:00", None)],
            "2026-11-22 to 2026-11-23; 40 min from start to end; cost $1.75 and more, since some models have no price",
        ),
        (
            [manifest("2026-11-23T10:00:00+00:00", None, None)],
            "2026-11-23; cost not known, since no model has a price",
        ),
        ([manifest("2026-11-23T10:00:00+00:00", None)], "2026-11-23; cost not known yet"),
        ([None], ""),
        ([{"specification": {}}], ""),
    ],
)
def test_date_time_and_cost_are_told_as_far_as_they_are_known(manifests: list[Any], told: str) -> None:
    assert run_facts(manifests) == told
