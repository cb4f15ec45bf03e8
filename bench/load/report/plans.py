"""Whether load tests had the same plan, and how their plans differ: figures of different plans are no comparison.

Owns which options make up a plan. The model, its address and the cost cap do not: tests are made to compare those.
Knows no table and no page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....metrics.load.load_json import LoadFigures
from ....report.labels import one_line
from .sentences import said, was_cut_short
from .series import LoadTest

# Options that are no part of the plan. A seed only draws other arrivals of the same kind.
_NO_PLAN = frozenset(
    ("models", "verb", "seed", "base-url", "config", "cache", "mode", "patience", "max-cost", "snapshot", "max-age")
)


def differing_options(test: LoadTest, first: LoadTest) -> list[str]:
    """Returns each option that differs between two tests; empty if they had one plan and both completed it."""
    own, other = _plan(test.load), _plan(first.load)
    found = [name for name in dict.fromkeys((*own, *other)) if own.get(name) != other.get(name)]
    if was_cut_short(test.load) or was_cut_short(first.load):
        # A plan that was cut short counts as a different plan.
        found.append("ended")
    return found


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
    """Returns a sentence that says why the figures of tests are no comparison; empty if all had one plan."""
    unlike = {test.name: found for test in tests[1:] if (found := differing_options(test, tests[0]))}
    if not unlike:
        return ""
    plans = "; ".join(
        f"{test.name}: {plan_told(test.load)}" for test in tests if test is tests[0] or test.name in unlike
    )
    options = ", ".join(dict.fromkeys(option for found in unlike.values() for option in found))
    return f"different plans ({plans}); they differ in {options}"


def _plan(load: LoadFigures) -> dict[str, Any]:
    return {name: value for name, value in load.test.items() if name not in _NO_PLAN}
