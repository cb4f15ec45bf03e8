"""A batch's lines as calls: reads them lazily, numbers repeated ones, and writes failures for broken ones at once.

Owns trial numbers, and which lines are sent. A line that is done is read all the same, since it counts for the trial
number of a later line with the same question.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import lru_cache

from msgspec import structs

from ...configuration.configuration import check_prices
from ...configuration.errors import UsageError
from ...engine.attempts.money import worst_cost
from ...engine.call import Call
from ...engine.estimate import TokenEstimate
from ...engine.fault import Stop
from ...providers.llm.serve_naming import model_named
from ...wiring import ConfigurationError, Settings, accesses_to, family_of
from .digests import Digests
from .input import InputLine
from .requests import NO_JSON, BadLine, BatchRequest, envelope_of, gist_of, request_of
from .sink import BatchSink, OpenRequest

# Each model has a lane with its own workers: a file with a new name on every line is a mistake, and would need them
# all.
MODELS_MAX = 256
_LOOK_UP_EVERY = 64


class BatchModels:
    """The models of a batch. `names` maps names in the requests to models; `always` replaces every line's model."""

    def __init__(self, settings: Settings, names: Mapping[str, str], always: str | None = None) -> None:
        self.stops: dict[str, Stop] = {}
        self.reached: dict[str, str] = {}
        self._settings = settings
        self._names = names
        self._always = always
        self._is_provider = lru_cache(1024)(settings.has_provider)

    def named(self, word: str, family: str) -> str:
        return self._always or model_named(word, family, self._names, self._is_provider)

    def family_of(self, model: str) -> str:
        family = self.reached.get(model)
        return family if family is not None else family_of(model, self._settings)

    def reach(self, model: str) -> bool:
        """Returns whether calls to a model can be sent. If not, it keeps the reason and the model's lines stay
        pending; it raises if no model was reached before."""
        if model in self.reached:
            return True
        if model in self.stops:
            return False
        try:
            check(model, self._settings)
        except (ConfigurationError, UsageError) as error:
            if not self.reached:
                raise
            self.stops[model] = Stop(model, "dead_key", str(error))
            return False
        self.reached[model] = family_of(model, self._settings)
        return True

    def worst_cost(self, call: Call) -> float:
        """Returns the most dollars that a call can cost; 0.0 without a price or a bound, in which case a limit on cost
        keeps the line from being sent."""
        price = self._settings.price_table().get(call.model)
        return 0.0 if price is None else worst_cost(call, price, TokenEstimate()) or 0.0


def check(model: str, settings: Settings) -> None:
    """Raises ConfigurationError or UsageError if calls to a model can't be sent."""
    accesses_to(model, settings)
    check_prices((model,), settings)


def check_first(lines: Iterable[InputLine], models: BatchModels, where: str) -> None:
    """Raises what `check` raises for the model of the first valid line, before anything is created or written, and
    UsageError if no line is a JSON object. `where` names the input in that message."""
    problems: set[str] = set()
    for line in lines:
        request = _read(line, models)
        if isinstance(request, BatchRequest):
            models.reach(request.asked.call.model)
            return
        problems.add(request.code)
    if problems == {NO_JSON}:
        raise UsageError(
            f"{where}: expected a Batch file, a JSON object a line with custom_id, method, url and body, got no line "
            f"that is a JSON object; a task is asked by `millstream run FILE`"
        )


def worst_call(lines: Iterable[InputLine], models: BatchModels) -> float:
    """Returns the most dollars that any single line can cost."""
    requests = (_read(line, models) for line in lines)
    return max((models.worst_cost(each.asked.call) for each in requests if isinstance(each, BatchRequest)), default=0.0)


def _read(line: InputLine, models: BatchModels) -> BatchRequest | BadLine:
    envelope = envelope_of(line)
    return envelope if isinstance(envelope, BadLine) else request_of(envelope, models.named, models.family_of)


class Questions:
    """The calls of a batch, made from its lines. `is_done` returns whether a line has its row; `reached` is called with
    the name of each new model."""

    def __init__(
        self,
        lines: AsyncIterator[InputLine],
        models: BatchModels,
        sink: BatchSink,
        is_done: Callable[[int], bool],
        *,
        repeats_are_new: bool = True,
        reached: Callable[[str], None] = lambda model: None,
    ) -> None:
        self.seen = 0
        self._lines = lines
        self._models = models
        self._sink = sink
        self._is_done = is_done
        self._repeats_are_new = repeats_are_new
        self._reached = reached
        self._names = Digests()
        self._repeats = Digests()

    async def calls(self) -> AsyncIterator[Call]:
        async for line in self._lines:
            self.seen += 1
            if self.seen % _LOOK_UP_EVERY == 0:
                # Thousands of lines may be done or broken, and no call lets the loop look at anything else meanwhile.
                self._sink.flush()
                await asyncio.sleep(0)
            request = self._read(line)
            trial = 0
            if isinstance(request, BatchRequest) and self._repeats_are_new:
                trial = self._repeats.add(gist_of(request.asked.call), request.asked.count)
            if self._is_done(line.number):
                continue
            if isinstance(request, BadLine):
                self._sink.write_broken(request)
                continue
            for call in self._calls_of(request, trial):
                yield call
        self._sink.flush()

    def _read(self, line: InputLine) -> BatchRequest | BadLine:
        envelope = envelope_of(line)
        custom_id = envelope.custom_id
        if custom_id is not None and (before := self._names.first(custom_id.encode(), line.number)):
            message = f"custom_id: expected one that no other line has, got that of line {before}"
            return BadLine(line.number, custom_id, "duplicate_custom_id", message, "custom_id")
        if isinstance(envelope, BadLine):
            return envelope
        return request_of(envelope, self._models.named, self._models.family_of)

    def _calls_of(self, request: BatchRequest, trial: int) -> list[Call]:
        models, call = self._models, request.asked.call
        is_new = call.model not in models.reached
        if is_new and len(models.reached) >= MODELS_MAX:
            message = f"body: expected at most {MODELS_MAX} models in one batch, got another"
            self._sink.write_broken(BadLine(request.line, request.custom_id, "too_many_models", message, "model"))
            return []
        if not models.reach(call.model):
            return []
        if is_new:
            self._reached(call.model)
        asking: OpenRequest = (request, [])
        return [structs.replace(call, trial=trial + nth, tag=asking) for nth in range(request.asked.count)]
