"""The most tokens of each model's answers, which a limit on the cost is kept by."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from millstream.bench.evaluation.door.benchmark import ItemBenchmark
from millstream.bench.evaluation.door.record import Record
from millstream.bench.evaluation.door.run_items import highest_limits, other_calls
from millstream.engine.pairs import Pair


class Options(Struct, frozen=True):
    model: tuple[str, ...] = ("lab/one", "lab/two")
    max_tokens: int | None = None


class Judged(ItemBenchmark[Record]):
    name = title = "judged"
    Options = Options

    def __init__(self, judges: Any) -> None:
        self.judges = judges

    def others(self, options: Any) -> Any:
        return self.judges


@pytest.mark.parametrize(
    ("judges", "max_tokens", "limits"),
    [
        ((), None, {"lab/one": None, "lab/two": None}),
        ((), 50, {"lab/one": 50, "lab/two": 50}),
        (["lab/judge"], 50, {"lab/one": 50, "lab/two": 50, "lab/judge": None}),
        ({"lab/judge": 10}, 50, {"lab/one": 50, "lab/two": 50, "lab/judge": 10}),
        ({"lab/judge": None}, 50, {"lab/one": 50, "lab/two": 50, "lab/judge": None}),
        ({"lab/two": 10}, 50, {"lab/one": 50, "lab/two": 50}),
        ({"lab/two": 90}, 50, {"lab/one": 50, "lab/two": 90}),
        ({"lab/two": 10}, None, {"lab/one": None, "lab/two": None}),
    ],
)
def test_a_judge_bounds_its_own_answers_and_who_is_asked_too_has_the_wider_bound(
    judges: Any, max_tokens: int | None, limits: dict[str, int | None]
) -> None:
    asked = {Pair(model, None): max_tokens for model in Options().model}
    assert highest_limits(asked, other_calls(Judged(judges), Options(max_tokens=max_tokens))) == limits
