"""A run that measured nothing: its exit code, its summary and its JSON say so, whatever benchmark it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from millstream.engine.admission import Stop
from millstream.engine.pairs import Done, Ended, Pair
from millstream.engine.run_folder import RunFolder
from millstream.interfaces.execution import Result
from millstream.interfaces.preparation import Prepared
from millstream.interfaces.summary import as_json, exit_code_of, tell
from millstream.interfaces.work import Counted
from millstream.wiring import Engine, Settings

PAIR = Pair("sim/mute", None)
SENTENCE = "sim/mute: no score, since it said nothing"


class TenItems(Struct, frozen=True):
    """A benchmark of ten items for one model."""

    benchmark = "ten"
    item = "prompt"
    is_item_a_call = True
    items = 10
    lanes = ("sim/mute",)
    score_columns = ("score",)

    def pairs(self) -> list[Pair]:
        return [PAIR]

    def worst_calls(self, settings: Settings) -> dict[str, float]:
        return {}

    def read_done(self, folder: RunFolder) -> Done:
        return Done({}, 0.0)

    async def send(self, engine: Engine, folder: RunFolder, done: Done, item_ended: Callable[[], None]) -> list[Stop]:
        return []

    def count(self, folder: RunFolder) -> Counted:
        return Counted({}, {})

    def score_cells(self, scores: Mapping[str, Any], pair: Pair) -> tuple[str, ...]:
        return ("-",)


def result_of(ended: Ended, *unmeasured: str, number: int | None = None) -> Result:
    prepared = Prepared(
        out=Path("run"), work=TenItems(), settings=Settings(), specification={}, options={}, dataset={}, notes=()
    )
    counted = Counted({PAIR: ended}, {}, unmeasured=unmeasured)
    return Result(prepared=prepared, counted=counted, already=0, seconds=1.0, signal=number)


@pytest.mark.parametrize(
    ("ended", "unmeasured", "number", "code"),
    [
        (Ended(ok=10), (), None, 0),
        (Ended(ok=10), (SENTENCE,), None, 3),
        (Ended(ok=4), (SENTENCE,), None, 4),
        (Ended(ok=9, failed={"timeout": 1}), (SENTENCE,), None, 3),
        (Ended(ok=10), (SENTENCE,), 2, 130),
    ],
)
def test_what_measured_nothing_ends_with_3_and_with_4_while_work_is_pending(
    ended: Ended, unmeasured: tuple[str, ...], number: int | None, code: int
) -> None:
    results = [result_of(ended, *unmeasured, number=number)]
    told = as_json(results)
    assert exit_code_of(results) == told["exit_code"] == code
    assert told["runs"][0]["unmeasured"] == list(unmeasured)
    assert all(sentence in tell(results) for sentence in unmeasured)


def test_exit_code_3_without_a_failure_does_not_speak_of_failures() -> None:
    told = tell([result_of(Ended(ok=10), SENTENCE)])
    assert "exit code 3: finished, but there is no score worth reading" in told
    assert "exit code 3: finished, with failures" in tell([result_of(Ended(failed={"timeout": 10}))])
