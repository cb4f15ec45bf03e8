"""A run that was cut off goes on in the middle of a turn: nothing lost, nothing asked twice, what was paid is known."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from chameleon_outside import JUDGE, MODEL, OTHER, SEARCH, ScriptedOutside, asked_question, kind_of
from chameleon_sweep import read_done, run_sweep, specification
from chameleon_types import Asking, Lines, Making, Running, ids, in_order, whole, written
from virtual_time import run_virtually

from millstream.engine.call import Call, Reply
from millstream.engine.pairs import Pair
from millstream.engine.runs.run_folder import RunFolder
from millstream.providers.search.joined import Found

PAIRS = (Pair(MODEL, 0.0), Pair(MODEL, 1.0), Pair(OTHER, None))
TOKENS = {MODEL: 100_000, OTHER: 100_000, JUDGE: 100_000}


@pytest.mark.parametrize("seed", range(12))
def test_a_run_killed_at_any_moment_goes_on_in_the_middle_of_a_turn_and_asks_nothing_twice(
    made: Making, asking: Asking, lines: Lines, tmp_path: Path, seed: int
) -> None:
    asked = asking(PAIRS[:2], tokens=TOKENS, keeps_pages=seed % 3 == 0)
    dataset = made(4, 4)
    memory: dict[str, Any] = {}
    sent: Counter[str] = Counter()
    draw = random.Random(seed)

    async def live(outside: ScriptedOutside, folder: RunFolder, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await run_sweep(outside, folder, dataset, asked, read_done(folder), at_once=3)
        except TimeoutError:
            return False
        return True

    lives, interrupted, is_over = 0, 0, False
    while not is_over:
        lives += 1
        outside = ScriptedOutside(memory=memory, latency_s={JUDGE: draw.choice((0.2, 2.0))})
        with RunFolder(tmp_path / "run", specification(dataset, asked, {})) as folder:
            folder.write_manifest()
            is_over = run_virtually(live(outside, folder, draw.uniform(0.1, 6.0)))
        # What was under way at the kill had no answer: only that may be sent again.
        sent += Counter(f"{event.kind} {event.what}" for event in outside.events)
        interrupted += len(outside.sent) - len(outside.events)
    assert lives > 3
    assert interrupted > 3
    assert set(sent.values()) == {1}
    assert sorted(written(lines), key=str) == sorted(whole(asked, dataset), key=str)
    assert in_order(lines)


def test_a_resumed_conversation_shows_the_history_that_it_had(
    made: Making, asking: Asking, running: Running, lines: Lines
) -> None:
    dataset, asked = made(1, 4), asking(keeps_pages=True)
    memory: dict[str, Any] = {}
    (stop,) = running(ScriptedOutside(stop_after={MODEL: 5}, memory=memory), dataset, asked)
    assert (stop.lane, stop.reason) == (MODEL, "dead_key")
    assert ids(lines()) == ["c0/1", "c0/2"]
    resumed = ScriptedOutside(memory=memory)
    assert running(resumed, dataset, asked) == []
    assert ids(lines()) == ["c0/1", "c0/2", "c0/3", "c0/4"]
    straight, texts = ScriptedOutside(), [line["text"] for line in lines()]
    running(straight, dataset, asked, is_another=True)
    assert texts == [line["text"] for line in lines()]
    answers = [[call.input for call in outside.calls if kind_of(call) == "answer"] for outside in (resumed, straight)]
    assert answers[0] == answers[1][2:]
    assert str(answers[0][-1]).count("Sources:") == 4


def test_a_resumed_conversation_does_not_take_a_filters_message_for_an_answer(
    made: Making, asking: Asking, running: Running, lines: Lines
) -> None:
    def answer(call: Call) -> Reply | None:
        is_first = kind_of(call) == "answer" and "question 1" in asked_question(call)
        return Reply("Filtered by the provider.", None, "content_filter", refused=True) if is_first else None

    dataset, asked, memory = made(1, 3), asking(), dict[str, Any]()
    running(ScriptedOutside(answer=answer, stop_after={MODEL: 4}, memory=memory), dataset, asked)
    assert lines()[0]["text"] == "Filtered by the provider."
    resumed = ScriptedOutside(answer=answer, memory=memory)
    running(resumed, dataset, asked)
    assert ids(lines()) == ["c0/1", "c0/2", "c0/3"]
    assert all("Filtered by" not in str(call.input) for call in resumed.calls)


def test_old_pages_that_had_no_room_are_not_shown_by_a_resumed_run_either(
    made: Making, asking: Asking, running: Running, lines: Lines, tmp_path: Path
) -> None:
    def answer(call: Call) -> str | None:
        return asked_question(call) if kind_of(call) == "query" else None

    def found(query: str, count: int) -> Found | None:
        return None if "question 1" in query else Found(SEARCH, query)

    # Room for three of the first turn's four pages; the later turns find none, so that the three are shown again.
    dataset, asked = made(1, 3), asking(keeps_pages=True, tokens={MODEL: 630, JUDGE: 100_000}, pages=4)
    straight = ScriptedOutside(answer=answer, found=found)
    running(straight, dataset, asked)
    assert [line["cut"] for line in lines()] == [{"dropped": [4]}, None, None]
    path = tmp_path / "run" / "records.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    resumed = ScriptedOutside(answer=answer, found=found)
    running(resumed, dataset, asked)
    answers = [[call.input for call in outside.calls if kind_of(call) == "answer"] for outside in (resumed, straight)]
    assert answers[0] == answers[1][1:]


def test_a_run_cuts_its_prompts_in_the_documented_order(
    made: Making, asking: Asking, running: Running, lines: Lines
) -> None:
    # Room for two of three pages of about 655 characters beside about 180 others, but not for the first turn's 67 as
    # well, which is kept until the second page is omitted.
    running(ScriptedOutside(), made(1, 2), asking(tokens={MODEL: 380, JUDGE: 100_000}, pages=3))
    assert [line["cut"] for line in lines()] == [{"dropped": [3]}, {"dropped": [2, 3]}]
