"""Whether two load tests had the same plan, and how their plans differ: only tests of one plan are compared.

Owns which options make up a plan. The model, its address and the cost cap do not: tests are made to compare those.
Knows no table and no page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from ....format import measured_time
from ....metrics.load.load_json import LoadFigures
from ....report.labels import one_line
from ....report.table import Column, Table
from .sentences import ended, said, was_cut_short
from .series import LoadTest

# Options that are no part of the plan. A seed only draws other arrivals of the same kind.
_NO_PLAN = frozenset(
    ("models", "verb", "seed", "base-url", "config", "cache", "mode", "patience", "max-cost", "snapshot", "max-age")
)
PLANS = "load-plans"
_UNSET = "not set"


class PlanDifference(Struct, frozen=True):
    """An option whose value differs between two tests of a report: `value` in `test`, and `of_first` in `first`, the
    report's first test; `not set` for an option that a test lacks."""

    test: str
    first: str
    option: str
    value: str
    of_first: str


def plan_differences(test: LoadTest, first: LoadTest) -> list[PlanDifference]:
    """Returns each option that differs between two tests; empty if they had one plan and both completed it."""
    own, other = _plan(test.load), _plan(first.load)
    found = [
        PlanDifference(test.name, first.name, name, _shown(own.get(name)), _shown(other.get(name)))
        for name in dict.fromkeys((*own, *other))
        if own.get(name) != other.get(name)
    ]
    if was_cut_short(test.load) or was_cut_short(first.load):
        # A plan that was cut short counts as a different plan.
        found.append(PlanDifference(test.name, first.name, "ended", _ended(test.load), _ended(first.load)))
    return found


def unlike(tests: Sequence[LoadTest]) -> Iterator[PlanDifference]:
    """Yields the plan differences between each later test and the first."""
    for test in tests[1:]:
        yield from plan_differences(test, tests[0])


def plan_told(load: LoadFigures) -> str:
    """Returns a plan in a few words, such as `rate 5/s for 60 s`."""
    test = load.test
    lasts = f" for {said(test['duration'])} s" if "duration" in test else ""
    if "goal" in test:
        return f"goal “{one_line(str(test['goal']), 120)}”"
    if "steps" in test:
        each = f", {said(test['step-time'])} s each" if "step-time" in test else ""
        return f"steps {said(test['steps'])}/s{each}"
    if "ramp" in test:
        return f"ramp {said(test['ramp']).replace(', ', ' to ')}/s{lasts}"
    if "in-flight" in test:
        return f"{said(test['in-flight'])} in flight{lasts}"
    if "replay" in test:
        return f"replay of {said(test['replay'])}"
    return f"rate {said(test['rate'])}/s{lasts}" if "rate" in test else "no rate"


def not_compared(tests: Sequence[LoadTest]) -> str:
    """Returns a sentence that says why tests are not compared; empty if all had one plan."""
    found = list(unlike(tests))
    if not found:
        return ""
    names = {each.test for each in found}
    plans = "; ".join(
        f"{test.name}: {plan_told(test.load)}" for test in tests if test is tests[0] or test.name in names
    )
    options = ", ".join(dict.fromkeys(each.option for each in found))
    return f"different plans, so no difference and no verdict is given ({plans}); they differ in {options}"


def plans_table(found: Sequence[PlanDifference]) -> Table:
    return Table(
        PLANS,
        "Different plans",
        "Options that two tests had with other values.",
        (
            Column("test", "Test"),
            Column("beside", "Beside"),
            Column("option", "Option"),
            Column("value", "Of the test"),
            Column("of_first", "Of the one beside it"),
        ),
        tuple((each.test, each.first, each.option, each.value, each.of_first) for each in found),
    )


def _plan(load: LoadFigures) -> dict[str, Any]:
    return {name: value for name, value in load.test.items() if name not in _NO_PLAN}


def _ended(load: LoadFigures) -> str:
    return f"after {measured_time(load.seconds)}, since {ended(load)}"


def _shown(value: Any) -> str:
    return _UNSET if value is None else said(value)
