"""A model asked for the paraphrases of a data set, and what of them a signal cut off."""

from __future__ import annotations

from collections.abc import Mapping

from ....wiring import Settings
from ...evaluation.ask_all import ask_all
from ...evaluation.watch import Watch
from .rephrase import ParaphraseRun


def write_paraphrases(
    model: str, questions: Mapping[str, str], settings: Settings, watch: Watch
) -> tuple[ParaphraseRun, int | None]:
    """How far it came, and the number of the signal that ended it before its end."""
    rephrasing = ParaphraseRun(model, questions)
    interrupted_by = ask_all(rephrasing, settings, f"data --rephrase {model}", watch)
    return rephrasing, interrupted_by if rephrasing.pending else None
