"""The series in the scores: one model's conversations in one setting, by one strategy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

FIGURES = ("turn_of_flip", "number_of_flips")


class SeriesScores(Struct, frozen=True):
    """The scores of one model's conversations, in one setting, by one strategy.

    model: the model's name in this report.
    setting: debate, ethical or presuppositions.
    strategy: the prompts that begin the conversations.
    entry: their part of the scores.
    """

    model: str
    setting: str
    strategy: str
    entry: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, str, str]:
        return self.model, self.setting, self.strategy


def series_in(models: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[SeriesScores]:
    """Returns every series in the `models` of scores, in their order."""
    return [
        SeriesScores(model, setting, strategy, entry)
        for model, settings in models.items()
        for setting, strategies in settings.items()
        for strategy, entry in strategies.items()
    ]


def items_of(entry: Mapping[str, Any]) -> str:
    """Returns as text how many items have a figure, and of how many if some have none."""
    whole = "" if entry["items"] == entry["items_asked"] else f" of {entry['items_asked']:,}"
    return f"{entry['items']:,}{whole}"
