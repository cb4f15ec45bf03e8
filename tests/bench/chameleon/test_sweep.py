"""A sweep: every turn once for each pair, lanes kept busy, and stops, kills and faults that lose and repeat nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from chameleon_outside import JUDGE, MODEL, OTHER, SEARCH, ScriptedOutside
from chameleon_sweep import read_done, recount, run_sweep, specification
from chameleon_types import Asking, Lines, Making, Running
from virtual_time import run_virtually

from millstream.bench.chameleon.dataset import ConversationSet, select
from millstream.bench.chameleon.run_spec import planned_turns
from millstream.engine.pairs import Pair
from millstream.engine.runs.run_folder import RunFolder

PAIRS = (Pair(MODEL, 0.0), Pair(MODEL, 1.0), Pair(OTHER, None))
TOKENS = {MODEL: 100_000, OTHER: 100_000, JUDGE: 100_000}


def test_all_lanes_are_kept_busy_to_within_a_few_percent_of_what_the_narrowest_allows(
    made: Making, asking: Asking, running: Running, lines: Lines
) -> None:
    # Each lane alone would take 40 x 6 turns x 2 s / 16 = 30 s for the model, 40 x 6 x 5 pages x 0.2 s / 10 = 24 s for
    # pages and 15 s for the judge: they overlap, so the whole takes little more than the model alone.
    outside = ScriptedOutside(concurrency={MODEL: 16, JUDGE: 8, SEARCH: 8, "web": 10}, latency_s={JUDGE: 0.5})
    running(outside, made(40, 6), asking(pages=5))
    assert len(lines()) == 240
    makespan = max(event.end for event in outside.events)
    busy = sum(event.end - event.begin for event in outside.events if event.lane == MODEL)
    ideal = busy / 16
    assert ideal == pytest.approx(30.0)
    assert makespan <= ideal * 1.15


def test_as_many_conversations_are_under_way_as_wanted_and_pairs_side_by_side(
    made: Making, asking: Asking, running: Running
) -> None:
    outside = ScriptedOutside(latency_s={OTHER: 50.0, MODEL: 1.0})
    running(outside, made(12, 3), asking((Pair(MODEL, 0.0), Pair(OTHER, None)), tokens=TOKENS), at_once=8)
    answers = [event for event in outside.events if event.kind == "answer"]
    # The slow model holds up its own share alone: the quick one is through before the slow one's second round.
    quick = max(event.end for event in answers if event.lane == MODEL)
    slow = sorted(event.end for event in answers if event.lane == OTHER)
    assert quick < slow[3]
    assert outside.peak[OTHER] <= 2 * 8
    # Once the quick one is done, its places are the slow one's.
    assert outside.peak[OTHER] > 4


def test_half_of_at_once_is_each_pairs_share(made: Making, asking: Asking, running: Running) -> None:
    outside = ScriptedOutside(latency_s={OTHER: 1.0})
    running(outside, made(10, 1), asking((Pair(MODEL, 0.0), Pair(OTHER, None)), tokens=TOKENS), at_once=4)
    assert outside.peak[MODEL] == outside.peak[OTHER] == 2


def test_a_run_of_the_first_conversations_asks_what_the_whole_run_will(
    made: Making, asking: Asking, tmp_path: Path
) -> None:
    def calls(dataset: ConversationSet, name: str) -> set[tuple[Any, ...]]:
        outside, asked = ScriptedOutside(), asking()
        with RunFolder(tmp_path / name, specification(dataset, asked, {})) as folder:
            folder.write_manifest()
            run_virtually(run_sweep(outside, folder, dataset, asked, read_done(folder)))
        return {(call.model, call.input, call.temperature, call.trial) for call in outside.calls}

    twins = made(6, 2)
    same = tuple(
        type(each)(f"t{at}", each.domain, "One topic", ("How?", "Why?")) for at, each in enumerate(twins.conversations)
    )
    data = ConversationSet("twins", "0" * 64, same, same)
    some, every = calls(select(data, 3), "some"), calls(data, "every")
    assert some < every
    # Six conversations of the same questions are six samples of each prompt.
    queries = [call for call in every if isinstance(call[1], str)]
    assert Counter(call[1] for call in queries) == {call[1]: 6 for call in queries}
    assert len({call[3] for call in queries}) == 6
    first_answers = [call for call in every if len(call[1]) == 2]
    assert sorted(call[3] for call in first_answers) == [0, 1, 2, 3, 4, 5]
    # Two answers in the same words are judged twice as well.
    assert {call[3] for call in every if call[0] == JUDGE} == {0, 1, 2, 3, 4, 5}


def test_a_whole_run_recounts_to_what_was_asked(made: Making, asking: Asking, running: Running, tmp_path: Path) -> None:
    asked, dataset = asking(PAIRS, tokens=TOKENS), made(4, 3)
    outside = ScriptedOutside(latency_s={OTHER: 1.0})
    running(outside, dataset, asked)
    rows = (tmp_path / "run" / "records.jsonl").read_bytes().splitlines()
    counted = recount(rows, (), planned_turns(specification(dataset, asked, {})))
    for pair in PAIRS:
        ended = counted.of(pair)
        assert (ended.ok, ended.held, ended.failures, ended.input_tokens) == (12, 0, 0, 12 * 200)
        assert counted.judging[pair].input_tokens == 12 * 100
    total = sum(counted.of(pair).cost or 0 for pair in PAIRS)
    sent = sum(outside.answered[lane] for lane in (MODEL, OTHER, JUDGE))
    assert total == pytest.approx(0.001 * sent + 0.0001 * outside.answered[SEARCH])
    judged = sum(counted.judging[pair].cost or 0 for pair in PAIRS)
    assert judged == pytest.approx(0.001 * outside.answered[JUDGE])
    searched = sum(counted.searches[pair] for pair in PAIRS)
    assert searched == pytest.approx(0.0001 * outside.answered[SEARCH])


def test_whom_records_show_to_have_answered_is_known_when_a_run_goes_on(
    made: Making, asking: Asking, running: Running, tmp_path: Path
) -> None:
    asked, dataset = asking(), made(1, 2)
    running(ScriptedOutside(), dataset, asked)
    with RunFolder(tmp_path / "run", specification(dataset, asked, {})) as folder:
        assert read_done(folder).answered == {MODEL, JUDGE, SEARCH}
