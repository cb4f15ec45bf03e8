"""The table of models: what each does with a call, what it costs, until when it answers, under which names.

Owns the dated table and the look-up of a name. The consequences for a protocol or for money are decided elsewhere.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, structs
from msgspec.structs import force_setattr

from ..engine.prices import ListedPrice, Price, PriceSource

Temperature = Literal["taken", "ignored", "refused", "at-no-effort"]

# The window that is assumed where none is known.
WINDOW = 128_000
# A tenth is left for what the estimate misses, such as tables, numbers and rare words.
SHARE_SHOWN = 0.9
ANSWER_TOKENS = 4_096
CHARACTERS = 4.0

_DATED = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|\d{3,4}|latest|default)$")
# The region and the vendor before a name of Bedrock's, and the revision after it; what OpenRouter adds after a colon.
_BEFORE = re.compile(r"^(?:[a-z]+(?:-gov)?\.)+")
# Google's previews end in a month and a day, or in a month and a year.
_PREVIEW = re.compile(r"(?<=-preview)-\d\d-\d{2,4}$")
_REVISION = re.compile(r"(?:-v1|-v\d+:\d+|:[a-z]+)$")


class Facts(Struct, frozen=True):
    """The known facts about one model; None where unknown."""

    thinks: bool | None = None
    """Whether it thinks before it answers unless a call forbids it."""
    max_output: int | None = None
    """The most tokens of an answer, thinking included, if max_tokens is not set."""
    window: int | None = None
    """The most tokens of a prompt."""
    temperature: Temperature | None = None
    """What it does with a temperature; `at-no-effort`: takes it only without thinking. None is treated as `taken`."""
    retires: str | None = None
    """The first day (YYYY-MM-DD) on which this model no longer answers under the name."""
    answered_by: str | None = None
    """The model that answers under the name from that day on; None: no model does."""
    efforts: tuple[str, ...] | None = None
    """The reasoning efforts that it takes, `N` for any number of tokens; empty: it takes none at all."""
    characters: float = CHARACTERS
    """Characters of English a token."""
    answers_as: str | None = None
    """The model that the name stands for, such as a deployment's."""
    extra: Mapping[str, Any] = {}
    """Fields that go into the body of every request to it, as they are."""
    remark: str | None = None
    """What a person who asks it should know, as one line."""

    def over(self, other: Facts) -> Facts:
        """Returns these facts where they are known, else the other's."""
        whose = ((name, getattr(self, name) != getattr(_UNKNOWN, name)) for name in Facts.__struct_fields__)
        return Facts(*(getattr(self if is_known else other, name) for name, is_known in whose))

    def thinks_at(self, effort: str | None) -> bool | None:
        """Returns whether it thinks before it answers at a reasoning effort; None: not known."""
        return self.thinks if effort in (None, "default") else effort not in ("none", "0")

    def takes_temperature(self, effort: str | None = None) -> bool:
        """Returns whether a temperature has an effect at a reasoning effort; None: the model's default effort."""
        if self.temperature == "at-no-effort":
            return effort == "none" or (effort is None and self.thinks is False)
        return self.temperature in (None, "taken")


_UNKNOWN = Facts()


