"""Prices of models. A model without one is reported as having none. Amounts are dollars, prices dollars per million
tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, structs

from ..call import Call


class LongPrompts(Struct, frozen=True):
    """The prices, in dollars per million tokens, of a call whose prompt has more than `above` tokens."""

    above: int
    input: float
    output: float


def _nothing(_: object) -> None:
    """Knows nothing of any model or call."""


class Unsized(Struct, frozen=True):
    """A part of a call whose size is not known before it is sent. `name`: the field that holds it. `is_run`: a tool
    that the provider runs itself, as often as it likes."""

    name: str
    is_run: bool = False


class Price(Struct, frozen=True):
    """What a model's tokens, or its calls, cost in dollars."""

    input: float
    """Dollars per million input tokens."""
    output: float
    """Dollars per million output tokens."""
    long: LongPrompts | None = None
    """The prices of long prompts; None: they cost the same."""
    call: float = 0.0
    """Dollars per call, as for searches."""
    cached: float | None = None
    """Dollars per million input tokens that the provider had cached; None: not known, so they cost as much as others.
    """
    write_5m: float | None = None
    """Dollars per million input tokens that the provider writes to its cache, for five minutes or its usual time; None:
    not known, so they count as 1.25 times the input."""
    write_1h: float | None = None
    """The same for an hour; None: not known, so they count as twice the input."""
    tiers: Mapping[str, float] = {}
    """How many times the price a tier of service costs, by the tier's name: flex, priority, fast."""
    output_max: int | None = None
    """The most tokens of one answer, thinking included, where its call sets no max_tokens. None: not known, so the cost
    of such a call has no bound."""
    window: int | None = None
    """The most tokens of a prompt, which a part of unknown size counts as. None: not known."""
    unsized: Callable[[Call], Unsized | None] = _nothing
    """Finds a part of unknown size in a call."""

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached", "write_5m", "write_1h"):
            if (value := getattr(self, name)) is not None and not 0 <= value < 1e6:
                raise ValueError(f"price: {name} ({value:g}) must be dollars a million tokens, 0 or more")
        if not 0 <= self.call < 1e6:
            raise ValueError(f"price: call ({self.call:g}) must be dollars, 0 or more")
        if wrong := [name for name, factor in self.tiers.items() if not 0 < factor < 1e3]:
            raise ValueError(f"price: tiers ({wrong[0]}) must be times the price, more than 0")

    @property
    def is_by_call(self) -> bool:
        """Whether tokens cost nothing, so that only calls are charged."""
        return self.input == self.output == 0

    def of(self, input_tokens: float, output_tokens: float) -> float:
        """Returns the dollars for these tokens, at the prices of short prompts and without the price of a call."""
        return (input_tokens * self.input + output_tokens * self.output) / 1e6

    def of_call(self, input_tokens: float, output_tokens: float) -> float:
        """Returns the cost of one call in dollars, at the prices of long prompts if its prompt is long."""
        if self.long is not None and input_tokens > self.long.above:
            return self.call + (input_tokens * self.long.input + output_tokens * self.long.output) / 1e6
        return self.call + self.of(input_tokens, output_tokens)


class PriceSource(Struct, frozen=True):
    """Where a price was read, and on which date (YYYY-MM-DD)."""

    date: str
    note: str


class ListedPrice(Struct, frozen=True):
    """A price in the table; `source` None: the user set it."""

    price: Price
    source: PriceSource | None = None


class Prices(Struct, frozen=True):
    """The price table, by model. `others` looks up a model that is not in the table, `output_max` the most tokens of
    one answer of a model, and `window` those of a prompt; all return None if they don't know. `unsized` finds a part
    of unknown size in a call."""

    models: Mapping[str, ListedPrice]
    others: Callable[[str], ListedPrice | None] = _nothing
    output_max: Callable[[str], int | None] = _nothing
    window: Callable[[str], int | None] = _nothing
    unsized: Callable[[Call], Unsized | None] = _nothing

    def listed(self, model: str) -> ListedPrice | None:
        listed = self.models.get(model)
        return self.others(model) if listed is None else listed

    def get(self, model: str) -> Price | None:
        listed = self.listed(model)
        if listed is None:
            return None
        price, most = listed.price, listed.price.output_max
        most = self.output_max(model) if most is None else most
        return structs.replace(price, output_max=most, window=self.window(model), unsized=self.unsized)

    def oldest_date(self, models: Iterable[str]) -> str | None:
        """Returns the earliest date on which a listed price of these models was read; None if none has one."""
        listed = [self.listed(model) for model in models]
        return min((one.source.date for one in listed if one is not None and one.source is not None), default=None)

    def replaced_by(self, own: Mapping[str, Price]) -> Prices:
        return structs.replace(
            self, models={**self.models, **{model: ListedPrice(price) for model, price in own.items()}}
        )
