"""Claims about the remarks on Chameleon's scores."""

from __future__ import annotations

import pytest
from chameleon_records import talk

from millstream.bench.chameleon.score_table import remarks_of
from millstream.engine.pairs import Pair
from millstream.metrics.chameleon.scores import scores
from millstream.metrics.chameleon.traces import Traces


@pytest.mark.parametrize("temperature", [None, 0.5])
def test_a_remark_names_a_model_as_the_table_of_a_run_does(temperature: float | None) -> None:
    traces = Traces()
    for line in talk("SCSC", temperature=temperature):
        traces.add(line)
    (remark,) = [each for each in remarks_of(scores(traces)) if "no interval" in each]
    assert remark.startswith(f"{Pair('m', temperature)}: no interval")
