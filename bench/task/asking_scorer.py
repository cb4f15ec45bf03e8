"""A scorer that is an async function and asks models: `ms.scorer`.

Owns which models it may ask, how its calls are made, and which answers a record keeps of them: `score --task` carries
the function out once more with these, and sends nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from inspect import iscoroutinefunction
from typing import Any, ClassVar, TypeAlias

import msgspec
from msgspec import UNSET

from ...configuration.values import NONE
from ...engine.call import Call, Reply
from ...engine.fault import LocalFault, Stopped
from ..evaluation.door.ask import Ask, StepFailed
from ..evaluation.door.defect import BenchmarkDefect
from .judge import Exchange
from .judge_call import JudgeCall
from .messages import Said, messages_in
from .rows import TaskError, TaskRow, shown
from .scorers import Function, Score, failed

AsyncFunction: TypeAlias = Callable[..., Awaitable[Any]]


class AskingScorer(Function, frozen=True):
    """An async function as a scorer: `await function(reply, row, ask)` returns what a function returns: see
    `scorer`."""

    models: tuple[str, ...] = ()
    within: ClassVar[Any] = None

    def score(self, reply: Reply, row: TaskRow) -> Score:
        raise TypeError("it asks models: grade scores")

    def foreseen(self, name: str, exchange: Exchange, row: TaskRow) -> list[Call]:
        """Returns the calls about an exchange, for a plan: one to each model."""
        return [Call(model, f"{exchange.question}\n{exchange.answer}") for model in self.models]

    async def grade(
        self, name: str, exchange: Exchange, reply: Reply, row: TaskRow, ask: Ask
    ) -> tuple[Score, tuple[JudgeCall, ...]]:
        """Carries out the function about a reply and returns the score, and its calls as a record keeps them. `name`:
        the scorer's."""
        asker = ScorerAsk(name, self, ask)
        score = await self._scored(asker, reply, row)
        made = await asker.made()
        ask.check_ended()  # even if the author's code caught it
        return score, made

    async def grade_again(self, calls: Sequence[JudgeCall], reply: Reply, row: TaskRow) -> Score:
        """Returns the score that the function gives with the answers of these calls; nothing is sent."""
        asker = ScorerAsk("", self, None, calls)
        score = await self._scored(asker, reply, row)
        # Even if the author's code caught it, and returned a score.
        return score if asker.missing is None else Score(None, problem=asker.missing)

    async def _scored(self, asker: ScorerAsk, reply: Reply, row: TaskRow) -> Score:
        """Returns the score that the function gives. Passes on what ends sending, and a call that failed for good."""
        try:
            return self.read(await self.function(reply, row.copied(), asker))
        except (Stopped, LocalFault, StepFailed, BenchmarkDefect):
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001  (a user's function: the answer is paid for, and is kept)
            return failed(error)

    def call(self, messages: Said, model: str | None, sample: int, parameters: dict[str, Any]) -> Call:
        """Returns the call that the function asks for. Raises BenchmarkDefect for a model that is not declared."""
        model = self.models[0] if model is None else model
        if model not in self.models:
            name, listed = getattr(self.function, "__name__", "function"), shown([*self.models, model])
            raise BenchmarkDefect(f"score: {name} asks {model}: declare it, as ms.scorer({name}, models={listed})")
        temperature = parameters.pop("temperature", 0.0)
        sent = None if temperature == NONE else temperature
        return Call(model, messages_in(messages), temperature=sent, trial=sample, **parameters)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "models": list(self.models)}


class ScorerAsk:
    """`ask` as an async score function has it. `ask` None: nothing is sent, and the calls that a record keeps have the
    answers."""

    def __init__(self, name: str, scorer: AskingScorer, ask: Ask | None, kept: Sequence[JudgeCall] = ()) -> None:
        self.missing: str | None = None
        """The sentence on a call that has no answer in the record; None: every call had one."""
        self._name, self._scorer, self._ask = name, scorer, ask
        self._kept = {each.asked: Reply(each.text, refused=each.refused is True) for each in kept}
        # In the order in which they began.
        self._begun: list[asyncio.Task[tuple[Reply, JudgeCall]]] = []

    async def __call__(self, messages: Said, *, model: str | None = None, sample: int = 0, **parameters: Any) -> Reply:
        call = self._scorer.call(messages, model, sample, parameters)
        digest = hashlib.sha256(msgspec.json.encode(call)).hexdigest()[:32]
        if self._ask is not None:
            self._begun.append(self._ask.begin(self._sent(call, digest, self._ask)))
            # The awaiting code may be cancelled, but the call is paid for: its answer is kept.
            return (await asyncio.shield(self._begun[-1]))[0]
        if digest not in self._kept:
            self.missing = f"its call to {call.model} is not in the record, and score sends nothing: run the task again"
            raise LookupError(self.missing)
        return self._kept[digest]

    async def _sent(self, call: Call, digest: str, ask: Ask) -> tuple[Reply, JudgeCall]:
        reply = await ask(call, role="judge")
        return reply, JudgeCall(
            scorer=self._name,
            model=call.model,
            text=reply.text,
            asked=digest,
            refused=True if reply.refused else UNSET,
        )

    async def made(self) -> tuple[JudgeCall, ...]:
        """Returns the calls that were answered, once none is under way."""
        ended = await asyncio.gather(*self._begun, return_exceptions=True)
        return tuple(each[1] for each in ended if not isinstance(each, BaseException))


def scorer(function: AsyncFunction, models: str | Sequence[str]) -> AskingScorer:
    """Returns a scorer that is an async function of reply, row and `ask`, by which it asks other models.

    function: `async def grade(reply, row, ask)`; it returns what a plain score function returns.
    models: the models that it may ask, as ["openai/gpt-6.2-sol"]; plans and --max-cost reckon with them.

    `await ask("…")` asks the first of the models and returns its Reply. `ask(messages, model=…, sample=0, …)` takes
    messages too, another of the models, and the parameters of a call; the temperature is 0 unless it is given, and not
    sent to a model that takes none. Equal calls have one answer, unless their `sample` numbers differ. Calls are
    cached, priced and recorded as a judge's are.
    """
    if not iscoroutinefunction(function):
        raise TaskError(
            "scorer: expected `async def` with reply, row and ask: a plain function is a scorer as it is, got "
            f"{shown(function)}"
        )
    several = (models,) if isinstance(models, str) else tuple(models)
    if not several or not all(isinstance(model, str) and "/" in model for model in several):
        raise TaskError(f'scorer: models: expected names as "provider/model", got {shown(models)}')
    return AskingScorer(function, several)
