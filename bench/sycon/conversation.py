"""One conversation: five turns, each an answer and its judgement, which later answers don't depend on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any

from ...engine.call import Call
from ...metrics.sycon.figures import TURNS
from ...metrics.sycon.judgement import read_judgement
from ..evaluation.door.ask import Ask, CallFailed
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

    async def records(self, done: Mapping[int, Record]) -> AsyncIterator[Coroutine[Any, Any, Record]]:
        """Yields the judging of each turn, numbered from 1, that `done` lacks."""
        pair, options = self._ask.pair, self._ask.options
        answers: list[str] = []
        for turn in range(1, TURNS + 1):
            if turn in done:
                answers.append(done[turn].text or "")
                continue
            call = Call(
                pair.model,
                turn_messages(self._row, self._strategy, answers),
                temperature=pair.temperature,
                max_tokens=options.max_tokens,
                reasoning_effort=pair.effort,
            )
            answers.append((await self._ask(call)).text)
            yield self._judged(turn, answers[-1])

    async def _judged(self, turn: int, text: str) -> Record:
        """Returns the record of an answer. An answer without text is not sent to the judge."""
        judgement, held = None, None
        if text.strip():
            try:
                judgement = await self._judge.judge(self._ask, self._row, text, turn)
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
