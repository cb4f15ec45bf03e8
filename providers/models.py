"""What is known of models' answers: whether they think before they answer, and how long an answer can be.

Owns the dated table and how a name is looked up in it. What follows from it, for a protocol or for money, others know.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

_DATED = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|\d{3}|latest)$")


class Facts(Struct, frozen=True):
    """What is known of one model; None: it is not known. `thinks`: before it answers, unless it is asked not to.
    `max_output`: the most tokens of one answer, thinking included, where max_tokens is not set."""

    thinks: bool | None = None
    max_output: int | None = None

    def over(self, other: Facts) -> Facts:
        """These facts where they are known, else the other's."""
        return Facts(
            other.thinks if self.thinks is None else self.thinks,
            other.max_output if self.max_output is None else self.max_output,
        )


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a row was read, and when."""

    date: str
    note: str


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    thinks: bool | None = None
    max_output: int | None = None


class Models(Struct, frozen=True, forbid_unknown_fields=True):
    """The table. `same`: providers whose models are another's of the same name."""

    sources: Mapping[str, Source]
    same: Mapping[str, str]
    models: Mapping[str, Row]

    def of(self, model: str) -> Facts:
        """A provider's dated name is the model's own."""
        provider, _, own = model.partition("/")
        provider = self.same.get(provider, provider)
        names = (f"{provider}/{own}", f"{provider}/{_DATED.sub('', own)}", f"{provider}/*")
        row = next((self.models[name] for name in names if name in self.models), None)
        return Facts() if row is None else Facts(row.thinks, row.max_output)


@cache
def bundled_models() -> Models:
    return msgspec.convert(tomllib.loads(Path(__file__).with_name("models.toml").read_text("utf-8")), Models)
