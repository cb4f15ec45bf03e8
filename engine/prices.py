"""Prices of models. A model without one is reported as having none. Amounts are dollars, prices dollars per million
tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct, structs

from .call import Call, Usage

# The fields in which providers are asked for a tier, and their words for the ordinary one.
_TIER_FIELDS = frozenset({"service_tier", "serviceTier", "speed"})
_ORDINARY = frozenset({"default", "standard", "standard_only", "on_demand"})
# The field in which Anthropic is asked for a place, and how many times the price any costs but "global".
_PLACE_FIELD, _PLACE_FACTOR = "inference_geo", 1.1
_PLAIN = Call("any/model", "")
# The time for which a prompt is to be kept in a cache, as `repr` shows Anthropic's, Bedrock's and OpenAI's words.
_KEPT_FOR_HOURS = re.compile(r"'\w*(ttl|retention)\w*': '\d+h'", re.IGNORECASE)


class LongPrompts(Struct, frozen=True):
    """The prices, in dollars per million tokens, of a call whose prompt has more than `above` tokens."""

    above: int
    input: float
    output: float


def asks_hour(marks: str) -> bool:
    """Whether a call with these marks asks for a prompt to be cached for an hour or more."""
    return _KEPT_FOR_HOURS.search(marks) is not None


def _nothing(_: object) -> None:
    """Knows nothing of any model or call."""


class Unsized(Struct, frozen=True):
    """A part of a call whose size is not known before it is sent. `name`: the field that holds it. `is_run`: a tool
    that the provider runs itself, as often as it likes."""

    name: str
    is_run: bool = False


class Price(Struct, frozen=True, dict=True):
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
    they cost as much as others if `cached` is known, and count as 1.25 times the input if not even that is."""
    write_1h: float | None = None
    """The same for an hour or more; None: not known, so they count as the dearest that is listed: twice the input where
    a provider caches only what is marked, else 2.5 times."""
    tiers: Mapping[str, float] = {}
    """How many times the price a tier of service costs, by the tier's name: flex, priority, fast."""
    place: float = 1.0
    """How many times the price a call costs at an address for one region."""
    is_marked: bool = False
    """Whether its provider caches only what a request marks, so that nothing else is written."""
    extra: Mapping[str, Any] | None = None
    """Fields of the body of all its requests, beside those of a call; None: there are none."""
    tier: str | None = None
    """The tier that calls ask for which name none themselves; None: they ask for none."""
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

    @property
    def factor(self) -> float:
        """How many times the price a call costs that has no fields but the model's; with the dearest tier if that of
        the one it asks for isn't known."""
        tier_factor = self._tier_asked(self.extra)
        return (self._dearest if tier_factor is None else tier_factor) * self._place_factor(self.extra)

    def of(self, input_tokens: float, output_tokens: float) -> float:
        """Returns the dollars for these tokens, at the prices of short prompts and without the price of a call."""
        return (input_tokens * self.input + output_tokens * self.output) * self.factor / 1e6

    def of_call(self, input_tokens: int, output_tokens: int) -> float:
        """Returns the cost of one call in dollars, at the prices of long prompts if its prompt is long."""
        return self.of_usage(Usage(input_tokens, output_tokens), self.factor)

    def of_usage(self, usage: Usage, factor: float) -> float:
        """Returns the bill of one call in dollars, from all counts of its usage. `factor`: that of its tier."""
        read, output = usage.input or 0, usage.output or 0
        dollars = read * self.input
        if usage.cached_input or usage.cache_write_5m or usage.cache_write_1h:
            cached = self.input if self.cached is None else self.cached
            dollars += usage.cached_input * (cached - self.input)
            dollars += usage.cache_write_5m * (self._written - self.input)
            dollars += (usage.cache_write_1h or 0) * (self._written_1h - self.input)
        return self.in_dollars(read, dollars, output, factor)

    def input_most(self, marks: str) -> float:
        """Returns the most that a million tokens of a prompt can cost, in dollars: they may be written to the
        provider's cache. `marks`: a text of all that may say what is to be cached, and for an hour; empty: nothing."""
        rate = self.input if self.cached is None else max(self.input, self.cached)
        if not self.is_marked or "cache_control" in marks or "cachePoint" in marks:
            rate = max(rate, self._written)
        return max(rate, self._written_1h) if asks_hour(marks) else rate

    @cached_property
    def plain_input(self) -> float:
        """The same of calls without marks."""
        return self.input_most("")

    @property
    def _written(self) -> float:
        if self.write_5m is not None:
            return self.write_5m
        # A price list with a price for reads would have one for writes if they had one.
        return self.input if self.cached is not None else 1.25 * self.input

    @property
    def _written_1h(self) -> float:
        if self.write_1h is not None:
            return self.write_1h
        return (2.0 if self.is_marked else 2.5) * self.input

    def in_dollars(self, read: int, input_dollars: float, output: int, factor: float) -> float:
        """Returns the cost of a call in dollars. `input_dollars`: a million times what its input costs in a short
        prompt; in a long one all prices of input rise alike."""
        if self.long is not None and read > self.long.above:
            input_dollars *= self.long.input / self.input if self.input else 1.0
            return self.call + (input_dollars + output * self.long.output) * factor / 1e6
        return self.call + (input_dollars + output * self.output) * factor / 1e6

    def factor_of(self, tier: str | None) -> float | None:
        """Returns how many times the price a tier costs, by its provider's word for it; None: that is not known."""
        if tier is None:
            return 1.0
        word = tier.lower().removeprefix("service_tier_").removeprefix("on_demand_")
        if word in _ORDINARY:
            return 1.0
        if word == "auto":  # the account may have set a dearer one as its default
            return max(1.0, self.tiers.get("priority", 1.0))
        if word == "fast" and word not in self.tiers:
            word = "priority"  # OpenAI's name of it since GPT-6
        return self.tiers.get(word, 1.0 if word == "flex" else None)

    def factor_asked(self, call: Call) -> float | None:
        """Returns how many times the price a call costs by the tier and the place that it asks for; None: that is not
        known."""
        tier = self._tier_asked(call.extra)
        return None if tier is None else tier * self._place_factor(call.extra)

    def is_ordinary(self, call: Call) -> bool:
        """Whether a call asks for the ordinary tier, so that an answer which names none was billed at its price."""
        return self._tier_asked(call.extra) == 1.0

    def factor_at_most(self, call: Call) -> float | None:
        """Returns how many times the price a call can cost by the tier and the place that it asks for; None: that is
        not known. A cheaper tier counts in full if the answer does not name it."""
        return None if self.factor_asked(call) is None else self.factor_billed(call, None)

    @cached_property
    def plain_factor(self) -> float | None:
        """The same of calls without extra fields."""
        return self.factor_at_most(_PLAIN)

    def _tier_asked(self, extra: Mapping[str, Any] | None) -> float | None:
        if extra is None or _TIER_FIELDS.isdisjoint(extra):
            return self.factor_of(self.tier)
        named = [extra[name] for name in _TIER_FIELDS if name in extra]
        # Without a value the account's default holds.
        words = [(each.get("type") if isinstance(each, Mapping) else each) or "auto" for each in named]
        factors = [self.factor_of(word) if isinstance(word, str) else None for word in words]
        known = [each for each in factors if each is not None]
        return max(known) if len(known) == len(factors) else None

    def factor_billed(self, call: Call, tier: str | None, place: str | None = None) -> float:
        """Returns how many times the price an answered call costs. `tier`: what its provider says that it billed; if
        that is None, or has no price here, the dearest that may be meant counts. `place`: the one place where it says
        that the call was processed."""
        factor = self._tier_asked(call.extra) if tier is None else self.factor_of(tier)
        if factor is None:
            factor = self._dearest
        elif tier is None:
            factor = max(1.0, factor)
        return factor * self._place_factor(call.extra if place is None else {_PLACE_FIELD: place})

    @property
    def _dearest(self) -> float:
        return max((1.0, *self.tiers.values()))

    def _place_factor(self, extra: Mapping[str, Any] | None) -> float:
        return self.place * (_PLACE_FACTOR if (extra or {}).get(_PLACE_FIELD) not in (None, "global") else 1.0)


