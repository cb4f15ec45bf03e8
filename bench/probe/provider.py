"""The provider that a probe asks: each question is one call through the engine, each answer admitted, refused or
failed.

Owns what a probe's calls contain, what they can cost, and what a fault means to a probe. Decides nothing about quotas.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random

from ...engine.attempts.money import worst_cost
from ...engine.call import Call, Outcome
from ...engine.estimate import TokenEstimate
from ...engine.fault import LocalFault, Stopped
from ...engine.limits import Limit
from ...engine.prices import Price
from ...engine.verdict import verdict
from ...providers.transport.no_retry_endpoint import AttemptReport, listener
from ...wiring import Settings, family_of
from ...wiring.engine import Engine
from ..made_prompts.lengths import TOKENS_MIN, FixedLength
from ..made_prompts.prompts import CallParameters, by_length, calls
from .answers import Answer

# The least output that can be asked for: some providers count `max_tokens` against the quota of tokens, whatever the
# answer's length.
_OUTPUT = 1
_OUTPUT_OF_FAMILY = {"openai-responses": 16}
# If the first answer is one of these failures, nothing can be found at this address.
_HOPELESS = ("connect", "dns", "rejected", "redirect", "bad_json")
_TOO_LARGE = (413, 429)


class Costs:
    """The most that calls can cost, in dollars, by the price table; 0 for a model without a price."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._prices = settings.price_table()

    def price(self, model: str) -> Price | None:
        return self._prices.get(model)

    def worst_cost(self, model: str, tokens: int) -> float:
        price = self.price(model)
        if price is None:
            return 0.0
        text = next(by_length(FixedLength(TOKENS_MIN), Random(0)))
        whole = text * (-(-max(tokens, TOKENS_MIN) // TOKENS_MIN))
        call = Call(model, whole, max_tokens=output_of(model, self._settings))
        return worst_cost(call, price, TokenEstimate()) or 0.0


class _AttemptLog(list[AttemptReport]):
    """The reports of one call's attempts. An API key that is refused stops its lane at once; the engine alone would
    send a second call to be sure."""

    def __init__(self, engine: Engine, model: str) -> None:
        self._engine = engine
        self._model = model

    def append(self, told: AttemptReport, /) -> None:
        super().append(told)
        if told.fault is not None and verdict(told.fault).learns == "doubt":
            self._engine.scheduler.routes.of(self._model).lane.stop("dead_key", f"{self._model}: {told.fault.detail}")


class EngineProvider:
    """The providers of the probed models, reached through an engine that neither retries nor holds calls back. Time is
    that of the running event loop."""

    def __init__(self, engine: Engine, costs: Costs, random: Random) -> None:
        self._engine = engine
        self._costs = costs
        self._random = random
        self._calls: dict[tuple[str, int], Iterator[Call]] = {}
        self._answered: set[str] = set()

    def __repr__(self) -> str:
        return f"<EngineProvider [{', '.join(sorted(self._answered)) or 'nobody'} answered]>"

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def worst_cost(self, model: str, tokens: int) -> float:
        return self._costs.worst_cost(model, tokens)

    def quiet_in_s(self, model: str) -> float:
        [key] = self._engine.scheduler.routes.of(model).lane.keys
        return key.ledger.empty_in_s(self.now())

    async def ask(self, model: str, tokens: int) -> Answer:
        heard = _AttemptLog(self._engine, model)
        listener.set(heard)
        try:
            outcome = await self._engine.ask(self._call(model, tokens))
        except Stopped as stopped:
            if any(stop.reason == "local_fault" for stop in stopped.stops):
                raise LocalFault(str(stopped)) from stopped
            return Answer("failed", limits=_limits(heard), detail=str(stopped), is_fatal=True)
        return self._answer(model, tokens, outcome, heard)

    def _call(self, model: str, tokens: int) -> Call:
        size = max(tokens, TOKENS_MIN)
        if (model, size) not in self._calls:
            wanted = CallParameters(max_tokens=output_of(model, self._engine.settings), stream=False)
            texts = by_length(FixedLength(size), self._random)
            self._calls[model, size] = calls(model, texts, wanted, self._random)
        return next(self._calls[model, size])

    def _answer(self, model: str, tokens: int, outcome: Outcome, heard: list[AttemptReport]) -> Answer:
        limits, fault = _limits(heard), heard[-1].fault if heard else None
        if outcome.reply is not None:
            self._answered.add(model)
            usage = outcome.reply.usage
            used = (0 if usage is None else usage.tokens) or 0
            cost = outcome.cost if outcome.cost is not None else self.worst_cost(model, tokens)
            return Answer("admitted", used, cost, limits=limits)
        assert outcome.failure is not None
        detail = f"{outcome.failure.kind}: {' '.join(outcome.failure.detail.split())}"
        if fault is not None and fault.kind == "empty":
            # The call was admitted: with this little output an answer may have no room for a word.
            self._answered.add(model)
            return Answer("admitted", fault.usage_tokens or 0, self.worst_cost(model, tokens), limits=limits)
        learns = "nothing" if fault is None else verdict(fault).learns
        # A call that is larger than a whole minute's quota counts too.
        is_too_large = learns == "rejection" and outcome.failure.status in _TOO_LARGE
        if fault is not None and (learns in ("refusal", "pause") or is_too_large):
            return Answer("refused", retry_after_s=fault.retry_after_s, limits=limits, detail=detail)
        is_hopeless = model not in self._answered and outcome.failure.kind in _HOPELESS
        is_fatal = is_hopeless or learns in ("empty_account", "redirect")
        return Answer("failed", limits=limits, detail=detail, is_fatal=is_fatal)


def output_of(model: str, settings: Settings) -> int:
    """Returns the `max_tokens` of a probe's calls: the least that the model's family accepts."""
    return _OUTPUT_OF_FAMILY.get(family_of(model, settings), _OUTPUT)


def _limits(heard: list[AttemptReport]) -> tuple[Limit, ...]:
    return heard[-1].limits if heard else ()
