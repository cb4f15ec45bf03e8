"""What of a turn came from the cache, and that no count of tokens has what was not sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chameleon_outside import JUDGE, MODEL, OTHER, ScriptedOutside, kind_of
from chameleon_sweep import recount
from chameleon_types import Asking, Lines, Making, Running, ids

from millstream.bench.evaluation.door.item_line import StepTotals
from millstream.engine.call import Call, Failure, Reply, Usage
from millstream.engine.pairs import Pair
from millstream.providers.pages.page import Page

Counting = Callable[[], StepTotals]
TURN = {"input": 200, "output": 20}
CALL = {"input": 100, "output": 10}


@pytest.fixture
def counting(tmp_path: Path) -> Counting:
    def count() -> StepTotals:
        folder = tmp_path / "run"
        records, failures = ((folder / f"{name}.jsonl").read_bytes().splitlines() for name in ("records", "failures"))
        return recount(records, failures)

    return count


def without_kinds(memory: dict[str, Any], *kinds: type) -> dict[str, Any]:
    """As a cache is once these are too old."""
    return {key: kept for key, kept in memory.items() if not isinstance(kept, kinds)}


def tokens(counted: StepTotals, pair: Pair) -> tuple[int, int]:
    return counted.of(pair).input_tokens, counted.judging[pair].input_tokens


def test_answers_are_from_the_cache_however_old_the_pages_are(
    made: Making, asking: Asking, running: Running, lines: Lines, counting: Counting
) -> None:
    first = ScriptedOutside()
    running(first, made(2, 2), asking(max_tokens=9))
    pair = Pair(MODEL, 0.0)
    assert (counting().of(pair).cached, tokens(counting(), pair)) == (0, (800, 400))
    second = ScriptedOutside(memory=without_kinds(first.memory, Page))
    running(second, made(2, 2), asking(max_tokens=9), is_another=True)
    assert not second.calls
    assert (counting().of(pair).cached, tokens(counting(), pair)) == (4, (0, 0))
    assert {str(line["from_cache"]) for line in lines()} == {
        str({"usage": TURN, "usage_judge": CALL, "judge": True, "search": True})
    }
    assert {(line["cached"], str(line["usage"]), str(line["usage_judge"])) for line in lines()} == {
        (True, str(TURN), str(CALL))
    }


def test_a_judge_that_is_asked_anew_takes_tokens_of_its_own_alone(
    made: Making, asking: Asking, running: Running, lines: Lines, counting: Counting
) -> None:
    memory: dict[str, Any] = {}
    running(ScriptedOutside(memory=memory), made(1, 2), asking())
    running(ScriptedOutside(memory=memory), made(1, 2), asking(judge_prompt="paper"), is_another=True)
    pair = Pair(MODEL, 0.0)
    assert (counting().of(pair).cached, tokens(counting(), pair)) == (2, (0, 200))
    assert lines()[0]["from_cache"] == {"usage": TURN, "search": True, "pages": 3}


def test_a_turn_that_was_cut_off_counts_what_is_sent_for_it_and_no_more(
    made: Making, asking: Asking, running: Running, lines: Lines, counting: Counting
) -> None:
    memory: dict[str, Any] = {}
    # The first turn's query is answered, and the run stops before its answer.
    running(ScriptedOutside(memory=memory, stop_after={MODEL: 1}), made(1, 1), asking())
    assert lines() == []
    running(ScriptedOutside(memory=memory), made(1, 1), asking())
    (line,) = lines()
    assert (line["cached"], line["usage"], line["from_cache"]["usage"]) == (False, TURN, CALL)
    assert tokens(counting(), Pair(MODEL, 0.0)) == (100, 100)


def test_queries_that_another_model_wrote_are_neither_its_tokens_nor_its_cache(
    made: Making, asking: Asking, running: Running, lines: Lines, counting: Counting
) -> None:
    by = Pair(OTHER, 0.0)
    asked = asking(queries_by=by, tokens={MODEL: 100_000, JUDGE: 100_000})
    memory: dict[str, Any] = {}
    running(ScriptedOutside(memory=memory, latency_s={OTHER: 1.0}), made(1, 1), asked)
    assert (lines()[0]["usage"], lines()[0]["cached"]) == (CALL, False)
    running(ScriptedOutside(memory=memory), made(1, 1), asked, is_another=True)
    assert (lines()[0]["cached"], tokens(counting(), Pair(MODEL, 0.0))) == (True, (0, 0))


def test_a_turn_that_failed_at_its_judge_counts_the_answer_that_was_sent(
    made: Making, asking: Asking, running: Running, lines: Lines, counting: Counting
) -> None:
    outside = ScriptedOutside(answer=lambda call: Failure("timeout", "60 s") if kind_of(call) == "judge" else None)
    running(outside, made(1, 1), asking())
    assert ids(lines("failures")) == ["c0/1"]
    assert tokens(counting(), Pair(MODEL, 0.0)) == (200, 0)
    again = ScriptedOutside(memory=outside.memory)
    running(again, made(1, 1), asking(), retry=True)
    assert tokens(counting(), Pair(MODEL, 0.0)) == (0, 100)


def test_with_a_refusal_without_usage_the_tokens_of_its_turn_are_unknown(
    made: Making, asking: Asking, running: Running, lines: Lines
) -> None:
    def answer(call: Call) -> Reply | None:
        return Reply("No.", None, "content_filter", refused=True) if kind_of(call) == "answer" else None

    running(ScriptedOutside(answer=answer), made(1, 1), asking())
    assert lines()[0]["usage"] == {"input": None, "output": None}


def test_lines_of_another_program_that_are_cached_took_nothing() -> None:
    plain = {"conversation": "c", "model": "m", "usage": TURN, "usage_judge": CALL}
    written = [
        f'{{"id": "c/{at}", "turn": {at}, "cached": {cached}, {str(plain)[1:-1]}}}'.replace("'", '"').encode()
        for at, cached in ((1, "true"), (2, "false"))
    ]
    assert tokens(recount(written), Pair("m", None)) == (200, 100)
    assert Usage(1, 2, 3, 4) + Usage(1, 1, 1, 1) == Usage(2, 3, 4, 5)
