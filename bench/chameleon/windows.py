"""How much a model can be shown: its window from a dated table, less room for the answer.

Owns the table and what is assumed of a model that it doesn't hold. Knows no prompt.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

# A tenth is left for what the estimate misses, such as tables, numbers and rare words.
SHARE_SHOWN = 0.9
ANSWER_TOKENS = 4_096
_DATED = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|\d{3}|latest)$")


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a window was read, and when."""

    date: str
    note: str


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    tokens: int
    source: str


class Windows(Struct, frozen=True, forbid_unknown_fields=True):
    """The table. `default` is assumed of every other model, and said to be."""

    default: int
    sources: Mapping[str, Source]
    models: Mapping[str, Row]

    def known(self, model: str) -> int | None:
        """A model's window; a provider's dated name is the model's own."""
        row = self.models.get(model) or self.models.get(_DATED.sub("", model))
        return None if row is None else row.tokens

    def of(self, model: str) -> int:
        return self.known(model) or self.default


def bundled_windows() -> Windows:
    return msgspec.convert(tomllib.loads(Path(__file__).with_name("windows.toml").read_text("utf-8")), Windows)


def prompt_tokens(window: int, max_tokens: int | None = None) -> int:
    """What a prompt may have of a window: what the answer may have is kept free."""
    answer = max_tokens if max_tokens is not None else min(ANSWER_TOKENS, window // 4)
    return max(1, int(window * SHARE_SHOWN) - answer)