class PriceRow(Price, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The price of a model from a first to a last day, both included."""

    source: str
    since: str = ""
    until: str = "9999-12-31"


class ModelRow(Facts, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A model's row. `source_of`: the sources of facts that are not from `source`."""

    source: str
    source_of: Mapping[str, str] = {}
    prices: tuple[PriceRow, ...] = ()


class Family(ModelRow, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What holds of all models whose name matches a pattern."""

    pattern: str


class ModelTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table of models. `vendors` are providers under their own names of models, `offering` those that offer others'
    models; `same` maps a provider to the one whose models and prices it has. `thinking_answer`: the least and the most
    tokens that a short answer usually has if the model thinks before it."""

    vendors: tuple[str, ...]
    offering: tuple[str, ...]
    thinking_answer: tuple[int, int]
    same: Mapping[str, str]
    sources: Mapping[str, PriceSource]
    models: Mapping[str, ModelRow]
    families: tuple[Family, ...]
    _by_bare_name: Mapping[str, ModelRow] = {}

    def __post_init__(self) -> None:
        named = [(name, row) for name, row in self.models.items() if name.partition("/")[0] in self.vendors]
        force_setattr(self, "_by_bare_name", {bare_name(name): row for name, row in reversed(named)})

    def of(self, model: str, day: str) -> Facts:
        """Returns the facts about the model that answers under a name, such as `openai/o3`, on a day (YYYY-MM-DD);
        nothing is known of an unknown one. `retires`, `answered_by` and `answers_as` are those of the name."""
        facts, row = _UNKNOWN, self.row(model)
        for each in self._rows(self.answering(model, day)):
            facts = facts.over(each)
        # Each provider retires its names on days of its own.
        retires, answered_by = (None, None) if row is None else (row.retires, row.answered_by)
        answers_as = facts.answers_as if row is None else row.answers_as
        return structs.replace(facts, retires=retires, answered_by=answered_by, answers_as=answers_as)

    def price(self, model: str, day: str) -> ListedPrice | None:
        """Returns what is charged for a name on a day, by its own provider's price list; None: nothing is listed."""
        row = self.row(self.answering(model, day))
        now = next((each for each in row.prices if each.since <= day <= each.until), None) if row is not None else None
        return None if now is None else ListedPrice(now, self.sources[now.source])

    def prices(self, day: str) -> dict[str, ListedPrice]:
        """Returns the prices of a day, by model."""
        return {model: price for model in self.models if (price := self.price(model, day)) is not None}

    def answering(self, model: str, day: str) -> str:
        """Returns the name of the model that answers under a name on a day: itself, or who follows a retired one."""
        row = self.row(model)
        if row is None:
            return model
        is_retired = row.retires is not None and row.retires <= day
        other = row.answers_as or (row.answered_by if is_retired else None)
        return model if other is None else self.answering(other, day)

    def provider(self, model: str) -> str:
        """Returns the provider under which the table has a model's row."""
        name = model.partition("/")[0]
        return self.same.get(name, name)

    def row(self, model: str) -> ModelRow | None:
        """Returns the row that a provider itself has under a name; one that ends in a date is also tried without it."""
        name = f"{self.provider(model)}/{model.partition('/')[2]}"
        return self.models.get(name) or self.models.get(_DATED.sub("", name))

    def families_assumed(self, model: str) -> list[str]:
        """Returns the patterns of the families whose facts hold of a model that has no row; empty if it has one."""
        rows = list(self._rows(model))
        families = [row.pattern for row in rows if isinstance(row, Family) and "/" not in row.pattern]
        return families if len(families) == len(rows) else []

    def _rows(self, model: str) -> Iterator[ModelRow]:
        """Yields the rows that hold of a model: its own, the vendor's row of it, and the families."""
        is_known = self.provider(model) in (*self.vendors, *self.offering)
        bare = bare_name(model) if is_known else ""
        rows = (self.row(model), self._by_bare_name.get(bare))
        yield from (row for row in rows if row is not None)
        for family in self.families:
            if re.fullmatch(family.pattern, model if "/" in family.pattern else bare):
                yield family


def bare_name(model: str) -> str:
    """Returns a model's name as all providers spell it: without what stands before it, region, date or revision, in
    lower case, with dashes for dots."""
    name = _BEFORE.sub("", model.rpartition("/")[2].lower())
    return _DATED.sub("", _PREVIEW.sub("", _REVISION.sub("", name))).replace(".", "-")


def is_other_snapshot(asked: str, served: str) -> bool:
    """Returns whether two names of one model end in different dates or revisions."""
    names = (_REVISION.sub("", name) for name in (asked, served))
    ends = filter(None, (_PREVIEW.search(name) or _DATED.search(name) for name in names))
    return len({re.sub(r"\D", "", end[0]) for end in ends} - {""}) == 2


@cache
def bundled_models() -> ModelTable:
    return msgspec.convert(tomllib.loads(Path(__file__).with_name("models.toml").read_text("utf-8")), ModelTable)


def prompt_tokens(window: int, max_tokens: int | None = None) -> int:
    """Returns the most tokens of a prompt in a window of this size, at least 1, with room left for the answer:
    `max_tokens`, or a default if it is None."""
    answer = max_tokens if max_tokens is not None else min(ANSWER_TOKENS, window // 4)
    return max(1, int(window * SHARE_SHOWN) - answer)