class PriceSource(Struct, frozen=True):
    """Where a price was read, and on which date (YYYY-MM-DD)."""

    date: str
    note: str


class ListedPrice(Struct, frozen=True):
    """A price in the table; `source` None: the user set it."""

    price: Price
    source: PriceSource | None = None


def _as_listed(_: str, price: Price) -> Price:
    return price


class Prices(Struct, frozen=True):
    """The price table, by model. `others` looks up a model that is not in the table; it returns None if it doesn't
    know. `completed` returns a model's listed price with all that is known of its calls."""

    models: Mapping[str, ListedPrice]
    others: Callable[[str], ListedPrice | None] = _nothing
    completed: Callable[[str, Price], Price] = _as_listed

    def listed(self, model: str) -> ListedPrice | None:
        listed = self.models.get(model)
        return self.others(model) if listed is None else listed

    def get(self, model: str) -> Price | None:
        listed = self.listed(model)
        return None if listed is None else self.completed(model, listed.price)

    def oldest_date(self, models: Iterable[str]) -> str | None:
        """Returns the earliest date on which a listed price of these models was read; None if none has one."""
        listed = [self.listed(model) for model in models]
        return min((one.source.date for one in listed if one is not None and one.source is not None), default=None)

    def replaced_by(self, own: Mapping[str, Price]) -> Prices:
        return structs.replace(
            self, models={**self.models, **{model: ListedPrice(price) for model, price in own.items()}}
        )
