"""The call of one judge about one answer: sent, read, and repeated once if its reply holds no grade."""

from __future__ import annotations

from msgspec import structs

from ...engine.call import Call, Reply
from ..evaluation.ask import Ask, CallFailed
from ..evaluation.judges import may_lie_in_temperature
from .judge import Judge
from .records import JudgeCall
from .scorers import Score

_RAW_CHARS_MAX = 8_000


async def ask_judge(name: str, judge: Judge, call: Call, ask: Ask) -> tuple[JudgeCall, Score]:
    """Sends a judge's call about an answer, and a second one if its reply has no grade, and returns the judge's call
    and the score. `name`: the scorer's. Raises CallFailed if the judge gives no reply."""

    async def send(call: Call) -> Reply:
        if not judge.sets_temperature:
            return await ask.judge(call)
        try:
            return await ask(call, role="judge")
        except CallFailed as error:
            if error.failure.kind != "rejected" or not may_lie_in_temperature(error.failure):
                raise
            # What to do with an option of the command line is no help here.
            said = error.failure.detail.partition(" (the model refuses")[0]
            advice = f"score {name}: the judge {judge.model} refuses its temperature, leave it out there: {said}"
            raise CallFailed(call, "judge", error.step, structs.replace(error.failure, detail=advice)) from error

    judged = await send(call)
    grade, is_repaired = judge.read(judged), False
    if grade.score.value is None and not judged.refused:
        judged = await send(judge.repair(call, judged.text, grade.score.problem or ""))
        grade, is_repaired = judge.read(judged), True
    judgement = JudgeCall(
        scorer=name,
        model=judge.model,
        grade=grade.score.read,
        score=grade.score.value,
        reason=grade.reason,
        text=judged.text[:_RAW_CHARS_MAX],
        repaired=is_repaired,
        temperature=(call if judge.sets_temperature else ask.judges.as_sent(call)).temperature,
    )
    return judgement, grade.score


def told(reply: Reply) -> str:
    """Returns the answer as a judge reads it: its text, and a line for each of the model's tool calls."""
    calls = [f"(asked for the tool {each.name} with {each.arguments})" for each in reply.tool_calls]
    return "\n".join([*([reply.text] if reply.text.strip() else []), *calls])
