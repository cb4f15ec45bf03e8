"""What calls cost: prices from a dated table, and the purse that holds a run to its limit.

A model without a price is said to have none. Amounts are dollars, prices dollars a million tokens.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from .call import Call, Usage
from .estimate import TOKENS_PER_BYTE_WORST, TokenEstimate, bytes_of, chars_of

OUTPUT_WORST = 16_384


class Price(Struct, frozen=True):
    """Dollars a million tokens."""

    input: float
    output: float

    def __post_init__(self) -> None:
        for name, value in (("input", self.input), ("output", self.output)):
            if not 0 <= value < 1e6:
                raise ValueError(f"price: {name} ({value:g}) must be dollars a million tokens, 0 or more")

    def of(self, input_tokens: float, output_tokens: float) -> float:
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


class Prices(Struct, frozen=True):
    """The table and the day it was read off."""

    date: str
    models: Mapping[str, Price]

    def get(self, model: str) -> Price | None:
        return self.models.get(model)

    def replaced_by(self, own: Mapping[str, Price]) -> Prices:
        return Prices(self.date, {**self.models, **own})


def bundled_prices() -> Prices:
    table = tomllib.loads((Path(__file__).parent / "prices.toml").read_text("utf-8"))
    return Prices(table["date"], {model: Price(**row) for model, row in table["models"].items()})


def worst_cost(call: Call, price: Price, estimate: TokenEstimate) -> float:
    """The most this call can cost: what an open budget must be able to bear before it is sent."""
    tokens = max(bytes_of(call) * TOKENS_PER_BYTE_WORST, 1.5 * chars_of(call) * estimate.tokens_per_char)
    output = call.max_tokens if call.max_tokens is not None else OUTPUT_WORST
    return price.of(16 + tokens, output)


class Purse:
    """Money spent and reserved under a hard limit (None: no limit, only counted)."""

    def __init__(self, limit: float | None = None, spent: float = 0.0) -> None:
        self.limit = limit
        self.spent = spent
        self.reserved = 0.0
        self._wakers: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        limit = "no limit" if self.limit is None else f"limit ${self.limit:.4f}"
        return f"<Purse [${self.spent:.4f} spent, ${self.reserved:.4f} reserved, {limit}]>"

    def watch(self, waker: Callable[[], None]) -> None:
        """Called whenever a reservation is settled, since a waiting call may now fit."""
        self._wakers.append(waker)

    def fits(self, cost: float) -> bool:
        return self.limit is None or self.spent + self.reserved + cost <= self.limit

    @property
    def is_idle(self) -> bool:
        """Nothing is in flight that could still give money back."""
        return self.reserved <= 1e-12

    def reserve(self, cost: float) -> None:
        self.reserved += cost

    def settle(self, reserved: float, spent: float) -> None:
        self.reserved = max(0.0, self.reserved - reserved)
        self.spent += spent
        if reserved:
            for wake in self._wakers:
                wake()


def cost_of(usage: Usage | None, price: Price | None) -> float | None:
    if usage is None or price is None:
        return None
    return price.of(usage.input, usage.output)
