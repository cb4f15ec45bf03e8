"""A scorer that is an async function and asks models: `ms.scorer`.

Owns which models it may ask and how its calls are made. Sends nothing: the task sends the calls, and `score --task`
finds their answers in the records.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from inspect import iscoroutinefunction
from typing import Any, ClassVar, TypeAlias

from ...configuration.values import NONE
from ...engine.call import Call, Reply
from ...engine.fault import LocalFault, Stopped
from ..evaluation.door.ask import StepFailed
from ..evaluation.door.defect import BenchmarkDefect
from .messages import Said, messages_in
from .rows import TaskError, TaskRow, shown
from .scorers import Function, Score, failed

AsyncFunction: TypeAlias = Callable[..., Awaitable[Any]]


class NotKept(Exception):
    """Raised for a call of a scorer whose answer is not in the record, where nothing is sent."""


class AskingScorer(Function, frozen=True):
    """An async function as a scorer: `await function(reply, row, ask)` returns what a function returns: see
    `scorer`."""

    models: tuple[str, ...] = ()
    within: ClassVar[Any] = None

    def score(self, reply: Reply, row: TaskRow) -> Score:
        raise TypeError("it asks models: scored_by scores")

    async def scored_by(self, ask: Any, reply: Reply, row: TaskRow) -> Score:
        """Returns the score that the function gives. Passes on what ends sending, and a call that failed for good."""
        try:
            return self.read(await self.function(reply, row.copied(), ask))
        except (Stopped, LocalFault, StepFailed, BenchmarkDefect):
            raise
        except NotKept as error:
            return Score(None, problem=str(error))
        except (Exception, SystemExit) as error:  # noqa: BLE001  (a user's function: the answer is paid for, and is kept)
            return failed(error)

    def call(self, messages: Said, model: str | None, sample: int, parameters: dict[str, Any]) -> Call:
        """Returns the call that the function asks for. Raises BenchmarkDefect for a model that is not declared."""
        model = self.models[0] if model is None else model
        if model not in self.models:
            listed = [*self.models, model]
            raise BenchmarkDefect(
                f"score: {self.name} asks {model}: declare it, as ms.scorer({self.name}, models={shown(listed)})"
            )
        temperature = parameters.pop("temperature", 0.0)
        sent = None if temperature == NONE else temperature
        return Call(model, messages_in(messages), temperature=sent, trial=sample, **parameters)

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__name__", "function"))

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "models": list(self.models)}


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
