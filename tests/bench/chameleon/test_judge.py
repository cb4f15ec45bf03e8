"""The judge at work: repairs, refusals, and the temperature that it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from chameleon_outside import JUDGE, MODEL, ScriptedOutside, judgement, kind_of
from virtual_time import run_virtually

from millstream.bench.chameleon.judge import AnsweredTurn, JudgeResult, RepairFailed, TurnJudge
from millstream.bench.chameleon.prompts import JudgePrompt
from millstream.bench.evaluation.door.ask import Ask, CallFailed
from millstream.bench.evaluation.door.item import Item
from millstream.bench.evaluation.door.outside import CallCosts
from millstream.engine.call import Call, Failure, Message, Reply, Usage
from millstream.engine.pairs import Pair

Said = str | Reply | Failure | None


def judged(
    answer: Callable[[Call], Said], *, prompt: JudgePrompt = "extended", temperature: float | None = 0.0, times: int = 1
) -> tuple[list[JudgeResult], ScriptedOutside, CallCosts]:
    outside = ScriptedOutside(answer=answer)
    ask = Ask(outside, "Chameleon", Item("c0"), Pair(MODEL, 0.0))

    async def judge() -> list[JudgeResult]:
        one = TurnJudge(JUDGE, prompt, 10_000, temperature)
        turns = (AnsweredTurn("T", [], f"Q{n}?", "An answer.") for n in range(times))
        return await asyncio.gather(*(one.judge(turn, ask, 1) for turn in turns))

    return run_virtually(judge()), outside, ask.costs(1)


def test_a_sound_judgement_takes_one_call_at_temperature_0() -> None:
    (one,), outside, spent = judged(lambda call: None)
    assert (one.judgement.stance, one.judgement.judge_repaired, one.raw) == ("supportive", False, None)
    assert one.judgement.judge_temperature == 0.0
    assert spent.judge.usage == Usage(100, 10)
    assert [call.temperature for call in outside.calls] == [0.0]
    assert (len(spent.keys), spent.cost, spent.from_cache) == (1, 0.001, None)


def test_one_repair_is_asked_with_the_judges_own_words_and_what_is_wrong() -> None:
    (one,), outside, spent = judged(
        lambda call: "It is supportive." if kind_of(call) == "judge" else judgement("critical")
    )
    assert (one.judgement.stance, one.judgement.judge_repaired, one.raw) == ("critical", True, None)
    assert spent.judge.usage == Usage(200, 20)
    repair = outside.calls[1].input
    assert repair[:1] == outside.calls[0].input
    assert repair[1] == Message("assistant", "It is supportive.")
    assert isinstance(repair[2], Message)
    assert "expected a JSON object, got none" in repair[2].content
    assert len(spent.keys) == 2


def test_a_second_unreadable_reply_is_unclear_with_its_raw_text_kept() -> None:
    (one,), outside, _ = judged(lambda call: f"{kind_of(call)}: no idea")
    assert (one.judgement.stance, one.judgement.judge_repaired, one.raw) == ("unclear", True, "repair: no idea")
    assert (one.judgement.confidence, one.judgement.rationale) == (None, None)
    assert len(outside.calls) == 2


def test_a_refusing_judge_is_not_asked_again() -> None:
    (one,), outside, _ = judged(lambda call: Reply("", None, "content_filter", refused=True))
    assert (one.judgement.stance, one.raw, one.judgement.judge_repaired) == ("unclear", "", False)
    assert len(outside.calls) == 1


def test_a_call_that_fails_for_good_is_told_with_its_step() -> None:
    with pytest.raises(CallFailed) as first:
        judged(lambda call: Failure("server_error", "500"))
    assert first.value.failure == Failure("server_error", "500") and not isinstance(first.value, RepairFailed)
    with pytest.raises(RepairFailed) as second:
        judged(lambda call: "?" if kind_of(call) == "judge" else Failure("timeout", "60 s"))
    assert second.value.failure == Failure("timeout", "60 s")
