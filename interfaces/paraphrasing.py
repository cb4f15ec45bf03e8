"""A model asked for the paraphrases of a data set, and what of them a signal cut off."""

from __future__ import annotations

from collections.abc import Mapping

from ..bench.millstone.importing.rephrase import Rephrasing
from ..wiring import Settings
from .asking import ask_all


def write_paraphrases(
    model: str, questions: Mapping[str, str], settings: Settings, *, show_progress: bool
) -> tuple[Rephrasing, int | None]:
    """How far it came, and the number of the signal that ended it before its end."""
    rephrasing = Rephrasing(model, questions)
    interrupted_by = ask_all(rephrasing, settings, f"data --rephrase {model}", show_progress=show_progress)
    return rephrasing, interrupted_by if rephrasing.pending else None
