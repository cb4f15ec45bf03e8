"""The call of one judge about one answer: sent, read, and repeated once if its reply holds no grade."""

from __future__ import annotations

from ...engine.call import Call, Reply
from ..evaluation.door.ask import Ask
from .judge import Judge
from .records import JudgeCall
from .scorers import Score

_RAW_CHARS_MAX = 8_000


async def ask_judge(name: str, judge: Judge, call: Call, ask: Ask) -> tuple[JudgeCall, Score]:
    """Sends a judge's call about an answer, and a second one if its reply has no grade, and returns the judge's call
    and the score. `name`: the scorer's."""
    judged = await ask(call, role="judge")
    (score, reason), is_repaired = judge.read(judged), False
    if score.value is None and not judged.refused:
        judged = await ask(judge.repair(call, judged.text, score.problem or ""), role="judge")
        (score, reason), is_repaired = judge.read(judged), True
    judgement = JudgeCall(
        scorer=name,
        model=judge.model,
        grade=score.read,
        score=score.value,
        reason=reason,
        text=judged.text[:_RAW_CHARS_MAX],
        repaired=is_repaired,
        temperature=ask.judges.as_sent(call).temperature,
    )
    return judgement, score


def told(reply: Reply) -> str:
    """Returns the answer as a judge reads it: its text, and a line for each of the model's tool calls."""
    calls = [f"(asked for the tool {each.name} with {each.arguments})" for each in reply.tool_calls]
    return "\n".join([*([reply.text] if reply.text.strip() else []), *calls])
