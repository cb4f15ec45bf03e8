"""How long tests took when `make durations` was run last: the order of modules among workers, and which test is slow.

The table is of one idle machine; nothing fails because it is old. A module that it does not know is begun first: a run
of a part of the tests writes the rows of its modules alone, and a test that is new can bear the marker `slow` itself.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent.parent / "durations.json"
# `make quick` leaves out a test function of which one case took so long.
SLOW_S = 0.1


@cache
def _recorded() -> dict[str, dict[str, float]]:
    """Seconds by module, and by test function for the slow ones."""
    recorded: dict[str, dict[str, float]] = json.loads(FILE.read_text("utf-8"))
    return recorded


def seconds_of_modules(nodeids: Iterable[str]) -> dict[str, float]:
    """The seconds of each module, or of those of its slow tests that are among these: a run of the tests that are not
    long has written the modules' rows, and that may be least of a module with long ones. One without a row counts as
    endless: nobody knows how long it takes, so that nobody waits for it at the end."""
    chosen: dict[str, float] = {}
    for nodeid in nodeids:
        module, seconds = nodeid.partition("::")[0], _recorded()["slow"].get(nodeid.partition("[")[0], 0.0)
        chosen[module] = chosen.get(module, 0.0) + seconds
    return {module: max(seconds, _recorded()["modules"].get(module, 0.0)) or inf for module, seconds in chosen.items()}


def is_slow(nodeid: str) -> bool:
    """Whether a case of the test's function took SLOW_S."""
    return nodeid.partition("[")[0] in _recorded()["slow"]


def write_durations(stats: Mapping[str, Sequence[Any]]) -> None:
    """Write the rows of all modules that a run went through, from its reports."""
    tests: dict[str, float] = {}
    for report in (report for reports in stats.values() for report in reports if hasattr(report, "duration")):
        tests[report.nodeid] = tests.get(report.nodeid, 0.0) + report.duration
    FILE.write_text(json.dumps(table_of(tests, _recorded()), indent=1) + "\n", "utf-8")


def table_of(tests: Mapping[str, float], before: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """The seconds of all modules, and of the longest case of each test function that is slow. The rows that there were
    before stay for modules that did not run and still exist."""
    ran = {nodeid.partition("::")[0] for nodeid in tests}
    modules, functions = (
        {name: seconds for name, seconds in before[part].items() if _stays(name.partition("::")[0], ran)}
        for part in ("modules", "slow")
    )
    for nodeid, seconds in tests.items():
        module, name = nodeid.partition("::")[0], nodeid.partition("[")[0]
        modules[module] = modules.get(module, 0.0) + seconds
        functions[name] = max(functions.get(name, 0.0), seconds)
    return {
        "modules": {name: round(seconds, 1) for name, seconds in sorted(modules.items()) if seconds >= 0.1},
        "slow": {name: round(seconds, 2) for name, seconds in sorted(functions.items()) if seconds >= SLOW_S},
    }


def _stays(module: str, ran: Collection[str]) -> bool:
    return module not in ran and (FILE.parent.parent / module).exists()
