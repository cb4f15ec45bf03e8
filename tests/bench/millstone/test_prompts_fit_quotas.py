"""A run is refused if a prompt needs more than its lane may send in a minute; the grid is drawn only to find that."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.bench.evaluation.door.benchmark import RunBasis
from millstream.bench.millstone.grid import Protocol
from millstream.bench.millstone.options import Options
from millstream.bench.millstone.work import GridItems, millstone_run
from millstream.configuration.errors import UsageError
from millstream.engine.lane import Lane
from millstream.engine.pairs import Pair
from millstream.wiring import Settings

MODEL = "sim/open"
PROTOCOLS: tuple[Protocol, ...] = ("paper", "released")


def completed(tpm: float | None, protocol: Protocol) -> GridItems:
    """The items of a run that is ready to begin; a call is asked for 100 tokens."""
    options = Options(model=(MODEL,), protocol=protocol, templates=1, trials=2)
    items = GridItems(options)
    settings = Settings(lanes=(Lane(MODEL, tpm=tpm),))
    millstone_run(
        RunBasis(out=Path(), options=options, limits={Pair(MODEL, None): 100}, items=items, settings=settings)
    )
    return items


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_longest_prompt_decides_to_the_token(protocol: Protocol) -> None:
    longest, longest_id = completed(None, protocol).longest_prompt
    tokens = round(longest / 4) + 100
    completed(tokens, protocol)
    with pytest.raises(UsageError, match=rf"prompt {longest_id} needs about {tokens:,} tokens; lane"):
        completed(tokens - 1, protocol)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_prompt_is_drawn_where_all_arguments_of_an_issue_would_fit(protocol: Protocol) -> None:
    unlimited = completed(None, protocol)
    most = unlimited.most_chars
    assert most > unlimited.longest_prompt[0]
    wide = completed(round(most / 4) + 100, protocol)
    assert "longest_prompt" not in vars(wide) and "steps" not in vars(wide)
