"""The provider that a probe asks: each question is one call through the engine, each answer admitted, refused or
failed.

Owns what a probe's calls contain, what they can cost, and what a fault means to a probe. Decides nothing about quotas.
"""

from __future__ import annotations

import asyncio
from random import Random

from msgspec import structs

from ...engine.attempts.money import worst_cost
from ...engine.call import Call, Outcome
from ...engine.endpoint import Fault
from ...engine.estimate import TokenEstimate
from ...engine.fault import LocalFault, Stopped
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
        self._engine, self._model = engine, model

    def append(self, report: AttemptReport, /) -> None:
        super().append(report)
        if report.fault is not None and verdict(report.fault).learns == "doubt":
            self._engine.scheduler.routes.of(self._model).lane.stop("dead_key", f"{self._model}: {report.fault.detail}")


class EngineProvider:
    """The providers of the probed models, reached through an engine that neither retries nor holds calls back. Time is
    that of the running event loop."""

    def __init__(self, engine: Engine, costs: Costs, random: Random) -> None:
        self._engine, self._random = engine, random
        self.worst_cost = costs.worst_cost
        self.sleep = asyncio.sleep
        self._answered: set[str] = set()

    def __repr__(self) -> str:
        return f"<EngineProvider [{', '.join(sorted(self._answered)) or 'nobody'} answered]>"

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def quiet_in_s(self, model: str) -> float:
        [key] = self._engine.scheduler.routes.of(model).lane.keys
        return key.ledger.empty_in_s(self.now())

    async def ask(self, model: str, tokens: int) -> Answer:
        attempts = _AttemptLog(self._engine, model)
        listener.set(attempts)
        wanted = CallParameters(max_tokens=output_of(model, self._engine.settings), stream=False)
        texts = by_length(FixedLength(max(tokens, TOKENS_MIN)), self._random)
        try:
            outcome = await self._engine.ask(next(calls(model, texts, wanted, self._random)))
        except Stopped as stopped:
            if any(stop.reason == "local_fault" for stop in stopped.stops):
                raise LocalFault(str(stopped)) from stopped
            return Answer("failed", detail=str(stopped), is_fatal=True)
        last = attempts[-1] if attempts else AttemptReport()
        answer = self._answer(model, tokens, outcome, last.fault)
        if answer.verdict == "admitted":
            self._answered.add(model)
        return structs.replace(answer, limits=last.limits)

    def _answer(self, model: str, tokens: int, outcome: Outcome, fault: Fault | None) -> Answer:
        if outcome.reply is not None:
            usage = outcome.reply.usage
            cost = self.worst_cost(model, tokens) if outcome.cost is None else outcome.cost
            return Answer("admitted", (0 if usage is None else usage.tokens) or 0, cost)
        assert outcome.failure is not None
        kind, status = outcome.failure.kind, outcome.failure.status
        detail = f"{kind}: {' '.join(outcome.failure.detail.split())}"
        if fault is not None and fault.kind == "empty":
            # The call was admitted: with this little output an answer may have no room for a word.
            return Answer("admitted", fault.usage_tokens or 0, self.worst_cost(model, tokens))
        learns = "nothing" if fault is None else verdict(fault).learns
        # A call that is larger than a whole minute's quota counts too.
        if fault is not None and (learns in ("refusal", "pause") or (learns == "rejection" and status in _TOO_LARGE)):
            return Answer("refused", retry_after_s=fault.retry_after_s, detail=detail)
        is_hopeless = model not in self._answered and kind in _HOPELESS
        return Answer("failed", detail=detail, is_fatal=is_hopeless or learns in ("empty_account", "redirect"))


def output_of(model: str, settings: Settings) -> int:
    """Returns the `max_tokens` of a probe's calls: the least that the model's family accepts."""
    return _OUTPUT_OF_FAMILY.get(family_of(model, settings), _OUTPUT)
