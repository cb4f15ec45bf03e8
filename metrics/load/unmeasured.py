"""Sentences on what a load test did not measure and on figures that few answers support.

Shared by summary and page. Pure: from the structs of `load.json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...format import by_kind
from .load_json import ModelFigures


def unmeasured(models: Mapping[str, ModelFigures]) -> tuple[str, ...]:
    """Returns a sentence for each model without a measured answer, which says why it has none."""
    return tuple(f"{name}: nothing was measured: {why}" for name, model in models.items() if (why := _why(model)))


def unmeasured_goals(models: Mapping[str, ModelFigures]) -> tuple[str, ...]:
    """Returns a sentence for each model whose answers lack the time that the goal names."""
    return tuple(
        f"{name}: the goal was not measured: {model.goal.unmeasured}"
        for name, model in models.items()
        if model.goal is not None and model.goal.unmeasured
    )


def answers_of(model: ModelFigures) -> Iterator[str]:
    """Yields a sentence if half of the calls or more were not answered, and one if answers have no word."""
    failed = model.calls - model.answered
    if model.answered and 2 * failed >= model.calls:
        yield (
            f"{failed:,} of {model.calls:,} calls were not answered ({by_kind(model.errors)}): all times are those of "
            f"the other {model.answered:,}"
        )
    if model.empty:
        cut = f" ({model.cut:,} answers were cut at max_tokens)" if model.cut else ""
        yield (
            f"{model.empty:,} of {model.answered:,} answers have no word{cut}: their times are counted like any other's"
        )


def _why(model: ModelFigures) -> str:
    """Returns why a model has no answer; empty if it has one."""
    if model.answered:
        return ""
    if model.calls:
        return f"none of {model.calls:,} calls was answered ({by_kind(model.errors)})"
    if model.begun:
        return "those sent were due in the warm-up or the cool-down, or met the end of the test"
    return "no call was sent"
