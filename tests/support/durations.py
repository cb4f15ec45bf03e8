"""How long tests took when `make durations` was run last: the order of modules among workers, and which test is slow.

The table is of one idle machine; nothing fails because it is old. A module that it does not know counts as short.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent.parent / "durations.json"
# `make quick` leaves out a test function of which one case took longer.
SLOW_S = 0.1


@cache
def _recorded() -> dict[str, dict[str, float]]:
    """Seconds by module, and by test function for the slow ones."""
    recorded: dict[str, dict[str, float]] = json.loads(FILE.read_text("utf-8"))
    return recorded


def seconds_of_module(nodeid: str) -> float:
    """The seconds of the module that a test stands in."""
    return _recorded()["modules"].get(nodeid.partition("::")[0], 0.0)


def is_slow(nodeid: str) -> bool:
    """Whether a case of the test's function took longer than SLOW_S."""
    return nodeid.partition("[")[0] in _recorded()["slow"]


def write_durations(stats: Mapping[str, Sequence[Any]]) -> None:
    """Write the table anew, from the reports of a run of all tests."""
    tests: dict[str, float] = {}
    for report in (report for reports in stats.values() for report in reports if hasattr(report, "duration")):
        tests[report.nodeid] = tests.get(report.nodeid, 0.0) + report.duration
    write(tests)


def write(tests: Mapping[str, float]) -> None:
    """Write the seconds of all modules, and of the longest case of each test function that is slow."""
    modules: dict[str, float] = {}
    functions: dict[str, float] = {}
    for nodeid, seconds in tests.items():
        module, name = nodeid.partition("::")[0], nodeid.partition("[")[0]
        modules[module] = modules.get(module, 0.0) + seconds
        functions[name] = max(functions.get(name, 0.0), seconds)
    table = {
        "modules": {name: round(seconds, 1) for name, seconds in sorted(modules.items()) if seconds >= 0.1},
        "slow": {name: round(seconds, 2) for name, seconds in sorted(functions.items()) if seconds > SLOW_S},
    }
    FILE.write_text(json.dumps(table, indent=1) + "\n", "utf-8")
