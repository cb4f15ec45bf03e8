"""Asks a model for the paraphrases of a data set, until all are written or a signal ends it."""

from __future__ import annotations

from collections.abc import Mapping

from ....wiring import Settings
from ...evaluation.ask_all import ask_all
from ...evaluation.watch import Watch
from .rephrase import ParaphraseRun


def write_paraphrases(
    model: str, questions: Mapping[str, str], settings: Settings, watch: Watch
) -> tuple[ParaphraseRun, int | None]:
    """Returns the finished or interrupted run, and the number of the signal that left issues pending (None: no signal
    did)."""
    rephrasing = ParaphraseRun(model, questions)
    interrupted_by = ask_all(rephrasing, settings, f"data --rephrase {model}", watch)
    return rephrasing, interrupted_by if rephrasing.pending else None
