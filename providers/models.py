"""The table of facts about models: whether a model thinks before it answers, and how long an answer can be.

Owns the dated table and the look-up of a name. The consequences for a protocol or for money are decided elsewhere.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

DATED = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|\d{3}|latest)$")


class Facts(Struct, frozen=True):
    """The known facts about one model; None where unknown. `thinks`: whether it thinks before it answers unless asked
    not to. `max_output`: the most tokens of an answer, thinking included, if max_tokens is not set. `window`: the
    most tokens of a prompt (known ones: windows)."""

    thinks: bool | None = None
    max_output: int | None = None
    window: int | None = None

    def over(self, other: Facts) -> Facts:
        """Returns these facts where they are known, else the other's."""
        return Facts(
            other.thinks if self.thinks is None else self.thinks,
            other.max_output if self.max_output is None else self.max_output,
            other.window if self.window is None else self.window,
        )


class TableSource(Struct, frozen=True, forbid_unknown_fields=True):
    """The source of a row, and the date on which it was read."""

    date: str
    note: str


class ModelRow(Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    thinks: bool | None = None
    max_output: int | None = None


class ModelTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The table of models. `same` maps a provider to the one whose models it offers under the same names."""

    sources: Mapping[str, TableSource]
    same: Mapping[str, str]
    models: Mapping[str, ModelRow]

    def of(self, model: str) -> Facts:
        """Returns the facts about a model such as `openai/gpt-4o`; a name that ends in a date is also looked up without
        it. All facts are None for an unknown model."""
        provider, _, own = model.partition("/")
        provider = self.same.get(provider, provider)
        names = (f"{provider}/{own}", f"{provider}/{DATED.sub('', own)}", f"{provider}/*")
        row = next((self.models[name] for name in names if name in self.models), None)
        return Facts() if row is None else Facts(row.thinks, row.max_output)


@cache
def bundled_models() -> ModelTable:
    return msgspec.convert(tomllib.loads(Path(__file__).with_name("models.toml").read_text("utf-8")), ModelTable)
