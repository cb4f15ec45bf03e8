"""When runs took place, how long they took and what they cost, in a line."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.bench.evaluation.page.provenance import run_facts


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
            "2026-11-23; cost unknown: no model has a price",
        ),
        ([manifest("2026-11-23T10:00:00+00:00", None)], "2026-11-23; cost unknown so far"),
        ([None], ""),
        ([{"specification": {}}], ""),
    ],
)
def test_date_time_and_cost_are_told_as_far_as_they_are_known(manifests: list[Any], told: str) -> None:
    assert run_facts(manifests) == told


def test_models_that_were_retired_or_soon_to_be_when_their_run_began_are_named() -> None:
    asked = {"specification": {"endpoints": {"xai/grok-3": "x", "openai/gpt-4o": "o", "sim/open": "s"}}}
    told = run_facts([FIRST | asked, FIRST | asked])
    assert told.endswith(
        "cost $3.50; xai/grok-3 was retired on 2026-05-15: xai/grok-4.3 answers under its name; "
        "openai/gpt-4o retires on 2027-01-14: nothing answers under its name from then on"
    )
    early = run_facts([FIRST | asked | {"started": "2026-02-01T10:00:00+00:00"}])
    assert "openai/gpt-4o" not in early and "xai/grok-3" not in early
    # Another program's manifest.
    assert "openai/gpt-4o" not in run_facts([FIRST | asked | {"started": "long ago"}])
