"""Whether load tests had the same plan, and how their plans differ: figures of different plans are no comparison.

Owns which options make up a plan. The model, its address and the cost cap do not: tests are made to compare those.
Knows no table and no page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....metrics.load.load_json import LoadFigures
from .sentences import plan_text, was_cut_short
from .series import LoadTest

# Options that are no part of the plan. A seed only draws other arrivals of the same kind.
_NO_PLAN = frozenset(
    (
        "models",
        "verb",
        "seed",
        "base-url",
        "config",
        "cache",
        "mode",
        "patience",
        "max-cost",
        "snapshot",
        "max-age",
        "ray",
        "workers",
    )
)


def differing_options(test: LoadTest, first: LoadTest) -> list[str]:
    """Returns each option that differs between two tests; empty if they had one plan and both completed it."""
    plan, other = _plan(test.load), _plan(first.load)
    names = [name for name in dict.fromkeys((*plan, *other)) if plan.get(name) != other.get(name)]
    if was_cut_short(test.load) or was_cut_short(first.load):
        # A plan that was cut short counts as a different plan.
        names.append("ended")
    return names


def not_compared(tests: Sequence[LoadTest]) -> str:
    """Returns a sentence that says why the figures of tests are no comparison; empty if all had one plan."""
    unlike = {test.name: names for test in tests[1:] if (names := differing_options(test, tests[0]))}
    if not unlike:
        return ""
    plans = "; ".join(
        f"{test.name}: {plan_text(test.load)}" for test in tests if test is tests[0] or test.name in unlike
    )
    options = ", ".join(dict.fromkeys(option for names in unlike.values() for option in names))
    return f"different plans ({plans}); they differ in {options}"


def _plan(load: LoadFigures) -> dict[str, Any]:
    return {name: value for name, value in load.test.items() if name not in _NO_PLAN}
