"""What calls cost: prices from a dated table, and the purse that holds a run to its limit.

A model without a price is said to have none. Amounts are dollars, prices dollars a million tokens.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from .call import Call, Usage
from .estimate import TOKENS_PER_BYTE_WORST, TokenEstimate, bytes_of, call_weight

OUTPUT_WORST = 16_384


class LongPrompts(Struct, frozen=True):
    """What tokens cost where a prompt has more than `above` of them."""

    above: int
    input: float
    output: float


class Price(Struct, frozen=True):
    """Dollars a million tokens, and dollars a call where calls have a price of their own, as searches do."""

    input: float
    output: float
    long: LongPrompts | None = None
    call: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("input", self.input), ("output", self.output)):
            if not 0 <= value < 1e6:
                raise ValueError(f"price: {name} ({value:g}) must be dollars a million tokens, 0 or more")
        if not 0 <= self.call < 1e6:
            raise ValueError(f"price: call ({self.call:g}) must be dollars, 0 or more")

    @property
    def is_by_call(self) -> bool:
        """Whether the number of tokens doesn't matter."""
        return self.input == self.output == 0

    def of(self, input_tokens: float, output_tokens: float) -> float:
        """Of any number of calls whose prompts are not long."""
        return (input_tokens * self.input + output_tokens * self.output) / 1e6

    def of_call(self, input_tokens: float, output_tokens: float) -> float:
        if self.long is not None and input_tokens > self.long.above:
            return self.call + (input_tokens * self.long.input + output_tokens * self.long.output) / 1e6
        return self.call + self.of(input_tokens, output_tokens)


class Source(Struct, frozen=True):
    """Where a price was read, and when."""

    date: str
    note: str


class Listed(Struct, frozen=True):
    """A price as it stands in the table; without a source it is the user's own."""

    price: Price
    source: Source | None = None


class Prices(Struct, frozen=True):
    """The table. `same`: providers whose models cost what another's of the same name do. `others` is asked for what
    does not stand in it."""

    models: Mapping[str, Listed]
    same: Mapping[str, str] = {}
    others: Callable[[str], Listed | None] | None = None

    def listed(self, model: str) -> Listed | None:
        found = self.models.get(model)
        if found is None:
            provider, _, own = model.partition("/")
            found = self.models.get(f"{self.same.get(provider, provider)}/{own}")
        return found if found is not None or self.others is None else self.others(model)

    def get(self, model: str) -> Price | None:
        listed = self.listed(model)
        return None if listed is None else listed.price

    def oldest_date(self, models: Iterable[str]) -> str | None:
        """Since when at the least the prices of these models may have changed; None: they are all the user's own."""
        listed = [self.listed(model) for model in models]
        return min((one.source.date for one in listed if one is not None and one.source is not None), default=None)

    def replaced_by(self, own: Mapping[str, Price]) -> Prices:
        return structs.replace(self, models={**self.models, **{model: Listed(price) for model, price in own.items()}})


class _Row(Struct, frozen=True, forbid_unknown_fields=True):
    input: float
    output: float
    source: str
    long: LongPrompts | None = None


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    sources: dict[str, Source]
    same: dict[str, str]
    models: dict[str, _Row]


def bundled_prices() -> Prices:
    table = msgspec.convert(tomllib.loads((Path(__file__).parent / "prices.toml").read_text("utf-8")), _Table)
    models = {
        model: Listed(Price(row.input, row.output, row.long), table.sources[row.source])
        for model, row in table.models.items()
    }
    return Prices(models, table.same)


def worst_cost(call: Call, price: Price, estimate: TokenEstimate) -> float:
    """The most this call can cost: what an open budget must be able to bear before it is sent."""
    tokens = max(bytes_of(call) * TOKENS_PER_BYTE_WORST, 1.5 * call_weight(call) * estimate.tokens_per_char)
    output = call.max_tokens if call.max_tokens is not None else OUTPUT_WORST
    return price.of_call(16 + tokens, output)


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
    if price is None:
        return None
    if usage is None:
        return price.call if price.is_by_call else None
    return price.of_call(usage.input, usage.output)
