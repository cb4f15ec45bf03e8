"""What a folder of Chameleon holds, read as its run reads it."""

from __future__ import annotations

from millstream.bench.chameleon.recount import TurnLine
from millstream.bench.evaluation import journals
from millstream.engine.runs.pairs import FinishedItems
from millstream.engine.runs.run_folder import RunFolder


def read_done(folder: RunFolder) -> FinishedItems:
    return journals.read_done(folder, TurnLine)
