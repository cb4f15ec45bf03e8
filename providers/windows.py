"""The number of tokens that a prompt may have: a model's window from a dated table, less room for the answer.

Owns the table and the assumption for models that are not in it. Knows no prompt.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from .models import DATED, TableSource

# A tenth is left for what the estimate misses, such as tables, numbers and rare words.
SHARE_SHOWN = 0.9
ANSWER_TOKENS = 4_096


class WindowRow(Struct, frozen=True, forbid_unknown_fields=True):
    tokens: int
    source: str


class Windows(Struct, frozen=True, forbid_unknown_fields=True):
    """The table of windows, in tokens. `default` is assumed for every model that is not in it."""

    default: int
    sources: Mapping[str, TableSource]
    models: Mapping[str, WindowRow]

    def known(self, model: str) -> int | None:
        """Returns a model's window in tokens, None if unknown; a name that ends in a date is also tried without it."""
        row = self.models.get(model) or self.models.get(DATED.sub("", model))
        return None if row is None else row.tokens

    def of(self, model: str) -> int:
        return self.known(model) or self.default


@cache
def bundled_windows() -> Windows:
    return msgspec.convert(tomllib.loads(Path(__file__).with_name("windows.toml").read_text("utf-8")), Windows)


def prompt_tokens(window: int, max_tokens: int | None = None) -> int:
    """Returns the most tokens of a prompt in a window of this size, at least 1, with room left for the answer:
    `max_tokens`, or a default if it is None."""
    answer = max_tokens if max_tokens is not None else min(ANSWER_TOKENS, window // 4)
    return max(1, int(window * SHARE_SHOWN) - answer)
