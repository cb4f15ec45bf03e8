"""The garbage collector is calmed while a program runs calls, and afterwards as it was before."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from millstream.engine.collector import YOUNG_MAX, calm_collector

PROGRAM = """
import gc
from millstream.engine.collector import calm_collector
if {freezes}:
    kept = [[] for _ in range(20_000)]
    gc.freeze()
before = gc.get_freeze_count()
with calm_collector():
    assert gc.get_freeze_count() >= max(before, 5_000)
print(gc.get_freeze_count() == before if {freezes} else gc.get_freeze_count() == 0)
"""


@pytest.mark.process
@pytest.mark.parametrize("freezes", [False, True])
def test_what_a_process_froze_itself_stays_frozen_and_nothing_else_does(freezes: bool) -> None:
    program = [sys.executable, "-P", "-c", PROGRAM.format(freezes=freezes)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_thresholds_are_as_before_also_after_a_fault() -> None:
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="fault"), calm_collector():
        assert gc.get_threshold()[0] == YOUNG_MAX
        raise ValueError("fault")
    assert gc.get_threshold() == before


def test_no_garbage_is_looked_for_where_there_is_none() -> None:
    gc.collect()  # else one may be due before the block begins
    rounds = [each["collections"] for each in gc.get_stats()]
    with calm_collector(young_max=0):
        kept = [[] for _ in range(20 * YOUNG_MAX)]  # type: ignore[var-annotated]
    assert len(kept) == 20 * YOUNG_MAX
    assert [each["collections"] for each in gc.get_stats()][1:] == rounds[1:]
