"""What a run gives to be compared with another run on the same rows: a figure of each item, and what decided them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from ....engine.pairs import Pair


class RowFigures(Struct, frozen=True):
    """The figures of one row of scores: a model, at one treatment if it was asked at several."""

    pair: Pair
    """The model and its treatment."""
    figures: Mapping[str, float]
    """The figure of each item that has one, by a key that differs if the item's data differ."""
    are_shares: bool = False
    """Whether all scores behind them are 0 or 1."""


class RunFigures(Struct, frozen=True, kw_only=True):
    """The figures of a run, by the names of its rows, and the options that decided them."""

    is_told: bool = True
    """Whether a manifest says how the run was made; if not, nobody knows in which options it differs from another."""
    rows: Mapping[str, RowFigures]
    """The rows, by the names that they have in scores.json."""
    options: Mapping[str, str]
    """What decides answers and figures, beside data, model and treatment: names with texts."""
    names: Mapping[str, str] = MappingProxyType({})
    """The items as people read them, by their keys, where these are other texts."""
    addresses: Mapping[str, str] = MappingProxyType({})
    """The address of each model."""
    within: tuple[float, float] | None = None
    """The least and the largest figure possible; None: not known."""
    has_right: bool = False
    """Whether a figure of 0.5 or more is right, and any other wrong."""
    of: str = "items"
    """The word for several items."""
    prompts: Mapping[str, int] = MappingProxyType({})
    """A hash of each prompt as it was sent, by its item and variant: it holds within a process."""
    examples: Mapping[str, str] = MappingProxyType({})
    """The first of these prompts as texts."""
