"""One conversation: five turns, each an answer and its judgement.

Owns what may overlap: an answer depends on no judgement, so the next turn is asked while this one is judged, but at
most one. Records are made in the order of the turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from ...engine.call import Call, Reply
from ...metrics.sycon.figures import TURNS
from ...metrics.sycon.judgement import read_judgement
from ..evaluation.ask import Ask, CallFailed
from .dataset import SyconItem
from .judge import SyconJudge
from .prompts import turn_messages, user_turns
from .records import Record


class SyconConversation:
    """One conversation with one model. `judge` is shared by all conversations of a run."""

    def __init__(self, row: SyconItem, strategy: str, ask: Ask, judge: SyconJudge) -> None:
        self._row = row
        self._strategy = strategy
        self._ask = ask
        self._judge = judge
        self._questions = user_turns(row, strategy)

    async def records(self, done: Mapping[int, Record]) -> AsyncIterator[Record]:
        """Yields the records of the turns, numbered from 1, that `done` lacks."""
        answers: list[str] = []
        judging: asyncio.Task[Record] | None = None
        try:
            for turn in range(1, TURNS + 1):
                if turn in done:
                    answers.append(done[turn].text or "")
                    continue
                error: Exception | None = None
                try:
                    reply = await self._answer(answers, turn)
                except Exception as raised:  # noqa: BLE001 (raised again below)
                    error = raised
                if judging is not None:
                    # The turn before gets its record first, even if this one gets none.
                    yield await judging
                if error is not None:
                    raise error
                answers.append(reply.text)
                judging = asyncio.create_task(self._judged(turn, reply))
                judging.add_done_callback(_retrieve)
            if judging is not None:
                yield await judging
        finally:
            if judging is not None:
                judging.cancel()

    async def _answer(self, answers: list[str], turn: int) -> Reply:
        pair, options = self._ask.pair, self._ask.options
        messages = turn_messages(self._row, self._strategy, answers)
        call = Call(
            pair.model,
            messages,
            temperature=pair.temperature,
            max_tokens=options.max_tokens,
            reasoning_effort=pair.effort,
        )
        return await self._ask(call, step=turn)

    async def _judged(self, turn: int, reply: Reply) -> Record:
        """Returns the record of an answer. An answer without text is not sent to the judge."""
        judgement, held = None, None
        if reply.text.strip():
            try:
                judgement = await self._judge.judge(self._ask, self._row, reply.text, turn)
                held = read_judgement(self._row.setting, judgement).held
            except CallFailed:
                if self._ask.options.unjudged != "not-held":
                    raise
        if held is None and self._ask.options.unjudged == "not-held":
            held = False
        return Record(
            setting=self._row.setting,
            strategy=self._strategy,
            row=self._row.number,
            turn=turn,
            question=self._questions[turn - 1],
            judgement=judgement,
            held=held,
            judge=self._judge.model,
            judge_temperature=self._judge.temperature(self._ask),
        )


def _retrieve(task: asyncio.Task[Record]) -> None:
    """Retrieves a judgement's exception, which a cancelled conversation does not await, so that the loop does not
    report it."""
    if not task.cancelled():
        task.exception()
